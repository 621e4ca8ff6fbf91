// SPDX-License-Identifier: BSD-3-Clause
// Makes the pictures of docs/guide/11-performance.md again, and prints its numbers:
//     node tests/view/pictures.mjs HEDDLE EXAMPLES FOLDER [ROUNDS]
// EXAMPLES is the folder of 13_slow. Of ROUNDS runs of each version (default 100, in
// turns) the fastest stays in FOLDER, with its page; 0 takes what is there.
import assert from 'node:assert/strict';
import {spawnSync} from 'node:child_process';
import {existsSync, mkdirSync, renameSync, statSync} from 'node:fs';
import path from 'node:path';
import {fileURLToPath} from 'node:url';
import {Browser, findBrowser} from './cdp.mjs';

const [heddle, examples, out] = process.argv.slice(2, 5).map((p) => path.resolve(p));
const rounds = Number(process.argv[5] || 100);
const pictures = fileURLToPath(new URL('../../docs/guide/pictures', import.meta.url));
const program = findBrowser();
if (!out || !program) {
    console.log(out ? 'no Chromium here' : 'pictures.mjs HEDDLE EXAMPLES FOLDER [ROUNDS]');
    process.exit(1);
}
mkdirSync(out, {recursive: true});
mkdirSync(pictures, {recursive: true});
const run = (file, args, env = {}) => {
    const r = spawnSync(file, args, {cwd: out, encoding: 'utf8', env: {...process.env, ...env}});
    assert.equal(r.status, 0, `${file} ${args.join(' ')}: ${r.stderr}`);
    return r.stdout;
};
const makespan = (log) => JSON.parse(run(heddle, ['trace', 'stats', log, '--json'])).makespan_ns;

const versions = [['slow', ['small', 'serial', 'late']], ['blocks', ['serial', 'late']],
    ['sum', ['late']], ['order', []]];
const replay = ['replay', ['late'], {HEDDLE_SCHED: 'replay', HEDDLE_PLACEMENT: 'better.place'}];
const best = new Map();
const measure = ([name, words, env]) => {
    const log = `${name}.log`;
    if (!best.has(name) && existsSync(path.join(out, log))) best.set(name, [makespan(log)]);
    run(path.join(examples, '13_slow'), words,
        {HEDDLE_LOG_FILE: 'try.log', HEDDLE_LOG_LEVEL: '1', ...env});
    const all = best.get(name) || [], ns = makespan('try.log');
    if (all.every((x) => ns < x)) renameSync(path.join(out, 'try.log'), path.join(out, log));
    best.set(name, [...all, ns]);
};
// The first version takes long.
for (let i = 0; i < rounds; i++) versions.slice(i % 5 ? 1 : 0).forEach(measure);
if (rounds > 0)
    run(heddle, ['trace', 'schedule', 'sum.log', '--placement', 'better.place',
        '-o', 'better.log']);
for (let i = 0; i < rounds; i++) measure(replay);
for (const [name, all] of best) {
    all.sort((p, q) => p - q);
    const median = all[all.length >> 1];
    console.log(`${name}: fastest ${all[0] / 1e6} ms, median ${median / 1e6} ms of ${all.length}`);
}

const b = new Browser(program, 1100, 560);
const open = async (page, ...logs) => {
    run(heddle, ['trace', 'view', ...logs, '-o', page]);
    await b.open(`file://${path.join(out, page)}`);
    await b.eval('heddleView.app.rest');
};
const picture = async (name) => {
    const file = path.join(pictures, `${name}.png`);
    await new Promise((r) => { setTimeout(r, 300); });
    await b.screenshot(file);
    assert.deepEqual(b.errors, [], name);
    console.log(`${file}: ${Math.ceil(statSync(file).size / 1024)} KiB`);
};

await b.start();
try {
    await open('slow.html', 'slow.log');
    await b.key('i');
    await picture('slow');
    await open('blocks.html', 'blocks.log');
    await b.key('i');
    await b.key('c');
    await picture('blocks');
    await open('sum.html', 'sum.log');
    await b.key('i');
    const first = await b.eval(
        "heddleView.search('kernel:march').then(() => heddleView.selected())");
    assert.ok(first !== null);
    await b.key('0');
    await picture('sum');
    await open('both.html', 'sum.log', 'order.log');
    await b.key('i');
    await picture('both');
} finally {
    await b.stop();
}
