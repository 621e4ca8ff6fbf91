// SPDX-License-Identifier: BSD-3-Clause
// The parts of the trace page that need no browser.
import test from 'node:test';
import assert from 'node:assert/strict';
import {readdirSync, writeFileSync, mkdtempSync, rmSync} from 'node:fs';
import {execFileSync} from 'node:child_process';
import os from 'node:os';
import path from 'node:path';
import zlib from 'node:zlib';
import {FOLDER, read, files, stripModule, bundle, packScripts} from './bundle.mjs';
import {synth, encodeArray, taskCount, NONE} from './synth.mjs';
import {Pack, decodeArray, inflateRaw, decodeBase64} from '../../tools/view/pack.js';
import {EMPTY, HIDDEN, Row, flatten, makeSeries, buildPyramid, rasterSeries, pieceAt, upperBound}
    from '../../tools/view/lod.js';
import {Run} from '../../tools/view/run.js';
import {View} from '../../tools/view/view.js';
import {searchTasks, parseQuery, matchTexts} from '../../tools/view/search.js';
import {idleSums} from '../../tools/view/idle.js';
import {energySums} from '../../tools/view/energy.js';
import {rangeStats} from '../../tools/view/stats.js';
import {curveColumns} from '../../tools/view/curves.js';
import {assignStyles, inkOn} from '../../tools/view/colour.js';
import {readHash, writeHash} from '../../tools/view/permalink.js';
import {alignRuns} from '../../tools/view/compare.js';
import {readyTime, whyItWaited} from '../../tools/view/panel.js';
import {formatTime, formatMoment, formatBytes, formatCount, formatJoules, formatTick, tickUnit,
    niceStep} from '../../tools/view/format.js';

let seed = 12345;
const random = (n) => {
    seed = (Math.imul(seed, 1664525) + 1013904223) >>> 0;
    return Math.floor(seed / 4294967296 * n);
};

function packOf(data) {
    return new Pack(0, data.dir, async (name) => {
        const b = encodeArray(data.arrays[name], data.dir.arrays[name].coding);
        return new Uint8Array(b.buffer, b.byteOffset, b.length).slice();
    });
}

async function openRun(opts) {
    const data = synth(opts), run = new Run(packOf(data));
    await run.loadLanes();
    await run.loadTasks();
    await run.loadGaps();
    await run.loadLinks();
    await run.loadBlame();
    return {run, data};
}

// ---- the rule of the bundle

test('every module is listed, after those it imports', () => {
    const list = files();
    const there = readdirSync(FOLDER).filter((f) => f.endsWith('.js')).sort();
    assert.deepEqual([...list].sort(), there);
    for (const [i, f] of list.entries()) {
        for (const line of read(f).split('\n')) {
            if (!/^\s*import\b/.test(line)) continue;
            const m = /^import \{ [\w, ]+ \} from '\.\/([\w.]+)';$/.exec(line);
            assert.ok(m, `${f}: an import has to be one line: ${line}`);
            assert.ok(list.indexOf(m[1]) >= 0 && list.indexOf(m[1]) < i, `${f} imports ${m[1]}`);
        }
        assert.ok(read(f).split('\n').length <= 500, `${f} is long`);
    }
});

