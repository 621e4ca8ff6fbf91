// SPDX-License-Identifier: BSD-3-Clause
// One run: its lanes as series, and questions about its tasks.
import { NONE } from './pack.js';
import { EMPTY, makeSeries, buildPyramid, upperBound } from './lod.js';
import { XFER_KINDS } from './colour.js';

// What drawing needs; and what the panel of a task needs.
const FIRST_ARRAYS = ['run_start', 'run_dur', 'run_kernel'];
const TASK_ARRAYS = ['run_task', 'run_status', 'run_flags', 'task_id', 'task_run',
    'task_submit', 'task_ready', 'task_pred', 'task_prio', 'task_name', 'task_wait',
    'task_parent', 'edge_off', 'edge_pred', 'op_off', 'op_handle', 'op_mode',
    'handle_name', 'handle_bytes', 'xfer_task', 'text'];
const XFER_ARRAYS = ['xfer_start', 'xfer_dur', 'xfer_src', 'xfer_dst', 'xfer_bytes',
    'xfer_handle', 'xfer_task', 'xfer_kind'];
const STATUS_NAMES = {0: 'ended well', 1: 'failed', 2: 'cancelled',
    3: 'declined, tried elsewhere', 7: 'never ran'};
const EMPTY_DIR = {unit_ns: 1, makespan_ns: 0, nworkers: 0, tasks: 0, runs: 0, edges: 0, handles: 0,
    lanes: [], kernels: [], nodes: [], modes: {}, causes: [], blames: [], curves: [], infos: [],
    total: {},
    blame: {}, bounds: null, arrays: {}, explained: true};
const MOST_BAD = 10000;
const FLAG_NAMES = [[0x08, 'ran inside a waiting task'], [0x10, 'helper of a gang'],
    [0x20, 'became a graph of smaller tasks'], [0x40, 'from a recorded graph']];

export class Run {
    constructor(pack) {
        this.pack = pack;
        this.stretch = 1;    // time of this run per time of the axis
        this.shown = null;   // per kernel: 0 when filtered
        this.styles = [];    // per kernel, set by the page
        this.dir = {...EMPTY_DIR, ...pack.dir};
        this.unit = this.dir.unit_ns || 1;
        this.span = Math.ceil((this.dir.makespan_ns || 0) / this.unit);
        this.lanes = [];     // workers and others, in the order of the log
        this.links = [];     // made of the transfers
        this.blame = null;   // series of the chain of blame
        this.decoder = new TextDecoder();
    }

    get name() { return this.dir.title || this.dir.file || `run ${this.pack.number + 1}`; }

    // Why there are no dependencies to show, as a sentence.
    get noGraph() {
        const [, level] = this.dir.infos.find(([key]) => key === 'log level') || ['', '0'];
        return Number(level) > 0 ? 'No task of this run depends on another.'
            : 'This log has no dependencies: record level 1.';
    }

    // Units <-> nanoseconds of the common axis.
    units(ns) { return ns * this.stretch / this.unit; }
    ns(units) { return units * this.unit / this.stretch; }
    get makespan() { return this.dir.makespan_ns / this.stretch; }

    // The first picture.
    async loadLanes() {
        const a = await this.pack.all(...FIRST_ARRAYS);
        this.start = a.run_start;
        this.dur = a.run_dur;
        this.kernel = a.run_kernel;
        for (let i = this.kernel.indexOf(EMPTY); i >= 0; i = this.kernel.indexOf(EMPTY, i)) {
            this.kernel[i] = EMPTY - 2;  // beyond the list of kernels; EMPTY is taken
        }
        this.lanes = (this.dir.lanes || []).map((d, index) => {
            const n = Math.max(0, Math.min(d.n, this.start.length - d.first));
            return {index, dir: d, name: d.name, kind: d.kind, gaps: null,
                series: makeSeries(this.start, this.dur, this.kernel, d.first, n,
                    this.span, this.shown)};
        });
        this.filled = this.lanes.filter((l) => l.dir.n).sort((p, q) => p.dir.first - q.dir.first);
        this.firsts = this.filled.map((l) => l.dir.first);
    }

    // Instead of loadLanes(), when an older run has the same executions.
    takeLanes(old) {
        const key = (d) => JSON.stringify([d.unit_ns, d.first_ns, d.makespan_ns, d.runs,
            d.kernels.map((k) => k.name), d.lanes.map((l) => [l.name, l.first, l.n])]);
        if (key(this.dir) !== key(old.dir)) return false;
        for (const k of ['start', 'dur', 'kernel', 'filled', 'firsts', 'shown']) this[k] = old[k];
        this.lanes = old.lanes.map((l) => ({...l, dir: this.dir.lanes[l.index], gaps: null}));
        this.filled = this.filled.map((l) => this.lanes[l.index]);
        for (const name of FIRST_ARRAYS) this.pack.put(name, old.pack.peek(name));
        return true;
    }

