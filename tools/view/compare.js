// SPDX-License-Identifier: BSD-3-Clause
// Two runs side by side: one axis or two of equal length, and a table.
import { h, dataTable } from './dom.js';
import { causeTitle } from './idle.js';
import { energySums } from './energy.js';
import { formatTime, formatShare, formatCount, formatJoules } from './format.js';

// Sets how long each run is on the axis; returns the length of the axis in ns.
export function alignRuns(runs, normalise) {
    const first = runs.length ? runs[0].dir.makespan_ns : 0;
    for (const run of runs) {
        const own = run.dir.makespan_ns;
        run.stretch = normalise && first > 0 && own > 0 ? own / first : 1;
    }
    return Math.max(0, ...runs.map((r) => r.makespan));
}

function signed(x) {
    const text = x.toFixed(1);
    return Number(text) === 0 ? '0' : x > 0 ? `+${text}` : text.replace('-', '−');
}

function change(a, b) {
    if (!(a > 0) || !Number.isFinite(b)) return '–';
    return `${signed(100 * (b / a - 1))} %`;
}

export function compareSection(runs) {
    if (runs.length < 2) return h('p', {class: 'empty'}, 'There is one run only.');
    const [a, b] = runs.map((r) => r.dir);
    const columns = [['', false], ['A', true, runs[0].name], ['B', true, runs[1].name],
        ['B − A', true]];
    const share = (d, c) => ((d.total || {})[c] || 0) / Math.max(1, d.nworkers * d.makespan_ns);
    const facts = [
        ['Makespan', formatTime(a.makespan_ns, 4), formatTime(b.makespan_ns, 4),
            change(a.makespan_ns, b.makespan_ns)],
        ['Workers', formatCount(a.nworkers), formatCount(b.nworkers), ''],
        ['Tasks', formatCount(a.tasks), formatCount(b.tasks), change(a.tasks, b.tasks)]];
    if (a.bounds && b.bounds) {
        facts.push(['Lower bound', formatTime(a.bounds.best, 4), formatTime(b.bounds.best, 4),
            change(a.bounds.best, b.bounds.best)]);
    }
    const [ea, eb] = [energySums(a), energySums(b)];
    if (ea && eb && ea.measured > 0 && eb.measured > 0) {
        facts.push(['Energy measured', formatJoules(ea.measured), formatJoules(eb.measured),
            change(ea.measured, eb.measured)]);
    }
    if (ea && eb && ea.model && eb.model) {
        facts.push(['Energy by the model', formatJoules(ea.sum), formatJoules(eb.sum),
            change(ea.sum, eb.sum)],
            ['of it idle', formatShare(ea.idleShare), formatShare(eb.idleShare),
                `${signed(100 * (eb.idleShare - ea.idleShare))} points`]);
    }
    const causes = (a.causes || []).map((c) => c.name)
        .filter((c) => share(a, c) > 0 || share(b, c) > 0)
        .map((c) => [causeTitle(c), formatShare(share(a, c)), formatShare(share(b, c)),
            `${signed(100 * (share(b, c) - share(a, c)))} points`]);
    const none = {n: 0, total_ns: 0, median_ns: NaN};
    const of = (d, name) => d.kernels.find((k) => k.name === name) || none;
    const names = [...new Set([...a.kernels, ...b.kernels].map((k) => k.name))]
        .sort((x, y) => of(a, y).total_ns + of(b, y).total_ns -
            of(a, x).total_ns - of(b, x).total_ns);
    const kernels = names.map((n) => [n,
        formatTime(of(a, n).total_ns), formatTime(of(b, n).total_ns),
        change(of(a, n).total_ns, of(b, n).total_ns)]);
    const medians = names.map((n) => [n, formatTime(of(a, n).median_ns),
        formatTime(of(b, n).median_ns), change(of(a, n).median_ns, of(b, n).median_ns)]);
    return h('section', null, h('h3', null, 'A and B'),
        h('p', {class: 'note'}, `A is ${runs[0].name}, B is ${runs[1].name}.`),
        dataTable('Runs', columns, facts),
        h('h4', null, 'Share of the workers’ time'), dataTable('Causes', columns, causes),
        h('h4', null, 'Time in kernels, all workers'),
        dataTable('Time in kernels', columns, kernels),
        h('h4', null, 'Median duration'), dataTable('Median durations', columns, medians));
}
