// SPDX-License-Identifier: BSD-3-Clause
// Synthetic packs (docs/formats/view.md) for tests: a tiled Cholesky of nt x nt
// tiles, scheduled greedily on workers and device streams. Everything the page
// shows is there: dependencies, operands, transfers, gaps, curves, marks.

export const NONE = 0xffffffff;
export const CAUSES = ['work', 'waste', 'data', 'memory', 'overhead', 'start',
    'end', 'sched', 'submit', 'deps', 'unknown'];
const CAUSE_TEXT = ['in a task that ended well',
    'in an execution that failed or had to be repeated',
    'operands of its next task were on their way',
    'its next task waited for room', 'in the runtime',
    'no task of the run had begun yet', 'no task of the run was left to begin',
    'a task that it could run was ready',
    'what could have run was not submitted yet',
    'no ready task: all waited for others', 'the log has not enough to tell'];
const BLAMES = ['exec', 'transfer', 'queue', 'submit', 'overhead'];
const KERNELS = ['potrf', 'trsm', 'syrk', 'gemm'];
const COST = [[60, 90, 80, 150], [90, 30, 22, 24]];  // units: worker, device
const TYPES = {u8: Uint8Array, u16: Uint16Array, u32: Uint32Array,
    i32: Int32Array, f32: Float32Array, f64: Float64Array};

function random(seed) {
    let s = seed >>> 0 || 1;
    return () => {
        s ^= s << 13; s ^= s >>> 17; s ^= s << 5;
        return (s >>> 0) / 4294967296;
    };
}

export function taskCount(nt) { return nt * (nt + 1) * (nt + 2) / 6; }

// Tasks in submission order: kernel, and up to three predecessors and operands.
function cholesky(nt) {
    const n = taskCount(nt);
    const kernel = new Uint8Array(n), level = new Uint16Array(n);
    const off = new Uint32Array(n + 1), pred = new Uint32Array(3 * n);
    const opHandle = new Uint32Array(3 * n), opMode = new Uint8Array(3 * n);
    const opOff = new Uint32Array(n + 1);
    const last = new Uint32Array(nt * nt).fill(NONE);
    let t = 0, e = 0, o = 0;
    const add = (kind, k, reads, write) => {
        kernel[t] = kind;
        level[t] = k;
        for (const h of [...reads, write]) {
            if (last[h] !== NONE) pred[e++] = last[h];
            opHandle[o] = h;
            opMode[o++] = h === write ? 3 : 1;
        }
        last[write] = t++;
        off[t] = e;
        opOff[t] = o;
    };
    const one = [0], two = [0, 0];
    for (let k = 0; k < nt; k++) {
        add(0, k, [], k * nt + k);
        for (let i = k + 1; i < nt; i++) {
            one[0] = k * nt + k;
            add(1, k, one, i * nt + k);
        }
        for (let i = k + 1; i < nt; i++) {
            one[0] = i * nt + k;
            add(2, k, one, i * nt + i);
            for (let j = k + 1; j < i; j++) {
                two[0] = i * nt + k;
                two[1] = j * nt + k;
                add(3, k, two, i * nt + j);
            }
        }
    }
    return {n, kernel, level, off, pred: pred.subarray(0, e),
        opOff, opHandle: opHandle.subarray(0, o), opMode: opMode.subarray(0, o)};
}

// Greedy in submission order; returns where and when each task ran.
function schedule(g, workers, devices, rnd) {
    const lanes = workers + devices;
    const avail = new Float64Array(lanes);
    const start = new Uint32Array(g.n), dur = new Uint32Array(g.n);
    const ready = new Uint32Array(g.n), lane = new Uint16Array(g.n);
    const submit = new Uint32Array(g.n), moved = new Uint32Array(g.n);
    for (let t = 0; t < g.n; t++) {
        submit[t] = Math.floor(t * 0.4);
        let r = submit[t] + 2;
        for (let e = g.off[t]; e < g.off[t + 1]; e++) {
            const p = g.pred[e];
            r = Math.max(r, start[p] + dur[p] + 1);
        }
        ready[t] = r;
        let best = 0, end = Infinity;
        for (let w = 0; w < lanes; w++) {
            const c = COST[w < workers ? 0 : 1][g.kernel[t]];
            const f = Math.max(avail[w], r) + c - avail[w] * 1e-6;
            if (f < end) { end = f; best = w; }
        }
        lane[t] = best;
        const device = best >= workers;
        moved[t] = device && rnd() < 0.3 ? 4 + Math.floor(rnd() * 8) : 0;
        start[t] = Math.max(avail[best] + 1, r + moved[t]);
        dur[t] = Math.max(2, Math.round(COST[device ? 1 : 0][g.kernel[t]] *
            (0.9 + 0.25 * rnd())));
        avail[best] = start[t] + dur[t];
    }
    return {lane, start, dur, ready, submit, moved, makespan: Math.max(...avail)};
}