    // Idle gaps of all lanes, coloured by cause.
    async loadGaps() {
        const a = await this.pack.all('gap_start', 'gap_dur', 'gap_cause');
        this.hasGaps = true;
        for (const l of this.lanes) {
            const n = Math.max(0, Math.min(l.dir.gap_n || 0,
                a.gap_start.length - l.dir.gap_first));
            if (!l.gaps && n) {
                l.gaps = makeSeries(a.gap_start, a.gap_dur, a.gap_cause,
                    l.dir.gap_first, n, this.span);
            }
        }
    }

    // A lane per pair of memory nodes between which something moved.
    async loadLinks() {
        const a = await this.pack.all(...XFER_ARRAYS);
        this.xfer = a;
        const n = a.xfer_start.length, at = new Uint32Array(65537);
        const pair = (i) => a.xfer_src[i] * 256 + a.xfer_dst[i];
        for (let i = 0; i < n; i++) at[pair(i) + 1]++;
        const pairs = [];
        for (let p = 0; p < 65536; p++) {
            if (at[p + 1]) pairs.push([p, at[p], at[p] + at[p + 1]]);
            at[p + 1] += at[p];
        }
        const order = new Uint32Array(n);
        for (let i = 0; i < n; i++) order[at[pair(i)]++] = i;
        const node = (i) => (this.dir.nodes[i] || {name: `node ${i}`}).name;
        this.links = pairs.map(([key, first, last]) => {
            const index = order.subarray(first, last);  // by request, mostly by start too
            if (index.some((p, i) => i && a.xfer_start[p] < a.xfer_start[index[i - 1]])) {
                index.sort((p, q) => a.xfer_start[p] - a.xfer_start[q]);
            }
            const start = index.map((i) => a.xfer_start[i]);
            const dur = index.map((i) => a.xfer_dur[i]);
            const cls = index.map((i) => a.xfer_kind[i]);
            return {kind: 'link', name: `${node(key >> 8)} → ${node(key & 255)}`, index,
                series: makeSeries(start, dur, cls, 0, index.length, this.span)};
        });
    }

    async loadBlame() {
        const a = await this.pack.all('step_start', 'step_dur', 'step_task', 'step_blame');
        if (a.step_start.length) {
            this.blame = {kind: 'blame', name: 'chain of blame', task: a.step_task,
                series: makeSeries(a.step_start, a.step_dur, a.step_blame, 0,
                    a.step_start.length, this.span)};
        }
    }

    async loadTasks() {
        const a = await this.pack.all(...TASK_ARRAYS);
        if (this.pending === undefined) {
            this.pending = 0;
            const of = a.task_run;
            for (let t = 0; t < of.length; t++) if (of[t] === NONE) this.pending++;
        }
        return a;
    }

    // Executions that failed, were cancelled or declined; the first MOST_BAD.
    async loadBad() {
        const status = await this.pack.get('run_status');
        this.bad = [];
        this.badCount = 0;
        for (let r = 0; r < status.length; r++) {
            if (status[r] === 0) continue;
            if (this.badCount++ < MOST_BAD) this.bad.push(r);
        }
    }

    // All executions of a task: it may be repeated, or run on a gang.
    executions(index) {
        const of = this.pack.peek('run_task'), status = this.pack.peek('run_status'), out = [];
        for (let r = of.indexOf(index); r >= 0 && out.length < MOST_BAD;
            r = of.indexOf(index, r + 1)) {
            const s = status[r] ?? 0;
            out.push({run: r, lane: this.laneOfRun(r), start: this.start[r] * this.unit,
                duration: this.dur[r] * this.unit, status: STATUS_NAMES[s] || `status ${s}`});
        }
        return out.sort((a, b) => a.start - b.start);
    }

    // `shown` per kernel of this run, or null.
    filter(shown) {
        this.shown = shown;
        for (const l of this.lanes) {
            l.series.levels = buildPyramid(l.series, this.span, shown);
        }
    }

    // Index of the lane of an execution, or -1.
    laneOfRun(run) {
        const i = upperBound(this.firsts, run, 0, this.firsts.length) - 1, l = this.filled[i];
        return l && run < l.dir.first + l.dir.n ? l.index : -1;
    }

