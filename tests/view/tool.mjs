// SPDX-License-Identifier: BSD-3-Clause
// From a log to the page, with the tool itself: node tool.mjs FOLDER HEDDLE.
// Exit status 77: no browser, or this heddle has no `trace view`.
import assert from 'node:assert/strict';
import {spawn, spawnSync} from 'node:child_process';
import {mkdirSync, readFileSync, writeFileSync} from 'node:fs';
import path from 'node:path';
import {Browser, findBrowser} from './cdp.mjs';
import {readPng, countColours} from './png.mjs';

const out = path.resolve(process.argv[2]), heddle = path.resolve(process.argv[3]);
const program = findBrowser();
const skip = (why) => {
    console.log(`skipped: ${why}`);
    process.exit(77);
};
if (!program) skip('no Chromium here');
if (spawnSync(heddle, ['trace', 'view', '--help']).status !== 0) skip('no heddle trace view');
mkdirSync(out, {recursive: true});
const place = (name) => path.join(out, name);
const run = (...args) => {
    const r = spawnSync(heddle, args, {cwd: out, encoding: 'utf8'});
    assert.equal(r.status, 0, `heddle ${args.join(' ')}: ${r.stderr}`);
    return r.stdout;
};
const demo = (log, level, workers) => run('demo', '--kernels', 'plain', '--n', '640', '--nb', '64',
    '--workers', workers, '--devices', 'none', '--no-progress', '--log-level', level, '--log', log);
demo('one.log', '1', '2');
demo('two.log', '1', '1');
demo('zero.log', '0', '2');
run('trace', 'view', 'one.log', '-o', 'one.html');
// Counters of a machine that the model describes: what is measured is what it says.
writeFileSync(place('m.energy'), `heddle-energy 1
domain package-0 idle_watts 40 device cpu
domain board idle_watts 5
active * cpu watts 10
active gemm cpu watts 20
`);
run('energy', 'plant', 'one.log', '--model', 'm.energy', '-o', 'energy.log', '--sample', '1ms',
    '--period', '1ms', '--margin', '5ms');
run('trace', 'view', 'energy.log', '-o', 'energy.html', '--energy-model', 'm.energy');
run('trace', 'view', 'one.log', 'two.log', '-o', 'both.html');
run('trace', 'view', 'zero.log', '-o', 'zero.html');
const whole = readFileSync(place('one.log'));
writeFileSync(place('cut.log'), whole.subarray(0, Math.floor(whole.length * 0.6)));
run('trace', 'view', 'cut.log', '-o', 'cut.html');

const b = new Browser(program);
const text = (id) => b.eval(`document.getElementById('${id}').innerText`);
const open = async (url) => {
    await b.open(url);
    await b.eval('heddleView.app.rest');
    assert.deepEqual(b.errors, [], url);
};
// 10 x 10 tiles: 220 tasks.
const checks = async () => {
    assert.equal(await b.eval('heddleView.app.runs[0].dir.tasks'), 220);
    assert.match(await text('panel-body'), /✓ .* = \d+ workers × /, 'idle time adds up');
    assert.equal(await b.eval("heddleView.search('kernel:potrf')"), 10);
    const preds = await b.eval(
        "heddleView.select(219).then(() => heddleView.app.selection.preds.length)");
    assert.ok(preds > 0);
    assert.match(await text('panel-body'), /Why it waited/);
    const blame = await b.eval(`Object.values(heddleView.app.runs[0].dir.blame)
        .reduce((p, q) => p + q, 0) -
        heddleView.app.runs[0].dir.makespan_ns`);
    assert.equal(blame, 0, 'the chain of blame is the makespan');
    await b.screenshot(place('tool.png'));
    assert.ok(countColours(readPng(place('tool.png'))).size > 40);
    assert.deepEqual(b.errors, []);
};

await b.start();
let server = null;
try {
    await open(`file://${place('one.html')}`);
    await checks();
    await open(`file://${place('energy.html')}`);
    const energy = await text('panel-body');
    assert.match(energy, /package-0 \(cpu\)\s+[\d.]+ [µmk]?J/);
    assert.match(energy, /board/);
    assert.match(energy, /By the model/);
    const curves = await b.eval(
        'heddleView.app.curves.list.filter((c) => c.kind === "power").map((c) => [c.name, c.max])');
    assert.deepEqual(curves.map((c) => c[0]), ['power of package-0', 'power of board']);
    assert.ok(curves[0][1] > 40 && curves[0][1] < 100, `${curves[0][1]} W at most`);
    assert.deepEqual(b.errors, []);
    await open(`file://${place('both.html')}`);
    assert.equal(await b.eval('heddleView.app.runs.length'), 2);
    assert.match(await text('panel-body'), /A is .*one.*, B is .*two/);
    await open(`file://${place('zero.html')}`);
    assert.match(await text('panel-body'), /no dependencies: record level 1/);
    assert.match(await text('panel-body'), /✓ /);
    await open(`file://${place('cut.html')}`);
    assert.ok((await text('banner')).length > 10, 'says what is missing');
    server = spawn(heddle, ['trace', 'serve', 'one.log', '--open-url-only'], {cwd: out});
    const url = await new Promise((done, fail) => {
        server.stdout.on('data', (d) => done(String(d).trim()));
        server.on('exit', () => fail(new Error('trace serve ended')));
    });
    await open(url);
    await checks();
    console.log('all passed');
} finally {
    if (server) server.kill('SIGINT');
    await b.stop();
}
