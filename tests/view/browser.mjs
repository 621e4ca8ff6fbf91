// SPDX-License-Identifier: BSD-3-Clause
// The trace page in a real browser. node browser.mjs FOLDER: pages and pictures
// are left in FOLDER. Exit status 77: no browser here.
import assert from 'node:assert/strict';
import {mkdirSync, readFileSync, writeFileSync, existsSync, rmSync} from 'node:fs';
import path from 'node:path';
import {synth} from './synth.mjs';
import {writePage, servePacks} from './bundle.mjs';
import {Browser, findBrowser} from './cdp.mjs';
import {readPng, countColours} from './png.mjs';

const out = path.resolve(process.argv[2] || 'view-pages');
const program = findBrowser();
if (!program) {
    console.log('skipped: no Chromium here');
    process.exit(77);
}
mkdirSync(out, {recursive: true});
const b = new Browser(program);
const place = (name) => path.join(out, name);
const page = (name, ...packs) => {
    writePage(place(name), ...packs);
    return `file://${place(name)}`;
};
const sleep = (ms) => new Promise((r) => { setTimeout(r, ms); });
const open = async (url) => {
    await b.open(url);
    await b.eval('heddleView.app.rest');
    await b.eval('new Promise((r) => requestAnimationFrame(() => setTimeout(r)))');
};
const range = () => b.eval('heddleView.range()');
const text = (id) => b.eval(`document.getElementById('${id}').innerText`);
const picture = async (name) => {
    await sleep(60);
    await b.screenshot(place(name));
    return countColours(readPng(place(name)));
};
// Where a task is on the screen.
const middle = (task) => b.eval(`(() => {
    const a = heddleView.app, run = a.runs[0], t = run.task(${task});
    const row = a.gantt.rowOfLane(run, t.lane),
        box = document.getElementById('gantt').getBoundingClientRect();
    return [box.left + a.gantt.x((t.start + t.end) / 2), box.top + a.gantt.rowY(row) + row.h / 2];
})()`);
const wheel = async (x, y, deltaY, modifiers = 0) => {
    const before = JSON.stringify(await range());
    await b.mouse('mouseWheel', x, y, {deltaX: 0, deltaY, modifiers});
    await b.until(`JSON.stringify(heddleView.range()) !== '${before}'`, 5);
};
const drag = async (x0, y0, x1, y1, modifiers = 0) => {
    await b.mouse('mouseMoved', x0, y0, {modifiers});
    await b.mouse('mousePressed', x0, y0, {button: 'left', buttons: 1, clickCount: 1, modifiers});
    for (let i = 1; i <= 4; i++) {
        await b.mouse('mouseMoved', x0 + (x1 - x0) * i / 4, y0 + (y1 - y0) * i / 4,
            {button: 'left', buttons: 1, modifiers});
    }
    await b.mouse('mouseReleased', x1, y1, {button: 'left', clickCount: 1, modifiers});
};

const tests = [];
const test = (name, f) => tests.push([name, f]);
const data = synth({nt: 12});
const url = page('small.html', data);

test('few lanes fill the window, and the bound is named wherever the view is', async () => {
    const texts = (t0, t1) => b.eval(`(() => {
        const a = heddleView.app, p = CanvasRenderingContext2D.prototype, was = p.fillText;
        const kept = [a.view.t0, a.view.t1], seen = [];
        p.fillText = function (...args) { seen.push([args[0], args[1]]); };
        [a.view.t0, a.view.t1] = [${t0} * a.view.total, ${t1} * a.view.total];
        a.overlay.drawBelow(a.gantt.g);
        p.fillText = was;
        [a.view.t0, a.view.t1] = kept;
        return seen.filter((x) => /lower bound/.test(x[0]));
    })()`);
    await open(page('few.html', synth({nt: 4, workers: 2})));
    const [content, height, rows] = await b.eval(`(() => { const g = heddleView.app.gantt;
        return [g.content, g.height, g.rows.map((r) => r.h)]; })()`);
    assert.ok(content > 0.6 * height || rows.some((h) => h >= 240),
        `${content} of ${height}: ${rows}`);
    assert.equal((await texts(0, 1)).length, 1);
    const before = await texts(0, 0.01), behind = await texts(0.999, 1);
    assert.match(before[0][0], /^lower bound .* \u2192$/);
    assert.match(behind[0][0], /^\u2190 lower bound /);
    assert.ok(before[0][1] > behind[0][1]);
});