    // The execution at a piece of a lane's series.
    runOfPiece(lane, piece) { return lane.series.src ? lane.series.src[piece] : piece; }

    text(offset) {
        const bytes = this.pack.peek('text');
        if (!bytes || !(offset < bytes.length)) return '';
        let end = bytes.indexOf(0, offset);
        if (end < 0) end = bytes.length;
        return this.decoder.decode(bytes.subarray(offset, end));
    }

    kernelName(k) { return (this.dir.kernels[k] || {name: '?'}).name; }

    handleName(h) {
        const names = this.pack.peek('handle_name');
        return (names && this.text(names[h])) || `handle ${h}`;
    }

    // All the page knows of a task. Needs loadTasks().
    task(index) {
        const p = (name) => this.pack.peek(name);
        const column = (name) => {
            const a = p(name);
            return a && index < a.length ? a[index] : NONE;
        };
        const run = column('task_run'), ran = run !== NONE && run < this.start.length;
        const unit = (u) => u === NONE ? null : u * this.unit;
        const flags = ran ? (p('run_flags')[run] || 0) : 0;
        const status = ran ? p('run_status')[run] ?? 0 : 7;
        const start = ran ? this.start[run] * this.unit : null;
        const end = ran ? start + this.dur[run] * this.unit : null;
        const lane = ran ? this.laneOfRun(run) : -1;
        return {index, run, ran, start, end, lane,
            duration: ran ? end - start : null,
            id: column('task_id'),
            kernel: ran ? this.kernelName(this.kernel[run]) : '?',
            kernelIndex: ran ? this.kernel[run] : NONE,
            name: this.text(column('task_name')),
            laneName: lane >= 0 ? this.lanes[lane].name : '–',
            status, statusName: STATUS_NAMES[status] || `status ${status}`,
            flags: FLAG_NAMES.filter(([bit]) => flags & bit).map(([, name]) => name),
            submit: unit(column('task_submit')), ready: unit(column('task_ready')),
            predicted: unit(column('task_pred')),
            priority: index < p('task_prio').length ? p('task_prio')[index] : null,
            parent: column('task_parent'),
            wait: (this.dir.causes || [])[column('task_wait')] || null};
    }

    predecessors(index) {
        const off = this.pack.peek('edge_off'), pred = this.pack.peek('edge_pred');
        if (!off || index + 1 >= off.length) return [];
        return Array.from(pred.subarray(off[index], off[index + 1]));
    }

    // Successors by looking through the edges: no inverted copy is kept.
    successors(index) {
        const off = this.pack.peek('edge_off'), pred = this.pack.peek('edge_pred');
        const out = [];
        if (!off || !off.length) return out;
        for (let e = pred.indexOf(index); e >= 0; e = pred.indexOf(index, e + 1)) {
            const s = upperBound(off, e, 0, off.length) - 1;
            if (out[out.length - 1] !== s) out.push(s);
        }
        return out;
    }

    operands(index) {
        const off = this.pack.peek('op_off'), out = [];
        if (!off || index + 1 >= off.length) return out;
        const handle = this.pack.peek('op_handle'), mode = this.pack.peek('op_mode');
        const bytes = this.pack.peek('handle_bytes');
        const end = Math.min(off[index + 1], handle.length);
        for (let i = off[index]; i < end; i++) {
            const m = mode[i];
            out.push({handle: handle[i], name: this.handleName(handle[i]),
                mode: this.dir.modes[m] || `mode ${m}`,
                bytes: bytes && handle[i] < bytes.length ? bytes[handle[i]] : NaN});
        }
        return out;
    }

    // Transfers made for a task. Needs loadLinks().
    transfers(index) {
        const out = [], a = this.xfer;
        if (!a) return out;
        const of = a.xfer_task;
        for (let i = of.indexOf(index); i >= 0; i = of.indexOf(index, i + 1)) {
            out.push(this.transfer(i));
        }
        return out;
    }

    transfer(i) {
        const a = this.xfer, node = (k) => (this.dir.nodes[k] || {name: `node ${k}`}).name;
        return {index: i, from: node(a.xfer_src[i]), to: node(a.xfer_dst[i]),
            bytes: a.xfer_bytes[i], kind: XFER_KINDS[a.xfer_kind[i]] || 'transfer',
            start: a.xfer_start[i] * this.unit, duration: a.xfer_dur[i] * this.unit,
            handle: a.xfer_handle[i] ?? NONE, task: a.xfer_task[i] ?? NONE};
    }
}
