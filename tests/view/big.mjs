// SPDX-License-Identifier: BSD-3-Clause
// Large runs in a real browser, against the bars: node big.mjs FOLDER measures a
// page with a million tasks; with --serve, ten million from a server (needs
// node --max-old-space-size=12000). Prints one line per number; fails when a bar
// is missed. Not part of CTest: it takes a minute and wants a quiet machine.
import {mkdirSync, statSync} from 'node:fs';
import path from 'node:path';
import {synth} from './synth.mjs';
import {writePage, servePacks} from './bundle.mjs';
import {Browser, findBrowser} from './cdp.mjs';

const serve = process.argv.includes('--serve');
const out = path.resolve(process.argv[2] || 'view-pages');
const bars = serve ? {open: 5, frame: 50, memory: Infinity} : {open: 3, frame: 33, memory: 600};
const program = findBrowser();
if (!program) {
    console.log('skipped: no Chromium here');
    process.exit(77);
}
mkdirSync(out, {recursive: true});
const quantile = (a, q) => [...a].sort((x, y) => x - y)
    [Math.min(a.length - 1, Math.floor(q * a.length))];
let missed = 0;
const show = (name, value, unit, bar) => {
    const ok = bar === undefined || value <= bar;
    if (!ok) missed++;
    console.log(`${name.padEnd(34)} ${value.toFixed(2).padStart(9)} ${unit}` +
        (bar === undefined || bar === Infinity ? '' : `   bar ${bar} ${ok ? 'met' : 'MISSED'}`));
};

// Zooms in and out over the whole range with the wheel, a step per frame.
const ZOOM = `(async () => {
    const el = document.getElementById('gantt'), box = el.getBoundingClientRect(), times = [];
    heddleView.frames.length = 0;
    let last = performance.now();
    for (let i = 0; i < 400; i++) {
        el.dispatchEvent(new WheelEvent('wheel', {deltaY: i < 200 ? -60 : 60, cancelable: true,
            clientX: box.left + 300 + 5 * (i % 97), clientY: box.top + 150}));
        await new Promise((r) => requestAnimationFrame(r));
        const now = performance.now();
        times.push(now - last);
        last = now;
    }
    return {times, draw: [...heddleView.frames]};
})()`;

const data = serve ? synth({nt: 390, workers: 48, devices: 16, coding: 'raw'})
    : synth({nt: 181, workers: 24, devices: 8});
const {tasks, edges, nworkers} = data.dir;
console.log(`${tasks} tasks, ${edges} dependencies, ${nworkers} workers`);
let server = null, url;
if (serve) ({server, url} = await servePacks([data]));
else {
    const file = path.join(out, 'big.html');
    writePage(file, data);
    url = `file://${file}`;
    show('page', statSync(file).size / 1048576, 'MiB');
}
const b = new Browser(program);
await b.start();
const opens = [];
for (let i = 0; i < (serve ? 1 : 3); i++) opens.push(await b.open(url));
show('open to first picture, median', quantile(opens, 0.5), 's', bars.open);
await b.eval('heddleView.app.rest');
await new Promise((r) => { setTimeout(r, 1000); });
const {times, draw} = await b.eval(ZOOM);
show('frame while zooming, median', quantile(times, 0.5), 'ms');
show('frame while zooming, 95 %', quantile(times, 0.95), 'ms', bars.frame);
show('of which drawing, 95 %', quantile(draw, 0.95), 'ms');
show('memory of the page, all drawn', b.memory(), 'MiB', bars.memory);
let begin = Date.now();
await b.eval(`heddleView.select(${data.dir.tasks >> 1})`);
show('first selection', Date.now() - begin, 'ms');
begin = Date.now();
await b.eval(`heddleView.select(${(data.dir.tasks >> 1) + 7})`);
show('next selection', Date.now() - begin, 'ms');
begin = Date.now();
await b.eval("heddleView.search('operand:A(100,50)')");
show('search', Date.now() - begin, 'ms');
show('memory of the page, all loaded', b.memory(), 'MiB', bars.memory);
await b.screenshot(path.join(out, serve ? 'serve.png' : 'big.png'));
if (b.errors.length) { missed++; console.log(b.errors.join('\n')); }
await b.stop();
if (server) { server.closeAllConnections(); server.close(); }
process.exit(missed ? 1 : 0);