test('names at the top level are unique', () => {
    const owner = new Map();
    for (const f of files()) {
        for (const line of stripModule(read(f)).split('\n')) {
            const m = /^(?:async )?(?:function|class|const|let|var) (?:(\w+)|\{|\[)/.exec(line);
            if (!m) continue;
            assert.ok(m[1], `${f}: one name per declaration: ${line}`);
            assert.ok(!owner.has(m[1]), `${m[1]} is in ${f} and ${owner.get(m[1])}`);
            owner.set(m[1], f);
        }
    }
});

test('imported names are exported where they come from', () => {
    for (const f of files()) {
        const imports = /^import \{ ([\w, ]+) \} from '\.\/([\w.]+)';$/gm;
        for (const [, names, from] of read(f).matchAll(imports)) {
            for (const n of names.split(', ')) {
                assert.match(read(from),
                    new RegExp(`^export (async )?(function|class|const) ${n}\\b`, 'm'),
                    `${f}: ${n} of ${from}`);
            }
        }
    }
});

test('the bundle is one script that parses, and asks for nothing outside', () => {
    const html = bundle('<!-- data -->');
    const code = /<script type="module">\n([^]*?)<\/script>/.exec(html)[1];
    assert.ok(!/^\s*(import|export) /m.test(code));
    assert.ok(html.includes('<!-- data -->') && !html.includes('src="main.js"'));
    assert.ok(!/https?:\/\//.test(html), 'no address of another machine');
    const dir = mkdtempSync(path.join(os.tmpdir(), 'heddle-view-'));
    writeFileSync(path.join(dir, 'page.mjs'), code);
    execFileSync(process.execPath, ['--check', path.join(dir, 'page.mjs')]);
    rmSync(dir, {recursive: true});
});

// ---- decoding

test('arrays of all types and codings decode to themselves', () => {
    const types = {u8: Uint8Array, u16: Uint16Array, u32: Uint32Array, i32: Int32Array,
        f32: Float32Array, f64: Float64Array};
    for (const [type, array] of Object.entries(types)) {
        const a = array.from({length: 257}, (_, i) => (i % 50 === 0 ? NONE : random(1e6) - 1000));
        const codings = ['raw', 'planes',
            ...(['u32', 'i32'].includes(type) ? ['delta', 'dplanes'] : [])];
        for (const coding of codings) {
            const b = encodeArray(a, coding), copy = new Uint8Array(b);
            assert.deepEqual(decodeArray(copy, {type, n: a.length, coding}), a,
                `${type} ${coding}`);
            const odd = new Uint8Array(b.length + 1);
            odd.set(b, 1);
            assert.deepEqual(decodeArray(odd.subarray(1), {type, n: a.length, coding}), a);
        }
        assert.equal(decodeArray(new Uint8Array(0), {type, n: 0, coding: 'raw'}).length, 0);
    }
});

test('raw deflate in base64 gives the bytes back; damage is an error', async () => {
    const bytes = Uint8Array.from({length: 100000}, (_, i) => i * i);
    const text = zlib.deflateRawSync(bytes).toString('base64');
    assert.deepEqual(await inflateRaw(decodeBase64(text), bytes.length), bytes);
    await assert.rejects(inflateRaw(decodeBase64(text), bytes.length + 1));
    await assert.rejects(inflateRaw(decodeBase64(text), bytes.length - 1));
    await assert.rejects(inflateRaw(decodeBase64(text).subarray(0, 200), bytes.length));
});

test('an array that cannot be read is empty and reported', async () => {
    const dir = {arrays: {a: {type: 'u32', n: 4, coding: 'raw'},
        b: {type: 'u32', n: 1, coding: 'new'}, c: {type: 'q9', n: 1, coding: 'raw'}}};
    const pack = new Pack(0, dir, async () => new Uint8Array(4));
    for (const name of ['a', 'b', 'c']) assert.equal((await pack.get(name)).length, 0);
    assert.equal((await pack.get('absent')).length, 0);
    assert.equal(pack.problems.length, 3);
    pack.source = async () => new Uint8Array(16);
    assert.equal((await pack.get('a')).length, 4, 'tried again');
});

test('data in the page cannot end the script', () => {
    const p = synth({nt: 2, title: '</script><b>'});
    assert.ok(!packScripts(p, 0).includes('</script><b>'));
});

// ---- level of detail

function randomSeries(n, classes) {
    const start = new Uint32Array(n), dur = new Uint32Array(n), cls = new Uint16Array(n);
    let t = 0;
    for (let i = 0; i < n; i++) {
        t += random(3) ? 0 : random(40);
        start[i] = t;
        dur[i] = random(20) ? random(12) : random(400);
        cls[i] = random(classes);
        t += dur[i];
    }
    return {start, dur, cls, span: t};
}

// Per bin of width w: class with most time (the lowest of equals), and time.
function bruteBins(s, w, shown) {
    const bins = Math.floor(s.span / w) + 1;
    const sum = Array.from({length: bins}, () => new Map()), hid = new Array(bins).fill(0);
    for (let i = 0; i < s.start.length; i++) {
        for (let t = s.start[i]; t < s.start[i] + s.dur[i]; t++) {
            const b = Math.floor(t / w), c = s.cls[i];
            if (shown && !shown[c]) hid[b]++;
            else sum[b].set(c, (sum[b].get(c) || 0) + 1);
        }
    }
    return sum.map((m, b) => {
        if (!m.size) return hid[b] ? [HIDDEN, hid[b]] : [EMPTY, 0];
        const best = [...m].sort((x, y) => y[1] - x[1] || x[0] - y[0])[0];
        return [best[0], [...m.values()].reduce((x, y) => x + y, 0)];
    });
}

for (const shown of [null, Uint8Array.of(1, 0, 1, 1, 0)]) {
    test(`pyramid equals brute force${shown ? ', filtered' : ''}`, () => {
        const s = randomSeries(6000, 5);
        const series = makeSeries(s.start, s.dur, s.cls, 0, 6000, s.span, shown);
        assert.equal(series.src, null);
        assert.ok(series.levels.length > 2);
        let below = null;
        for (const level of series.levels) {
            const want = bruteBins(s, level.w, shown);
            assert.equal(level.kern.length, want.length);
            for (let b = 0; b < want.length; b++) {
                if (!below) assert.deepEqual([level.kern[b], level.busy[b]], want[b], `bin ${b}`);
                else if (!shown) assert.equal(level.busy[b], want[b][1]);
                assert.equal(level.kern[b] === EMPTY, want[b][0] === EMPTY);
                assert.equal(level.kern[b] === HIDDEN, want[b][0] === HIDDEN);
            }
            below = level;
        }
        assert.ok(below.kern.length <= 256);
    });
}

test('overlapping pieces: what began last is on top', () => {
    for (let round = 0; round < 50; round++) {
        const n = 30, start = new Uint32Array(n), dur = new Uint32Array(n),
            cls = new Uint16Array(n);
        for (let i = 0; i < n; i++) {
            start[i] = (i ? start[i - 1] : 0) + random(6);
            dur[i] = random(25);
            cls[i] = i;
        }
        const top = new Array(400).fill(-1);
        for (let i = 0; i < n; i++) top.fill(i, start[i], start[i] + dur[i]);
        const f = flatten(start, dur, cls, 0, n);
        if (!f) continue;
        const got = new Array(400).fill(-1);
        for (let k = 0; k < f.start.length; k++) {
            if (k) assert.ok(f.start[k] >= f.start[k - 1] + f.dur[k - 1], 'disjoint, by start');
            got.fill(f.src[k], f.start[k], f.start[k] + f.dur[k]);
        }
        assert.deepEqual(got, top);
    }
});

test('a row of pixels has the covered share, drawn from pieces or bins', () => {
    const s = randomSeries(5000, 4);
    const series = makeSeries(s.start, s.dur, s.cls, 0, 5000, s.span);
    const row = new Row(500);
    const busy = new Uint8Array(s.span + 2);
    for (let i = 0; i < 5000; i++) busy.fill(1, s.start[i], s.start[i] + s.dur[i]);
    for (const [t0, t1] of [[0, s.span], [100, 1100], [s.span / 2, s.span / 2 + 500], [-200, 300],
        [s.span - 250, s.span + 250]]) {
        rasterSeries(row, series, t0, t1, null);
        const got = row.cover.reduce((a, b) => a + b, 0) * (t1 - t0) / 500;
        let want = 0;
        for (let t = Math.max(0, Math.ceil(t0)); t < Math.min(s.span, t1); t++) want += busy[t];
        const slack = row.direct ? 1e-3 * want + 2 : 0.04 * want;
        assert.ok(Math.abs(got - want) <= slack, `${t0}..${t1}: ${got} for ${want}`);
        for (let x = 0; x < 500; x++) assert.equal(row.kern[x] === EMPTY, row.cover[x] === 0);
    }
});

test('dense pieces without a pyramid: no pixel is left out', () => {
    const n = 200000, start = new Uint32Array(n), dur = new Uint32Array(n).fill(1);
    for (let i = 0; i < n; i++) start[i] = 2 * i;
    const s = {start, dur, cls: new Uint16Array(n), src: null, first: 0, n, levels: []};
    const row = new Row(100);
    rasterSeries(row, s, 0, 2 * n, null);
    assert.ok(row.kern.every((k) => k === 0));
});

test('the piece at a time, with some slack', () => {
    const start = Uint32Array.of(0, 10, 30), dur = Uint32Array.of(5, 5, 1);
    const s = makeSeries(start, dur, new Uint16Array(3), 0, 3, 40);
    assert.equal(pieceAt(s, 12, 0), 1);
    assert.equal(pieceAt(s, 7, 0), -1);
    assert.equal(pieceAt(s, 7, 2), 0);
    assert.equal(pieceAt(s, 9, 2), 1);
    assert.equal(pieceAt(s, 35, Infinity), 2);
    assert.equal(pieceAt(s, -3, 5), 0);
    assert.equal(upperBound(start, 10, 0, 3), 2);
});

test('a series shorter than a pyramid, and one without pieces', () => {
    const none = makeSeries(new Uint32Array(0), new Uint32Array(0), new Uint16Array(0), 0, 0, 0);
    assert.deepEqual(none.levels, []);
    assert.deepEqual(buildPyramid({n: 10}, 100, null), []);
    assert.equal(pieceAt(none, 0, Infinity), -1);
});

// ---- a run

test('idle time adds up to workers x makespan, and a mistake is noticed', () => {
    for (const opts of [{nt: 8}, {nt: 1}, {nt: 0}, {nt: 6, workers: 1, devices: 0},
        {nt: 5, level: 0}]) {
        const {dir} = synth(opts), s = idleSums(dir);
        assert.equal(s.sum, dir.nworkers * dir.makespan_ns);
        assert.ok(s.agree);
        if (!dir.tasks) continue;
        dir.lanes[0].idle.work += 1;
        assert.ok(!idleSums(dir).agree);
    }
});

test('energy: domains, kernels and the idle share add up', () => {
    assert.equal(energySums(synth({nt: 6}).dir), null);
    const measured = energySums(synth({nt: 6, energy: 'measured'}).dir);
    assert.equal(measured.model, null);
    assert.deepEqual(measured.domains.map((d) => d.name), ['package-0', 'gpu0']);
    const {dir} = synth({nt: 6, energy: 'model'}), s = energySums(dir),
        seconds = dir.makespan_ns / 1e9;
    assert.ok(Math.abs(s.measured - s.sum) < 1e-9 * s.sum);
    assert.ok(Math.abs([...s.kernels.values()].reduce((x, y) => x + y) -
        dir.energy.model.active) < 1e-9);
    assert.ok(Math.abs(s.idleShare - 100 * seconds / s.sum) < 1e-12);
    const [cpu, gpu] = s.domains;
    assert.ok(Math.abs(cpu.error - 0.02) < 1e-9 && Math.abs(gpu.mean - 60) < 1e-9);
    assert.equal(gpu.idle, 1);
    // What nobody knows is nothing, and does no harm.
    dir.energy.model.kernels[0].joules = null;
    dir.energy.domains = [];
    assert.ok(Number.isNaN(energySums(dir).domains[0].mean ?? NaN));
    assert.equal(energySums(dir).measured, 0);
    assert.equal(energySums({energy: {}}).domains.length, 0);
});

test('statistics of the whole range are the totals', async () => {
    const {run} = await openRun({nt: 14});
    const s = rangeStats(run, 0, run.dir.makespan_ns);
    run.dir.kernels.forEach((k, i) => {
        assert.equal(s.count[i], k.n);
        assert.equal(s.time[i] * run.unit, k.total_ns);
    });
    run.dir.causes.forEach((c, i) => {
        if (i > 0) assert.equal(s.gap[i] * run.unit, run.dir.total[c.name]);
    });
    const half = run.dir.makespan_ns / 2;
    const [a, b] = [rangeStats(run, 0, half), rangeStats(run, half, 2 * half)];
    a.time.forEach((t, i) => assert.equal(t + b.time[i], s.time[i]));
});

test('tasks: times, neighbours, operands, transfers', async () => {
    const {run, data} = await openRun({nt: 7});
    const n = run.dir.tasks, succ = Array.from({length: n}, () => []);
    assert.equal(n, taskCount(7));
    for (let t = 0; t < n; t++) for (const p of run.predecessors(t)) succ[p].push(t);
    for (let t = 0; t < n; t++) {
        assert.deepEqual(run.successors(t), [...new Set(succ[t])]);
        const x = run.task(t);
        assert.equal(x.id, t + 1);
        assert.equal(x.end - x.start, x.duration);
        assert.ok(x.ready <= x.start && x.submit <= x.ready);
        assert.equal(run.lanes[x.lane].name, x.laneName);
        assert.ok(run.operands(t).length >= 1);
        assert.ok(whyItWaited(run, x, run.predecessors(t)).length > 10);
    }
    const x = {...run.task(9), ready: null};
    const ends = run.predecessors(9).map((p) => run.task(p).end);
    assert.equal(readyTime(run, x, run.predecessors(9)), Math.max(x.submit, ...ends));
    assert.equal(readyTime(run, {...x, submit: null}, []), null);
    assert.equal(run.task(0).name, 'diagonal step 0');
    assert.equal(run.operands(0)[0].name, 'A(0,0)');
    assert.equal(run.links.length, 2);
    const moved = run.links.reduce((a, l) => a + l.index.length, 0);
    assert.equal(moved, data.arrays.xfer_start.length);
    assert.deepEqual(run.executions(5).map((e) => e.run), [data.arrays.task_run[5]]);
    const t = data.arrays.xfer_task[0];
    assert.ok(run.transfers(t).some((m) => m.index === 0));
});

test('links are by start, whatever the order of the transfers', async () => {
    const data = synth({nt: 9}), want = (await openRun({nt: 9})).run.links;
    for (const n of Object.keys(data.arrays)) if (n.startsWith('xfer_')) data.arrays[n].reverse();
    const run = new Run(packOf(data));
    await run.loadLanes();
    await run.loadLinks();
    assert.equal(run.links.length, want.length);
    run.links.forEach((l, k) => {
        assert.equal(l.name, want[k].name);
        assert.deepEqual(l.series.start, want[k].series.start);
        assert.deepEqual(l.series.dur, want[k].series.dur);
    });
});

test('a newer pack of the same executions takes the lanes of the older one', async () => {
    const old = (await openRun({nt: 6})).run, data = synth({nt: 6, generation: 2});
    const same = new Run(packOf(data));
    assert.ok(same.takeLanes(old));
    assert.equal(same.start, old.start);
    assert.equal(await same.pack.get('run_start'), old.start);
    assert.equal(same.lanes[1].dir, same.dir.lanes[1]);
    assert.equal(same.laneOfRun(0), old.laneOfRun(0));
    assert.ok(!new Run(packOf(synth({nt: 7}))).takeLanes(old));
});

test('a log without a graph, and one without tasks', async () => {
    const {run} = await openRun({nt: 4, level: 0});
    assert.deepEqual(run.predecessors(3), []);
    assert.deepEqual(run.successors(3), []);
    assert.deepEqual(run.operands(3), []);
    assert.equal(run.task(3).submit, null);
    assert.match(whyItWaited(run, run.task(3), []), /level 1/);
    const none = (await openRun({nt: 0})).run;
    assert.equal(none.dir.tasks, 0);
    assert.equal(searchTasks(none, 'gemm').length, 0);
    assert.equal(rangeStats(none, 0, 1).length, 0);
});

test('absent columns have their defaults', async () => {
    const data = synth({nt: 4});
    for (const name of ['task_name', 'task_parent', 'task_pred', 'task_ready', 'task_submit',
        'run_status', 'run_flags', 'task_prio', 'task_wait', 'xfer_handle', 'xfer_task']) {
        delete data.dir.arrays[name];
    }
    const run = new Run(packOf(data));
    await run.loadLanes();
    await run.loadTasks();
    await run.loadLinks();
    const t = run.task(5);
    assert.deepEqual([t.name, t.parent, t.predicted, t.ready, t.submit, t.status, t.wait],
        ['', NONE, null, null, null, 0, null]);
    assert.equal(run.transfer(0).handle, NONE);
    assert.equal(searchTasks(run, 'gemm').length, run.dir.kernels[3].n);
});

test('nonsense in the arrays does no harm', async () => {
    for (let round = 0; round < 150; round++) {
        const data = synth({nt: 6, coding: 'raw', seed: round + 1});
        const names = Object.keys(data.arrays).filter((n) => data.arrays[n].length);
        for (let k = 0; k < 6; k++) {
            const name = names[random(names.length)], a = data.arrays[name];
            const what = random(3);
            for (let i = 0; i < 10; i++) a[random(a.length)] = what ? random(4294967296)
                : random(100);
            if (what === 2) data.dir.arrays[name].n += 5;  // more than there is
        }
        const run = new Run(packOf(data)), row = new Row(200);
        await run.loadLanes();
        await run.loadTasks();
        await run.loadGaps();
        await run.loadLinks();
        await run.loadBlame();
        await run.loadBad();
        for (const l of [...run.lanes, ...run.links])
            rasterSeries(row, l.series, 0, run.span + 10, null);
        for (let t = 0; t < run.dir.tasks; t++) {
            const x = run.task(t), preds = run.predecessors(t);
            assert.equal(typeof whyItWaited(run, {...x, ready: readyTime(run, x, preds)}, preds),
                'string');
            run.successors(t);
            run.operands(t);
            run.executions(t);
            run.transfers(t);
        }
        rangeStats(run, 0, run.dir.makespan_ns);
        for (const q of ['gemm', 'operand:a', 'name:d', 'dur<1ms', '5']) searchTasks(run, q);
    }
    const none = new Run(new Pack(0, {version: 1}, async () => new Uint8Array(0)));
    await none.loadLanes();
    await none.loadTasks();
    assert.equal(none.makespan, 0);
});

// ---- search

test('search finds by kernel, name, operand, id and duration', async () => {
    const {run} = await openRun({nt: 9});
    const all = [...Array(run.dir.tasks).keys()];
    const expect = (query, match) => {
        const got = [...searchTasks(run, query)];
        assert.deepEqual([...got].sort((a, b) => a - b), all.filter(match), query);
        for (let i = 1; i < got.length; i++) {
            assert.ok(run.task(got[i - 1]).start <= run.task(got[i]).start, 'by start');
        }
    };
    const kernel = (t) => run.task(t).kernel;
    const ops = (t) => run.operands(t).map((o) => o.name.toLowerCase());
    expect('kernel:gemm', (t) => kernel(t) === 'gemm');
    expect('SYRK', (t) => kernel(t) === 'syrk');
    expect('name:step', (t) => run.task(t).name.includes('step'));
    expect('operand:A(3,1)', (t) => ops(t).includes('a(3,1)'));
    expect('id:17', (t) => t === 16);
    expect('#17', (t) => t === 16);
    expect('kernel:trsm operand:a(5,',
        (t) => kernel(t) === 'trsm' && ops(t).some((o) => o.includes('a(5,')));
    expect('dur>100us', (t) => run.task(t).duration > 1e5);
    expect('dur<30us kernel:gemm', (t) => run.task(t).duration <= 3e4 && kernel(t) === 'gemm');
    expect('is:pending', () => false);
    expect('is:ok', () => true);
    expect('nothing like this', () => false);
    assert.equal(searchTasks(run, '  ').length, 0);
});

test('search by outcome', async () => {
    const {run, data} = await openRun({nt: 5, failed: 6});
    data.arrays.task_run[3] = NONE;
    const other = new Run(packOf(data));
    await other.loadLanes();
    await other.loadTasks();
    const of = data.arrays.task_run;
    assert.deepEqual([...searchTasks(other, 'is:failed')].sort((a, b) => a - b),
        [...of.keys()].filter((t) => t !== 3 && of[t] % 6 === 0));
    assert.deepEqual([...searchTasks(other, 'is:pending')], [3]);
    assert.equal(other.pending, 1);
    assert.equal(other.task(3).ran, false);
    assert.match(whyItWaited(other, other.task(3), []), /never ran/);
    assert.equal(searchTasks(run, 'is:nonsense').length, 0);
});

test('queries and texts', () => {
    assert.deepEqual(parseQuery('id:5'), [{field: 'id', text: '5'}]);
    assert.deepEqual(parseQuery('dur>1.5ms')[0].ns, 1.5e6);
    const bytes = new TextEncoder().encode('abc\0Xab\0\0é ab\0');
    assert.deepEqual([...matchTexts(bytes, 'ab')], [0, 4, 9]);
    assert.deepEqual([...matchTexts(bytes, 'xa')], [4]);
    assert.deepEqual([...matchTexts(bytes, 'é')], [9]);
    assert.equal(matchTexts(bytes, '').size, 0);
});

// ---- smaller parts

test('the view stays inside, and zooms about a point', () => {
    const v = new View();
    v.resize(1e9, 10);
    assert.ok(v.isWhole);
    v.zoom(0.5, 2e8);
    const f = (2e8 - v.t0) / (v.t1 - v.t0);
    v.zoom(0.01, 2e8);
    assert.ok(Math.abs((2e8 - v.t0) / (v.t1 - v.t0) - f) < 1e-9);
    for (let i = 0; i < 100; i++) v.zoom(0.5, 3e8);
    assert.ok(Math.abs(v.t1 - v.t0 - 10) < 1e-6);
    v.pan(-1e12);
    assert.equal(v.t0, v.whole()[0]);
    const [a, b] = [v.t0, v.t1];
    v.resize(2e9, 10);
    assert.ok(Math.abs(v.t1 - v.t0 - (b - a)) < 1e-6 && !v.isWhole);
    v.reset();
    v.resize(3e9, 10);
    assert.ok(v.isWhole && v.t1 > 3e9, 'a view of everything follows');
    v.set(5, 1);
    assert.ok(v.isWhole, 'nonsense is ignored');
});

test('a curve per pixel: largest and smallest value', () => {
    const t = [0], v = [random(100)];
    while (t[t.length - 1] < 1000) { t.push(t[t.length - 1] + 1 + random(5)); v.push(random(100)); }
    const at = (x) => v[upperBound(t, x, 0, t.length) - 1];
    const hi = new Float64Array(50), lo = new Float64Array(50);
    curveColumns(t, v, 0, 1000, 50, hi, lo);
    for (let x = 0; x < 50; x++) {
        const all = [];
        for (let u = 20 * x; u < 20 * x + 20; u++) all.push(at(u));
        assert.ok(hi[x] >= Math.max(...all) && lo[x] <= Math.min(...all));
        all.push(at(Math.max(0, 20 * x - 1)));
        assert.ok(hi[x] <= Math.max(...all) && lo[x] >= Math.min(...all));
    }
});

test('colours depend on the names alone, and patterns tell more than seven apart', () => {
    const names = Array.from({length: 40}, (_, i) => `kernel${i}`);
    const a = assignStyles(names), b = assignStyles([...names].reverse());
    assert.deepEqual(a, b);
    const seen = new Set([...a.values()].map((s) => `${s.colour} ${s.pattern}`));
    assert.equal(seen.size, 40);
    assert.equal(inkOn('#ffffff'), '#000000');
    assert.equal(inkOn('#000040'), '#ffffff');
});

test('the address keeps the state', () => {
    const s = {t: [1000, 2000], task: 7, run: 1, q: 'a b&c', hide: ['x,y', 'z'], on: ['idle'],
        off: ['bounds'], theme: 'dark'};
    assert.deepEqual(readHash(writeHash(s)), s);
    assert.equal(writeHash({}), '');
    assert.deepEqual(readHash('#t=5,1&task=x&theme=pink'), {run: 0, hide: [], on: [], off: []});
});

test('two runs on one axis, or of equal length', async () => {
    const a = (await openRun({nt: 6})).run, b = (await openRun({nt: 8})).run;
    assert.equal(alignRuns([a, b], false), b.dir.makespan_ns);
    assert.equal(alignRuns([a, b], true), a.dir.makespan_ns);
    assert.ok(Math.abs(b.ns(b.span) - a.ns(a.span)) < a.unit + b.unit);
    assert.ok(Math.abs(b.units(b.ns(123)) - 123) < 1e-9);
});

test('numbers for people', () => {
    assert.equal(formatTime(1234567), '1.23 ms');
    assert.equal(formatTime(0), '0');
    assert.equal(formatCount(1234567), '1\u202f234\u202f567');
    assert.equal(formatCount(999), '999');
    assert.equal(formatMoment(117872012, 10), '117.872012 ms');
    assert.equal(formatMoment(1437696, 30720), '1.43770 ms');
    assert.equal(formatMoment(0, 5), '0');
    assert.equal(formatTime(NaN), '–');
    assert.equal(formatBytes(1536), '1.50 KiB');
    assert.equal(formatJoules(4563), '4.56 kJ');
    assert.equal(formatJoules(0.0123), '12.3 mJ');
    assert.equal(formatJoules(0), '0 J');
    assert.equal(niceStep(3e-7), 5e-7);
    assert.deepEqual(tickUnit(5e5, 3.6e6), ['ms', 1e6]);
    assert.equal(formatTick(1.5e6, 5e5, ['ms', 1e6]), '1.5 ms');
    assert.equal(formatTick(3e9, 100, ['µs', 1e3]), '3\u202f000\u202f000.0 µs');
});
