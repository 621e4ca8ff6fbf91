// SPDX-License-Identifier: BSD-3-Clause
// Drives a headless Chromium by its DevTools protocol, over two pipes.
import {spawn} from 'node:child_process';
import {existsSync, mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync} from 'node:fs';
import os from 'node:os';
import path from 'node:path';

export function findBrowser() {
    const names = ['chromium', 'chromium-browser', 'google-chrome'];
    if (process.env.CHROMIUM) return process.env.CHROMIUM;
    for (const dir of (process.env.PATH || '').split(':')) {
        for (const n of names) if (existsSync(path.join(dir, n))) return path.join(dir, n);
    }
    return null;
}

export class Browser {
    constructor(program, width = 1500, height = 950) {
        this.profile = mkdtempSync(path.join(os.tmpdir(), 'heddle-view-'));
        this.child = spawn(program, ['--headless=new', '--remote-debugging-pipe', '--no-sandbox',
            '--disable-gpu', '--disable-dev-shm-usage', '--hide-scrollbars', '--no-first-run',
            '--disable-extensions', '--enable-precise-memory-info', '--force-device-scale-factor=1',
            `--window-size=${width},${height}`, `--user-data-dir=${this.profile}`, 'about:blank'],
        {stdio: ['ignore', 'ignore', 'ignore', 'pipe', 'pipe']});
        this.width = width;
        this.height = height;
        this.next = 1;
        this.waiting = new Map();
        this.events = [];
        this.errors = [];
        this.session = undefined;
        let rest = '';
        this.child.stdio[4].setEncoding('utf8');
        this.child.stdio[4].on('data', (chunk) => {
            const parts = (rest + chunk).split('\0');
            rest = parts.pop();
            for (const p of parts) this.receive(JSON.parse(p));
        });
        this.child.on('exit', () => {
            for (const w of this.waiting.values()) w.reject(new Error('the browser ended'));
        });
    }

    receive(m) {
        if (m.id) {
            const w = this.waiting.get(m.id);
            this.waiting.delete(m.id);
            if (m.error) w.reject(new Error(`${w.method}: ${m.error.message}`));
            else w.resolve(m.result);
            return;
        }
        const p = m.params;
        if (m.method === 'Runtime.exceptionThrown') {
            const d = p.exceptionDetails;
            this.errors.push((d.exception && d.exception.description) || d.text);
        } else if (m.method === 'Runtime.consoleAPICalled' &&
            ['error', 'warning'].includes(p.type)) {
            this.errors.push(p.args.map((a) => a.value || a.description).join(' '));
        } else if (m.method === 'Log.entryAdded' && p.entry.level !== 'info') {
            this.errors.push(`${p.entry.text} ${p.entry.url || ''}`);
        }
        this.events.push(m.method);
    }

    send(method, params = {}) {
        const id = this.next++;
        const message = {id, method, params};
        if (this.session) message.sessionId = this.session;
        this.child.stdio[3].write(`${JSON.stringify(message)}\0`);
        return new Promise((resolve, reject) => {
            this.waiting.set(id, {resolve, reject, method});
        });
    }

    async start() {
        const {targetInfos} = await this.send('Target.getTargets');
        const page = targetInfos.find((t) => t.type === 'page');
        const {sessionId} = await this.send('Target.attachToTarget',
            {targetId: page.targetId, flatten: true});
        this.session = sessionId;
        for (const d of ['Page', 'Runtime', 'Log', 'Performance']) await this.send(`${d}.enable`);
        await this.send('Emulation.setDeviceMetricsOverride', {width: this.width,
            height: this.height, deviceScaleFactor: 1, mobile: false});
    }

    // Opens an address and waits until the page says that it is ready; seconds.
    async open(url) {
        const begin = Date.now();
        this.errors.length = 0;
        await this.send('Page.navigate', {url: 'about:blank'});
        await this.send('Page.navigate', {url});
        await this.until('window.heddleView');
        await this.eval(
            'heddleView.ready.then(() => ' +
            'new Promise((r) => requestAnimationFrame(() => setTimeout(r))))');
        return (Date.now() - begin) / 1000;
    }

    async eval(expression) {
        const r = await this.send('Runtime.evaluate',
            {expression, awaitPromise: true, returnByValue: true});
        if (r.exceptionDetails) {
            const d = r.exceptionDetails;
            throw new Error(`${expression}: ${(d.exception && d.exception.description) || d.text}`);
        }
        return r.result.value;
    }

    async until(expression, seconds = 60) {
        for (const end = Date.now() + 1000 * seconds; Date.now() < end;) {
            if (await this.eval(`!!(${expression})`)) return;
            await new Promise((r) => { setTimeout(r, 10); });
        }
        throw new Error(`not within ${seconds} s: ${expression}`);
    }

    async mouse(type, x, y, extra = {}) {
        await this.send('Input.dispatchMouseEvent', {type, x, y, ...extra});
    }

    async click(x, y) {
        await this.mouse('mouseMoved', x, y);
        await this.mouse('mousePressed', x, y, {button: 'left', buttons: 1, clickCount: 1});
        await this.mouse('mouseReleased', x, y, {button: 'left', clickCount: 1});
    }

    async key(key, modifiers = 0) {
        const text = key.length === 1 ? key : undefined;
        const code = {Tab: 9, Enter: 13, Escape: 27, Home: 36, ArrowLeft: 37, ArrowUp: 38,
            ArrowRight: 39, ArrowDown: 40}[key];
        const e = {key, text, modifiers, windowsVirtualKeyCode: code};
        await this.send('Input.dispatchKeyEvent', {type: 'keyDown', ...e});
        await this.send('Input.dispatchKeyEvent', {type: 'keyUp', ...e});
    }

    async screenshot(file) {
        const {data} = await this.send('Page.captureScreenshot', {format: 'png'});
        writeFileSync(file, Buffer.from(data, 'base64'));
    }

    // Resident MiB of the page's process (private and shared), the largest one.
    memory() {
        let most = 0;
        for (const pid of readdirSync('/proc').filter((p) => /^\d+$/.test(p))) {
            try {
                const line = readFileSync(`/proc/${pid}/cmdline`, 'utf8');
                if (!line.includes('--type=renderer') || !line.includes(this.profile)) continue;
                const rss = /VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'));
                most = Math.max(most, Number(rss[1]) / 1024);
            } catch { /* it ended meanwhile */ }
        }
        return most;
    }

    async stop() {
        this.session = undefined;
        const gone = new Promise((r) => { this.child.on('exit', r); });
        this.send('Browser.close').catch(() => {});
        const late = setTimeout(() => this.child.kill('SIGKILL'), 5000);
        await gone;
        clearTimeout(late);
        rmSync(this.profile, {recursive: true, force: true, maxRetries: 5});
    }
}
