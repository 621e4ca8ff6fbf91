// SPDX-License-Identifier: BSD-3-Clause
// The rule of tools/view/README.md: many files to one page. And a page, or a
// server, for packs of synth.mjs.
import {readFileSync, writeFileSync} from 'node:fs';
import {createServer} from 'node:http';
import {fileURLToPath} from 'node:url';
import path from 'node:path';
import zlib from 'node:zlib';
import {encodeArray} from './synth.mjs';

export const FOLDER = path.join(path.dirname(fileURLToPath(import.meta.url)), '../../tools/view');
export const read = (name) => readFileSync(path.join(FOLDER, name), 'utf8');
export const files = () => read('files.txt').split('\n').filter(Boolean);

export function stripModule(text) {
    return text.split('\n').filter((l) => !l.startsWith('import '))
        .map((l) => l.replace(/^export /, '')).join('\n');
}

function replaceLine(html, line, by) {
    const parts = html.split(`\n${line}\n`);
    if (parts.length !== 2) throw new Error(`index.html: no single line ${line}`);
    return `${parts[0]}\n${by}\n${parts[1]}`;
}

// `packs`: text to put in place of the data.
export function bundle(packs = '') {
    const code = files().map((f) => stripModule(read(f))).join('\n');
    let html = replaceLine(read('index.html'), '<link rel="stylesheet" href="style.css">',
        `<style>\n${read('style.css')}</style>`);
    html = replaceLine(html, '<script type="module" src="main.js"></script>',
        `<script type="module">\n${code}</script>`);
    return replaceLine(html, '<!-- packs -->', packs);
}

// The scripts with the data of a pack {dir, arrays}.
export function packScripts(pack, number, level = 6) {
    const json = JSON.stringify(pack.dir).replaceAll('<', '\\u003c');
    const out = [`<script type="application/json" data-pack="${number}">${json}</script>`];
    for (const [name, array] of Object.entries(pack.arrays)) {
        const raw = encodeArray(array, pack.dir.arrays[name].coding);
        const text = zlib.deflateRawSync(raw, {level}).toString('base64');
        out.push(`<script type="application/x-heddle" data-pack="${number}" ` +
            `data-array="${name}">${text}</script>`);
    }
    return out.join('\n');
}

export function writePage(file, ...packs) {
    writeFileSync(file, bundle(packs.map((p, i) => packScripts(p, i)).join('\n')));
}

// A server of packs on a free port of the loopback; packs may be replaced.
export function servePacks(packs) {
    const html = bundle();
    const server = createServer((req, res) => {
        const m = /^\/pack\/(\d)\/(\w+)(\?g=\d+)?$/.exec(req.url);
        if (req.url === '/') {
            res.setHeader('Content-Type', 'text/html; charset=utf-8');
            return res.end(html);
        }
        const pack = m && packs[m[1]];
        if (pack && m[2] === 'dir') return res.end(JSON.stringify(pack.dir));
        if (pack && pack.arrays[m[2]]) {
            return res.end(encodeArray(pack.arrays[m[2]], pack.dir.arrays[m[2]].coding));
        }
        res.statusCode = 404;
        return res.end('no such thing');
    });
    return new Promise((done) => server.listen(0, '127.0.0.1', () =>
        done({server, url: `http://127.0.0.1:${server.address().port}/`})));
}
