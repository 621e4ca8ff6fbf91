// SPDX-License-Identifier: BSD-3-Clause
// Search: a number is an id; words are looked for in kernels, names of tasks and
// names of operands; "kernel:", "name:", "operand:", "id:" say where; "dur>1ms"
// finds long tasks, "is:failed" those that failed (or cancelled, declined, pending).
// All words must match.
import { NONE } from './pack.js';

const SORT_LIMIT = 300000;
const DURATION = /^dur([<>])([0-9.]+)(ns|us|µs|ms|s)?$/;
const STATUS_WORDS = {ok: 0, failed: 1, cancelled: 2, declined: 3, pending: 7};
const PER_UNIT = {ns: 1, us: 1e3, 'µs': 1e3, ms: 1e6, s: 1e9};

// [{field, text}] of a query.
export function parseQuery(query) {
    return query.trim().toLowerCase().split(/\s+/).filter(Boolean).map((word) => {
        const d = DURATION.exec(word);
        if (d) return {field: 'dur', sign: d[1], ns: Number(d[2]) * PER_UNIT[d[3] || 'ns']};
        const m = /^(kernel|name|operand|id|is):(.*)$/.exec(word);
        if (m && m[2]) return {field: m[1], text: m[2]};
        const id = /^#?(\d+)$/.exec(word);
        if (id) return {field: 'id', text: id[1], loose: word[0] !== '#'};
        return {field: 'any', text: word};
    });
}

// Marks the first byte of each text that contains `word`.
export function matchTexts(bytes, word) {
    const starts = new Set(), want = new TextEncoder().encode(word);
    if (!want.length || !bytes) return starts;
    const first = want[0], upper = first >= 97 && first <= 122 ? first - 32 : first;
    let begin = 0;
    for (let i = 0; i < bytes.length; i++) {
        const b = bytes[i];
        if (b === 0) { begin = i + 1; continue; }
        if (b !== first && b !== upper) continue;
        let k = 1;
        while (k < want.length) {
            let c = bytes[i + k];
            if (c >= 65 && c <= 90) c += 32;
            if (c !== want[k]) break;
            k++;
        }
        if (k === want.length) starts.add(begin);
    }
    return starts;
}

// One byte per task: whether it matches the term.
function matchTerm(run, term) {
    const n = run.dir.tasks, hit = new Uint8Array(n), p = (name) => run.pack.peek(name);
    const {field, text} = term, any = field === 'any';
    if (field === 'id') {
        const ids = p('task_id'), id = Number(text) >>> 0;
        for (let t = ids.indexOf(id); t >= 0; t = ids.indexOf(id, t + 1)) hit[t] = 1;
        if (!term.loose) return hit;
    }
    const of = p('task_run');
    if (field === 'dur') {
        const limit = term.ns / run.unit, longer = term.sign === '>';
        for (let t = 0; t < n; t++) {
            if (of[t] < run.dur.length && (run.dur[of[t]] > limit) === longer) hit[t] = 1;
        }
        return hit;
    }
    if (field === 'is') {
        const want = STATUS_WORDS[text], status = p('run_status');
        for (let t = 0; t < n; t++) {
            if ((of[t] < run.dur.length ? status[of[t]] ?? 0 : 7) === want) hit[t] = 1;
        }
        return hit;
    }
    const loose = any || term.loose;
    if (any || field === 'kernel') {
        const match = run.dir.kernels.map((k) => k.name.toLowerCase().includes(text));
        if (match.includes(true)) {
            for (let t = 0; t < n; t++) if (match[run.kernel[of[t]]]) hit[t] = 1;
        }
    }
    if (!(loose || field === 'name' || field === 'operand')) return hit;
    const starts = matchTexts(p('text'), text), names = p('task_name');
    if (starts.size && (loose || field === 'name')) {
        for (let t = 0; t < n; t++) if (starts.has(names[t])) hit[t] = 1;
    }
    if (starts.size && (loose || field === 'operand')) markOperands(run, starts, hit);
    return hit;
}

function markOperands(run, starts, hit) {
    const names = run.pack.peek('handle_name'), off = run.pack.peek('op_off');
    const handle = run.pack.peek('op_handle');
    const wanted = Uint8Array.from(names, (o) => (starts.has(o) ? 1 : 0));
    if (!wanted.includes(1)) return;
    for (let t = 0; t + 1 < off.length && t < hit.length; t++) {
        const end = Math.min(off[t + 1], handle.length);
        for (let i = off[t]; i < end; i++) if (wanted[handle[i]]) hit[t] = 1;
    }
}

// Indices of the tasks that match, by start (by id when there are very many).
// Needs run.loadTasks().
export function searchTasks(run, query) {
    const terms = parseQuery(query);
    if (!terms.length || !run.dir.tasks) return new Uint32Array(0);
    let hit = null;
    for (const term of terms) {
        const h = matchTerm(run, term);
        if (!hit) hit = h;
        else for (let t = 0; t < hit.length; t++) hit[t] &= h[t];
    }
    let count = 0;
    for (let t = 0; t < hit.length; t++) count += hit[t];
    const out = new Uint32Array(count);
    for (let t = 0, k = 0; t < hit.length; t++) if (hit[t]) out[k++] = t;
    if (count > SORT_LIMIT) return out;
    const of = run.pack.peek('task_run');
    const key = (t) => (of[t] === NONE ? Infinity : run.start[of[t]]);
    return out.sort((a, b) => (key(a) - key(b)) || (a - b));
}
