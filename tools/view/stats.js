// SPDX-License-Identifier: BSD-3-Clause
// Statistics of the visible range, exact, clipped at its ends.
import { h, dataTable, factList, shareBar } from './dom.js';
import { upperBound } from './lod.js';
import { causeStyles, swatch } from './colour.js';
import { causeTitle } from './idle.js';
import { formatTime, formatShare, formatCount, formatBytes } from './format.js';

// Adds the time of each class of a series between t0 and t1 (units).
export function addRange(s, t0, t1, time, count) {
    const last = s.first + s.n;
    let i = Math.max(s.first, upperBound(s.start, t0, s.first, last) - 1);
    for (; i < last && s.start[i] < t1; i++) {
        const a = Math.max(s.start[i], t0), b = Math.min(s.start[i] + s.dur[i], t1);
        if (b <= a) continue;
        const c = Math.min(s.cls[i], time.length - 1);  // the last: not in the list
        time[c] += b - a;
        count[c]++;
    }
}

export function rangeStats(run, ns0, ns1) {
    const t0 = Math.max(0, run.units(ns0)), t1 = Math.min(run.span, run.units(ns1));
    const nk = run.dir.kernels.length, nc = (run.dir.causes || []).length;
    const time = new Float64Array(nk + 1), count = new Float64Array(nk + 1);
    const gap = new Float64Array(nc + 1), gaps = new Float64Array(nc + 1);
    let workers = 0;
    for (const l of run.lanes) {
        if (l.series.n) addRange(l.series, t0, t1, time, count);
        if (l.dir.is_worker) workers++;
        if (l.gaps) addRange(l.gaps, t0, t1, gap, gaps);
    }
    let bytes = 0, moves = 0;
    if (run.xfer) {
        const {xfer_start: s, xfer_dur: d, xfer_bytes: b} = run.xfer;
        for (let i = 0; i < s.length; i++) {
            if (s[i] + d[i] > t0 && s[i] < t1) { bytes += b[i]; moves++; }
        }
    }
    return {length: Math.max(0, t1 - t0) * run.unit, workers, time, count, gap, bytes, moves};
}

export function rangeSection(run, view) {
    const s = rangeStats(run, view.t0, view.t1), {unit} = run, {dir} = run;
    const all = s.length * s.workers, busy = s.time.reduce((a, b) => a + b, 0) * unit;
    const rows = dir.kernels.map((k, i) => ({k, i, time: s.time[i] * unit, n: s.count[i]}))
        .filter((r) => r.n).sort((a, b) => b.time - a.time);
    const styles = causeStyles(dir.causes || []);
    const idle = (dir.causes || []).map((c, i) => ({c, i, ns: s.gap[i] * unit}))
        .filter((r) => r.ns > 0).sort((a, b) => b.ns - a.ns);
    return h('section', null, h('h3', null, run.name),
        factList([['Length', formatTime(s.length, 4)],
            ['Executions', formatCount(rows.reduce((a, r) => a + r.n, 0))],
            ['In tasks', all ? formatShare(busy / all) : '–'],
            ['Tasks at a time', s.length ? (busy / s.length).toFixed(2) : '–'],
            s.moves ? ['Transfers', `${formatCount(s.moves)}, ${formatBytes(s.bytes)}`] : null]),
        rows.length ? dataTable('Kernels in the visible range',
            [['Kernel', false], ['Runs', true], ['Time', true], ['Share', true], ['Mean', true]],
            rows.map((r) => [h('span', {class: 'key'}, swatch(run.styles[r.i], 10), r.k.name),
                formatCount(r.n), formatTime(r.time), formatShare(r.time / busy),
                formatTime(r.time / r.n)]))
            : h('p', {class: 'empty'}, 'No task runs in this range.'),
        idle.length ? [h('h4', null, 'Between the tasks'),
            shareBar(idle.map((r) => ({share: r.ns / all, colour: styles[r.i].colour,
                title: r.c.text})), 'share of each cause'),
            dataTable('Idle time in the visible range',
                [['Cause', false], ['Time', true], ['of all', true]],
                idle.map((r) => [h('span', {class: 'key'},
                    swatch({...styles[r.i], pattern: 0}, 10), causeTitle(r.c.name)),
                formatTime(r.ns), formatShare(r.ns / all)]))] : null);
}