test('opens and shows the run', async () => {
    await open(url);
    assert.match(await text('title'), /cholesky/);
    assert.match(await text('facts'), /6 workers · 364 tasks/);
    assert.match(await text('panel-body'), /✓ .* = 6 workers × /);
    assert.match(await text('panel-body'), /Lost to the system\s*3\.5\d* ms of 2 tasks/);
    const colours = await picture('open.png');
    assert.ok(colours.size > 60, `${colours.size} colours`);
    for (const c of [0xd9c95f, 0x009e73, 0xcc79a7, 0x0072b2]) {
        assert.ok(colours.get(c) > 500, `pixels of kernel ${c.toString(16)}`);
    }
});

test('a click on a task shows its panel and arrows', async () => {
    const [x, y] = await middle(100);
    await b.click(x, y);
    await b.until('heddleView.selected() === 100', 5);
    const panel = await text('panel-body');
    assert.match(panel, /#101/);
    assert.match(panel, /Predicted/);
    assert.match(panel, /Why it waited/);
    assert.match(panel, /Operands \(\d\)/);
    const [preds, succs] = await b.eval(
        '[heddleView.app.selection.preds, heddleView.app.selection.succs]');
    const {edge_off: off, edge_pred: pred} = data.arrays;
    assert.deepEqual(preds, [...pred.subarray(off[100], off[101])]);
    assert.ok(succs.length > 0);
    const withArrows = await picture('task.png');
    await b.eval('heddleView.app.overlay.arrows = false; heddleView.app.redraw()');
    const without = await picture('task-plain.png');
    assert.ok(withArrows.get(0x1f55d0) > without.get(0x1f55d0), 'blue arrows');
    await b.eval('heddleView.app.overlay.arrows = true');
    await b.key('Escape');
    assert.equal(await b.eval('heddleView.selected()'), null);
});

test('energy: what was measured, by the model, and what is missing', async () => {
    await open(url);
    assert.match(await text('panel-body'),
        /No energy was measured: no counter: this run is made up\./);
    await open(page('measured.html', synth({nt: 6, energy: 'measured'})));
    const measured = await text('panel-body');
    assert.match(measured, /package-0 \(cpu\)\s+[\d.]+ [µmk]?J/);
    assert.match(measured, /need an energy model/);
    await open(page('energy.html', synth({nt: 6, energy: 'model'})));
    const model = await text('panel-body');
    assert.match(model, /By the model [\d.]+ [µmk]?J, [\d.]+ % of it idle power/);
    assert.match(model, /gemm\s+cpu\s+[\d.]+ [mµ]?s\s+[\d.]+ W\s+[\d.]+ [µmk]?J/);
    assert.match(model, /does not know 3 tasks/);
    await b.eval("heddleView.app.tabs.show('kernels')");
    assert.match(await text('panel-body'), /Energy/);
    assert.deepEqual(b.errors, []);
    await picture('energy.png');
    await open(page('energies.html', synth({nt: 6, energy: 'model', packs: 2}),
        synth({nt: 5, energy: 'model', packs: 2})));
    assert.match(await text('panel-body'),
        /Energy by the model\s+[\d.]+ [µmk]?J\s+[\d.]+ [µmk]?J\s+−[\d.]+ %/);
    await open(url);
});

test('wheel, drag, box and keys change the range', async () => {
    const all = await range(), len = (r) => r[1] - r[0];
    await wheel(700, 300, -240);
    const near = await range();
    assert.ok(len(near) < len(all));
    await drag(700, 300, 500, 300);
    const moved = await range();
    assert.ok(moved[0] > near[0] && Math.abs(len(moved) - len(near)) < 1);
    await drag(600, 300, 800, 320, 8);
    const boxed = await range();
    assert.ok(len(boxed) < len(moved) / 3 && boxed[0] > moved[0] && boxed[1] < moved[1]);
    await wheel(700, 300, 100, 8);
    assert.ok(Math.abs(len(await range()) - len(boxed)) < 1, 'Shift and wheel move');
    for (const [key, check] of [['-', (p, q) => len(q) > len(p)], ['+', (p, q) => len(q) < len(p)],
        ['w', (p, q) => len(q) < len(p)], ['s', (p, q) => len(q) > len(p)],
        ['d', (p, q) => q[0] > p[0]], ['a', (p, q) => q[0] < p[0]],
        ['ArrowRight', (p, q) => q[0] > p[0]], ['ArrowLeft', (p, q) => q[0] < p[0]]]) {
        const p = await range();
        await b.key(key);
        assert.ok(check(p, await range()), key);
    }
    for (let i = 0; i < 60; i++) await b.key('+');
    assert.ok(len(await range()) <= 16 * 1024 + 1, 'down to single units');
    await picture('deep.png');
    await b.key('Home');
    assert.deepEqual(await range(), all);
});

test('the tooltip tells what is under the mouse, also after a zoom', async () => {
    const [x, y] = await middle(100);
    await b.mouse('mouseMoved', x, y);
    await b.until("/#101/.test(document.getElementById('tooltip').innerText)", 5);
    await b.eval('heddleView.app.view.set(3e6, 3.1e6)');
    await b.until("!/#101/.test(document.getElementById('tooltip').innerText)", 5);
    await b.mouse('mouseMoved', 1400, 500);
    await b.until("document.getElementById('tooltip').hidden", 5);
    await b.key('0');
});

test('search finds, goes on, goes back', async () => {
    const n = await b.eval("heddleView.search('kernel:potrf')");
    assert.equal(n, 12);
    assert.match(await text('search-count'), /1 of 12/);
    const first = await b.eval('heddleView.selected()');
    await b.key('n');
    await b.until(`heddleView.selected() !== ${first}`, 5);
    await b.key('N', 8);
    await b.until(`heddleView.selected() === ${first}`, 5);
    assert.equal(await b.eval("heddleView.search('operand:A(3,2)')"),
        await b.eval("heddleView.search('operand:a(3,2)')"));
    assert.equal(await b.eval("heddleView.search('no such thing')"), 0);
    assert.equal(await text('search-count'), 'none');
    await b.eval("heddleView.search('')");
    await b.key('/');
    assert.equal(await b.eval('document.activeElement.id'), 'search');
    await b.send('Input.insertText', {text: 'diagonal'});
    await b.until("document.getElementById('search-count').innerText.includes('of 12')", 5);
    await b.key('Escape');
    await b.key('Escape');
    await b.key('0');
});

test('the legend filters', async () => {
    const before = await picture('all-kernels.png');
    await b.eval(
        "[...document.querySelectorAll('.chip')].find((c) => c.innerText === 'gemm').click()");
    const after = await picture('filtered.png');
    assert.ok((after.get(0xd9c95f) || 0) < before.get(0xd9c95f) / 10);
    await b.eval("document.querySelector('.chip.all').click()");
    assert.equal(await b.eval("document.querySelectorAll('.chip[aria-pressed=false]').length"), 0);
});

test('idle causes, longest chain, blame, patterns', async () => {
    let before = await picture('plain.png');
    for (const [key, colour] of [['i', 0x77839a], ['c', 0xc2185b], ['b', 0x4878a8]]) {
        await b.key(key);
        await sleep(80);
        const after = await picture(`option-${key}.png`);
        assert.ok((after.get(colour) || 0) > (before.get(colour) || 0) + 100, key);
        before = after;
    }
    await b.key('p');
    const patterned = await picture('option-p.png');
    assert.ok(patterned.get(0xd9c95f) < before.get(0xd9c95f));
    for (const key of ['i', 'c', 'b', 'p']) await b.key(key);
});

test('statistics of the range, and all tabs by keys', async () => {
    await b.eval("heddleView.app.tabs.show('run'), document.getElementById('tab-run').focus()");
    for (const id of ['kernels', 'range', 'task']) {
        await b.key('ArrowRight');
        assert.equal(await b.eval('document.activeElement.id'), `tab-${id}`);
    }
    await b.key('ArrowLeft');
    assert.match(await text('panel-body'), /Executions\s*364/);
    await b.eval('heddleView.app.view.set(0, 1e6)');
    await b.until("!/Executions\\s*364/.test(document.getElementById('panel-body').innerText)", 5);
    await b.eval('heddleView.app.view.reset()');
});

test('keys alone: focus is visible, tasks can be walked, help opens', async () => {
    await b.eval("document.getElementById('gantt').focus()");
    await b.key('Enter');
    await b.until('heddleView.selected() !== null', 5);
    const first = await b.eval('heddleView.selected()');
    await b.key('.');
    await b.until(`heddleView.selected() !== ${first}`, 5);
    await b.key(',');
    await b.until(`heddleView.selected() === ${first}`, 5);
    await b.key('j');
    await b.until(`heddleView.selected() !== ${first}`, 5);
    assert.match(await text('status'), /Task \d+/);
    const seen = new Set();
    for (let i = 0; i < 30; i++) {
        await b.key('Tab');
        seen.add(await b.eval("document.activeElement.id || document.activeElement.innerText"));
        const line = await b.eval("getComputedStyle(document.activeElement).outlineStyle");
        assert.ok(line !== 'none' || await b.eval('document.activeElement === document.body'),
            'focus ring');
    }
    assert.ok(seen.size > 12, `${seen.size} places`);
    await b.eval("document.getElementById('gantt').focus()");
    await b.key('?');
    assert.ok(await b.eval("document.getElementById('help').open"));
    await picture('help.png');
    await b.key('Escape');
    assert.ok(!await b.eval("document.getElementById('help').open"));
    const unnamed = await b.eval(`[...document.querySelectorAll('button, input, [role]')]
        .filter((e) =>
            !(e.innerText || e.getAttribute('aria-label') || e.getAttribute('aria-labelledby') ||
              e.labels && e.labels.length ||
              ['status', 'alert', 'search'].includes(e.getAttribute('role'))))
        .map((e) => e.outerHTML.slice(0, 80))`);
    assert.deepEqual(unnamed, []);
});

test('the address brings the view back', async () => {
    await b.eval('heddleView.app.view.set(1e6, 2e6)');
    await b.eval('heddleView.select(200)');
    await b.eval("heddleView.app.option('idle', true)");
    await sleep(400);
    const [r, hash] = [await range(), await b.eval('location.hash')];
    await open(`${url}${hash}`);
    assert.equal(await b.eval('heddleView.selected()'), 200);
    const again = await range();
    assert.ok(Math.abs(again[0] - r[0]) <= 1 && Math.abs(again[1] - r[1]) <= 1);
    assert.ok(await b.eval('heddleView.app.options.idle'));
});

test('light and dark', async () => {
    await open(url);
    const most = (m) => [...m].sort((p, q) => q[1] - p[1])[0][0];
    assert.equal(most(await picture('light.png')), 0xffffff);
    await b.send('Emulation.setEmulatedMedia',
        {features: [{name: 'prefers-color-scheme', value: 'dark'}]});
    assert.equal(most(await picture('dark.png')), 0x12151a);
    await b.eval("document.getElementById('theme-button').click()");
    assert.equal(most(await picture('light-again.png')), 0xffffff);
    await b.send('Emulation.setEmulatedMedia', {features: []});
});

test('the picture can be saved', async () => {
    const file = place('cholesky.png');
    rmSync(file, {force: true});
    await b.send('Page.setDownloadBehavior', {behavior: 'allow', downloadPath: out});
    await b.eval("document.getElementById('png-button').click()");
    for (let i = 0; i < 100 && !existsSync(file); i++) await sleep(50);
    await sleep(100);
    assert.ok(countColours(readPng(file)).size > 20);
});

test('two runs side by side', async () => {
    await open(page('two.html', synth({nt: 12, packs: 2, title: 'first'}),
        synth({nt: 12, packs: 2, title: 'second', workers: 6, devices: 1, seed: 3})));
    assert.match(await text('panel-body'), /A is first, B is second/);
    const rows = await b.eval("heddleView.app.gantt.rows.filter((r) => r.type === 'head').length");
    assert.equal(rows, 2);
    const ends = () => b.eval('heddleView.app.runs.map((r) => r.makespan)');
    const [a1, b1] = await ends();
    assert.ok(b1 > a1);
    await picture('two.png');
    await b.eval("document.getElementById('opt-same').click()");
    const [a2, b2] = await ends();
    assert.ok(Math.abs(a2 - b2) < 1);
    await b.eval('heddleView.app.select(heddleView.app.runs[1], 50)');
    assert.match(await text('panel-body'), /#51/);
    const colours = await picture('two-equal.png');
    assert.ok(colours.size > 60);
});

test('no picture is lost when the size changes', async () => {
    const empty = await b.eval(`(async () => {
        const base = document.getElementById('base'), box = document.getElementById('charts');
        let bad = 0;
        for (let i = 0; i < 6; i++) {
            box.style.marginBottom = i % 2 ? '0' : '40px';
            await new Promise((r) => requestAnimationFrame(() => setTimeout(r)));
            const [r, g, bl] = base.getContext('2d')
                .getImageData(base.width - 2, base.height - 2, 1, 1).data;
            if (r + g + bl === 0) bad++;
        }
        box.style.marginBottom = '';
        return bad;
    })()`);
    assert.equal(empty, 0);
});

test('details can be hidden, the chart takes the room', async () => {
    const width = () => b.eval("document.getElementById('base').width");
    const before = await width();
    await b.eval("document.getElementById('panel-button').click()");
    await b.until(`document.getElementById('base').width > ${before + 300}`, 5);
    await b.eval("document.getElementById('panel-button').click()");
    await b.until(`document.getElementById('base').width === ${before}`, 5);
});

test('logs with little in them', async () => {
    for (const [name, opts, words] of [['level0', {nt: 6, level: 0}, /record level 1/],
        ['alone', {nt: 1, workers: 1, devices: 0}, /No task of this run depends/],
        ['none', {nt: 0}, /Tasks\s*0/], ['one', {nt: 1, workers: 1, devices: 0}, /Tasks\s*1/],
        ['failed', {nt: 8, failed: 9}, /Did not end well\s*14 executions/],
        ['partial', {nt: 4, partial: 'The log was cut: 3 chunks are missing.'}, /was cut/]]) {
        await open(page(`${name}.html`, synth(opts)));
        assert.match(await text('panel-body'), words, name);
        if (name === 'none') assert.match(await text('nothing'), /no task that ran/);
        if (name === 'partial') assert.match(await text('banner'), /was cut/);
        for (const key of ['i', 'c', 'b', 'l', 'Enter', '.', '+']) await b.key(key);
        await picture(`${name}.png`);
        assert.deepEqual(b.errors, [], name);
    }
});

test('damaged data are reported, not fatal', async () => {
    const html = readFileSync(place('small.html'), 'utf8');
    const cut = (name) => (all) => all.replace(
        new RegExp(`(data-array="${name}">.{40})[^<]*`), '$1');
    writeFileSync(place('damaged.html'), cut('edge_pred')(cut('run_dur')(html)));
    await open(`file://${place('damaged.html')}`);
    assert.match(await text('banner'), /run_dur cannot be read/);
});

test('from a server, following a program that runs', async () => {
    const packs = [synth({nt: 8, coding: 'raw', live: true, generation: 1})];
    const {server, url: at} = await servePacks(packs);
    try {
        await open(at);
        assert.match(await text('facts'), /120 tasks/);
        assert.ok(!await b.eval("document.getElementById('live').hidden"));
        const whole = await range();
        packs[0] = synth({nt: 10, coding: 'raw', live: true, generation: 2});
        await b.until("/220 tasks/.test(document.getElementById('facts').innerText)", 10);
        assert.ok((await range())[1] > whole[1], 'a view of everything follows');
        await b.eval('heddleView.app.view.set(1e5, 2e5)');
        await b.eval('heddleView.select(30)');
        const r = await range();
        await b.eval("heddleView.app.tabs.show('kernels')");
        packs[0] = synth({nt: 11, coding: 'raw', live: false, generation: 3});
        await b.until("/286 tasks/.test(document.getElementById('facts').innerText)", 10);
        assert.deepEqual(await range(), r, 'the view is kept');
        await b.until('heddleView.selected() === 30', 5);
        assert.equal(await b.eval('heddleView.app.tabs.current'), 'kernels');
    } finally {
        server.closeAllConnections();
        server.close();
    }
});

test('a large log is shown before it is explained', async () => {
    const full = synth({nt: 9, coding: 'raw', generation: 2});
    const quick = synth({nt: 9, coding: 'raw', live: true, generation: 1});
    quick.dir.explained = false;
    quick.dir.bounds = null;
    quick.dir.curves = [];
    for (const c of Object.keys(quick.dir.total)) quick.dir.total[c] = 0;
    for (const n of Object.keys(quick.arrays)
        .filter((x) => /^(gap|step|path|curve|task_wait)/.test(x))) {
        delete quick.dir.arrays[n];
    }
    const packs = [quick], {server, url: at} = await servePacks(packs);
    try {
        await open(at);
        assert.match(await text('panel-body'), /Being computed/);
        assert.doesNotMatch(await text('panel-body'), /✗/);
        await b.eval(
            'window.before = heddleView.app.runs[0].start; heddleView.app.view.set(1e5, 3e5)');
        const r = await range();
        packs[0] = full;
        await b.until("/✓ /.test(document.getElementById('panel-body').innerText)", 10);
        assert.ok(await b.eval('heddleView.app.runs[0].start === before'),
            'tasks are not fetched twice');
        assert.deepEqual(await range(), r);
        await b.key('i');
        const colours = await picture('explained.png');
        assert.ok(colours.get(0x77839a) > 100, 'idle gaps are there');
        assert.ok(await b.eval("document.getElementById('live').hidden"));
    } finally {
        server.closeAllConnections();
        server.close();
    }
});

await b.start();
let bad = 0;
for (const [name, f] of tests) {
    try {
        await f();
        assert.deepEqual(b.errors, [], 'errors on the console');
        console.log(`ok   ${name}`);
    } catch (e) {
        bad++;
        console.log(`FAIL ${name}\n     ${e.stack}`);
        b.errors.length = 0;
    }
}
await b.stop();
console.log(bad ? `${bad} of ${tests.length} failed`
    : `all ${tests.length} passed, pictures in ${out}`);
process.exit(bad ? 1 : 0);