function bytesOf(value, type) { return TYPES[type].from(value); }

// Steps of a sum of changes `by(at)` in [0, span], at most `max` of them: per
// bin the largest value.
function stepCurve(changes, span, max) {
    const diff = new Float64Array(span + 2);
    changes((at, by) => { diff[Math.min(at, span)] += by; });
    const t = [], v = [], bin = Math.max(1, Math.ceil((span + 1) / max));
    let now = 0;
    for (let at = 0; at <= span; at += bin) {
        let top = -Infinity;
        for (let i = at; i < Math.min(at + bin, span + 1); i++) {
            now += diff[i];
            top = Math.max(top, now);
        }
        if (!v.length || v[v.length - 1] !== top) { t.push(at); v.push(top); }
    }
    return {t, v};
}

// {dir, arrays: {name: typed array, decoded}}. Options: nt, workers, devices,
// seed, unit (ns), level (0: no graph), coding (planes, delta, raw), title, live,
// generation, failed (every n-th execution).
export function synth(opts = {}) {
    const o = {nt: 12, workers: 4, devices: 2, seed: 7, unit: 1024, level: 1,
        title: 'cholesky', coding: 'planes', generation: 1, live: false, packs: 1, ...opts};
    const rnd = random(o.seed), g = cholesky(o.nt);
    const s = schedule(g, o.workers, o.devices, rnd);
    const span = g.n ? s.makespan : 0, nl = o.workers + o.devices;
    const a = {}, types = {};
    const put = (name, type, value) => {
        types[name] = type;
        a[name] = value instanceof TYPES[type] ? value : bytesOf(value, type);
    };
    // Runs by lane (a stable counting sort keeps them by start).
    const count = new Uint32Array(nl + 1);
    for (let t = 0; t < g.n; t++) count[s.lane[t] + 1]++;
    for (let l = 0; l < nl; l++) count[l + 1] += count[l];
    const at = count.slice(), order = new Uint32Array(g.n), runOf = new Uint32Array(g.n);
    for (let t = 0; t < g.n; t++) {
        runOf[t] = at[s.lane[t]]++;
        order[runOf[t]] = t;
    }
    put('run_start', 'u32', order.map((t) => s.start[t]));
    put('run_dur', 'u32', order.map((t) => s.dur[t]));
    put('run_kernel', 'u16', Uint16Array.from(order, (t) => g.kernel[t]));
    put('run_task', 'u32', order);
    put('run_status', 'u8', new Uint8Array(g.n).map((_, r) =>
        (o.failed && r % o.failed === 0 ? 1 : 0)));
    put('run_flags', 'u8', new Uint8Array(g.n));
    // Gaps: what a lane does between tasks, all of it.
    const gs = [], gd = [], gc = [], lanes = [];
    const total = Object.fromEntries(CAUSES.map((c) => [c, 0]));
    let first = Infinity, lastStart = 0;
    for (let t = 0; t < g.n; t++) {
        first = Math.min(first, s.start[t]);
        lastStart = Math.max(lastStart, s.start[t]);
    }
    for (let l = 0; l < nl; l++) {
        const idle = Object.fromEntries(CAUSES.map((c) => [c, 0]));
        const gapFirst = gs.length;
        let cur = 0;
        const gap = (from, to, cause) => {
            if (to <= from) return;
            gs.push(from); gd.push(to - from); gc.push(CAUSES.indexOf(cause));
            idle[cause] += (to - from) * o.unit;
        };
        for (let r = count[l]; r < count[l + 1]; r++) {
            const t = order[r], b = s.start[t];
            const m = Math.max(cur, b - s.moved[t]);
            const h = Math.max(cur, Math.min(m, first));
            gap(cur, h, 'start');
            gap(h, m, m - h <= 2 ? 'overhead' : o.level ? 'deps' : 'unknown');
            gap(m, b, 'data');
            idle.work += s.dur[t] * o.unit;
            cur = b + s.dur[t];
        }
        gap(cur, Math.max(cur, Math.min(span, lastStart)), o.level ? 'deps' : 'unknown');
        gap(Math.max(cur, Math.min(span, lastStart)), span, 'end');
        for (const c of CAUSES) total[c] += idle[c];
        const device = l >= o.workers;
        lanes.push({name: device ? `gpu 0 stream ${l - o.workers}` : `worker ${l}`,
            kind: device ? 'device' : 'worker', node: device ? 1 : 0,
            first: count[l], n: count[l + 1] - count[l], gap_first: gapFirst,
            gap_n: gs.length - gapFirst, is_worker: true, idle});
    }
    put('gap_start', 'u32', gs);
    put('gap_dur', 'u32', gd);
    put('gap_cause', 'u8', gc);
    // Text: names of handles, and of some tasks.
    const text = [], offsets = new Map();
    const intern = (name) => {
        let off = offsets.get(name);
        if (off === undefined) {
            off = text.length;
            offsets.set(name, off);
            for (const b of Buffer.from(name)) text.push(b);
            text.push(0);
        }
        return off;
    };
    put('task_id', 'u32', Uint32Array.from(order, (_, t) => t + 1));
    put('task_run', 'u32', runOf);
    put('task_submit', 'u32', o.level ? s.submit : new Uint32Array(g.n).fill(NONE));
    put('task_ready', 'u32', o.level ? s.ready : new Uint32Array(g.n).fill(NONE));
    put('task_pred', 'u32', Uint32Array.from(order, (_, t) =>
        COST[s.lane[t] < o.workers ? 0 : 1][g.kernel[t]]));
    put('task_prio', 'i32', Int32Array.from(g.level, (k) => o.nt - k));
    put('task_name', 'u32', Uint32Array.from(g.kernel, (k, t) =>
        k === 0 ? intern(`diagonal step ${g.level[t]}`) : NONE));
    put('task_wait', 'u8', Uint8Array.from(g.kernel, (_, t) => s.moved[t] ? 2 :
        s.start[t] > s.ready[t] + 1 ? 7 : 4));
    put('task_parent', 'u32', new Uint32Array(g.n).fill(NONE));
    const nh = o.nt * o.nt;
    if (o.level) {
        put('edge_off', 'u32', g.off);
        put('edge_pred', 'u32', g.pred);
        put('op_off', 'u32', g.opOff);
        put('op_handle', 'u32', g.opHandle);
        put('op_mode', 'u8', g.opMode);
        put('handle_name', 'u32', Uint32Array.from({length: nh}, (_, h) =>
            intern(`A(${Math.floor(h / o.nt)},${h % o.nt})`)));
        put('handle_bytes', 'f64', new Float64Array(nh).fill(8 * 512 * 512));
        put('handle_parent', 'u32', new Uint32Array(nh).fill(NONE));
    }
    // Transfers to the device, and back for what a worker reads.
    const xf = [];
    for (let t = 0; t < g.n; t++) {
        if (s.moved[t]) {
            xf.push([s.start[t] - s.moved[t], s.moved[t], 0, 1,
                g.opHandle[g.opOff[t]], t, t % 5 ? 0 : 1]);
        }
        if (o.devices && g.kernel[t] === 1 && s.lane[t] >= o.workers) {
            xf.push([s.start[t] + s.dur[t], 5, 1, 0, g.opHandle[g.opOff[t]], t, 2]);
        }
    }
    xf.sort((p, q) => p[0] - q[0]);
    put('xfer_start', 'u32', xf.map((x) => x[0]));
    put('xfer_dur', 'u32', xf.map((x) => Math.min(x[1], span - x[0])));
    put('xfer_src', 'u8', xf.map((x) => x[2]));
    put('xfer_dst', 'u8', xf.map((x) => x[3]));
    put('xfer_bytes', 'f64', xf.map(() => 8 * 512 * 512));
    put('xfer_handle', 'u32', xf.map((x) => x[4]));
    put('xfer_task', 'u32', xf.map((x) => x[5]));
    put('xfer_kind', 'u8', xf.map((x) => x[6]));
    // The chain of blame: back from the last task over its latest predecessor.
    const chain = [];
    let cur = 0;
    for (let t = 1; t < g.n; t++) {
        if (s.start[t] + s.dur[t] > s.start[cur] + s.dur[cur]) cur = t;
    }
    for (let t = g.n ? cur : NONE; t !== NONE;) {
        chain.push(t);
        let p = NONE;
        for (let e = g.off[t]; e < g.off[t + 1]; e++) {
            const q = g.pred[e];
            if (p === NONE || s.start[q] + s.dur[q] > s.start[p] + s.dur[p]) p = q;
        }
        t = p;
    }
    chain.reverse();
    const steps = [], blame = Object.fromEntries(BLAMES.map((b) => [b, 0]));
    let now = 0;
    const step = (to, task, why) => {
        if (to <= now) return;
        steps.push([now, to - now, task, why]);
        blame[BLAMES[why]] += (to - now) * o.unit;
        now = to;
    };
    for (const t of chain) {
        step(Math.min(s.start[t], s.submit[t]), t, 3);
        step(s.start[t] - s.moved[t], t, s.start[t] - s.ready[t] > 3 ? 2 : 4);
        step(s.start[t], t, 1);
        step(s.start[t] + s.dur[t], t, 0);
    }
    step(span, NONE, 4);
    put('path_task', 'u32', o.level ? chain : []);
    put('step_start', 'u32', steps.map((x) => x[0]));
    put('step_dur', 'u32', steps.map((x) => x[1]));
    put('step_task', 'u32', steps.map((x) => x[2]));
    put('step_blame', 'u8', steps.map((x) => x[3]));
    const marks = g.n ? [[Math.floor(span / 3), 'first third'],
        [Math.floor(2 * span / 3), 'second third']] : [];
    put('mark_t', 'u32', marks.map((m) => m[0]));
    put('mark_lane', 'u32', marks.map(() => 0));
    put('mark_text', 'u32', marks.map((m) => intern(m[1])));
    put('mark_phase', 'u8', marks.map(() => 0));
    put('text', 'u8', text);
    // Curves.
    const curves = [];
    const curve = (name, kind, unit, limit, changes) => {
        const k = curves.length, c = stepCurve(changes, span, 65536);
        put(`curve_t_${k}`, 'u32', c.t);
        put(`curve_v_${k}`, 'f32', c.v);
        curves.push({name, kind, unit, max: c.v.reduce((x, y) => Math.max(x, y), 0),
            limit, array_t: `curve_t_${k}`, array_v: `curve_v_${k}`});
    };
    const each = (from, to, by = 1) => (add) => {
        for (let t = 0; t < g.n; t++) {
            add(from(t), by);
            add(to(t), -by);
        }
    };
    const end = (t) => s.start[t] + s.dur[t];
    curve('running tasks', 'running', 'tasks', nl, each((t) => s.start[t], end));
    if (o.level) {
        curve('ready tasks', 'ready', 'tasks', null, each((t) => s.ready[t], (t) => s.start[t]));
        curve('submitted tasks', 'submitted', 'tasks', null, each((t) => s.submit[t], end));
        if (o.devices) {
            const tile = 8 * 512 * 512, budget = 40 * tile;
            curve('memory of gpu 0', 'memory', 'B', budget, (add) => {
                let used = 0;
                for (const x of xf) {
                    if (x[2] === 0 && used < 38) { used++; add(x[0], tile); }
                    else if (used > 5) { used -= 2; add(x[0], -2 * tile); }
                }
            });
            curve('power of gpu0', 'power', 'W', null, each((t) => s.start[t], end, 55));
        }
    }
    const arrays = {};
    for (const name of Object.keys(a)) {
        const diff = ['u32', 'i32'].includes(types[name]);
        const coding = o.coding === 'planes' ? (diff ? 'dplanes' : 'planes')
            : o.coding === 'delta' && diff ? 'delta' : 'raw';
        arrays[name] = {type: types[name], n: a[name].length, coding};
    }
    const makespan = span * o.unit;
    const perKernel = KERNELS.map((name, k) => {
        const d = [];
        for (let t = 0; t < g.n; t++) if (g.kernel[t] === k) d.push(s.dur[t]);
        d.sort((x, y) => x - y);
        return {name, n: d.length, total_ns: d.reduce((x, y) => x + y, 0) * o.unit,
            median_ns: (d[d.length >> 1] || 0) * o.unit, min_ns: (d[0] || 0) * o.unit,
            max_ns: (d[d.length - 1] || 0) * o.unit, model_error: d.length ? 0.06 : null};
    });
    const best = Math.round(makespan * 0.87);
    const dir = {version: 1, title: o.title, file: `${o.title}.log`, unit_ns: o.unit,
        system_ns: 3500000, system_tasks: 2,
        makespan_ns: makespan, first_ns: 5000, wall_ns: 1794700000e9, nworkers: nl,
        generation: o.generation, live: o.live, packs: o.packs, partial: o.partial || '',
        infos: [['scheduler', 'eft'], ['cpu', 'synthetic'],
            ['log level', String(o.level)], ['tiles', String(o.nt)]],
        lanes, total, causes: CAUSES.map((name, i) => ({name, text: CAUSE_TEXT[i]})),
        blame, blames: BLAMES, modes: {1: 'read', 3: 'read, write'}, kernels: perKernel,
        nodes: [{name: 'host', bytes: 64e9}, {name: 'gpu 0', bytes: 40 * 8 * 512 * 512}],
        handles: o.level ? nh : 0, tasks: g.n, runs: g.n, edges: o.level ? g.pred.length : 0,
        bounds: o.level && g.n ? {kind: {path: Math.round(makespan * 0.55),
            area: Math.round(makespan * 0.8), mixed: Math.round(makespan * 0.85),
            window: best}, best, durations: 'measured medians'} : null,
        energy_why: o.energy ? null : 'no counter: this run is made up',
        energy: o.energy ? synthEnergy(o, perKernel, makespan / 1e9) : null, curves, arrays};
    return {dir, arrays: a};
}

// Two domains of 40 and 60 W when idle; kernel k draws 10 (k + 1) W more. The model is
// of the first one and 2 % high. energy: 'measured' or 'model'.
function synthEnergy(o, kernels, seconds) {
    const rows = kernels.map((k, i) => ({name: k.name, variant: '', device: 'cpu', tasks: k.n,
        seconds: k.total_ns / 1e9, watts: 10 * (i + 1), joules: 10 * (i + 1) * k.total_ns / 1e9}));
    const active = rows.reduce((x, r) => x + r.joules, 0), idle = 100 * seconds;
    const domains = [
        {name: 'package-0', device: 'cpu', joules: 40 * seconds + active, seconds, peak_watts: 300},
        {name: 'gpu0', device: 'cuda0', joules: 60 * seconds, seconds, peak_watts: 61}];
    if (o.energy === 'measured') return {domains, model: null};
    const of = (d, still, work) => ({name: d.name, device: d.device, joules: still + work,
        idle: still, active: work, move: 0, measured: d.joules, predicted: 1.02 * d.joules});
    return {domains, model: {file: 'made-up.energy', seconds, joules: idle + active, idle, active,
        move: 0, unknown_tasks: 3,
        domains: [of(domains[0], 40 * seconds, active), of(domains[1], 60 * seconds, 0)],
        kernels: rows.filter((r) => r.tasks)}};
}

// The bytes of an array as the format stores them.
export function encodeArray(array, coding) {
    let out = array;
    if (coding === 'delta' || coding === 'dplanes') {
        out = new Uint32Array(array.length);
        for (let i = 0; i < array.length; i++) {
            const d = array[i] - (i ? array[i - 1] : 0) | 0;
            out[i] = coding === 'delta' ? d : d << 1 ^ d >> 31;
        }
    }
    const raw = Buffer.from(out.buffer, out.byteOffset, out.byteLength);
    if (!coding.endsWith('planes')) return raw;
    const n = array.length, k = out.BYTES_PER_ELEMENT, planes = Buffer.alloc(raw.length);
    for (let b = 0; b < k; b++) for (let i = 0; i < n; i++) planes[b * n + i] = raw[i * k + b];
    return planes;
}
