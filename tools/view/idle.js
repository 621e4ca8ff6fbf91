// SPDX-License-Identifier: BSD-3-Clause
// Where the time of the workers went, and what the last task waited for: the
// tables of the tab "Run".
import { h, dataTable, factList, shareBar } from './dom.js';
import { causeStyles, blameStyles, swatch } from './colour.js';
import { formatTime, formatShare, formatCount, formatBytes } from './format.js';

const SHORT = {work: 'in tasks', waste: 'wasted', data: 'data', memory: 'memory',
    overhead: 'runtime', start: 'start', end: 'end', sched: 'scheduler',
    submit: 'submission', deps: 'no ready task', unknown: 'unknown'};
const BLAME_TEXT = {exec: 'tasks ran', transfer: 'data on their way',
    queue: 'waited behind other tasks', submit: 'not yet submitted',
    overhead: 'runtime: waking, scheduling'};
const MOST_ROWS = 256;

export function causeTitle(name) { return SHORT[name] || name; }

// Sums of a breakdown: per cause over the workers, and of everything.
export function idleSums(dir) {
    const causes = (dir.causes || []).map((c) => c.name);
    const workers = (dir.lanes || []).filter((l) => l.is_worker && l.idle);
    const rows = workers.map((l) => ({name: l.name, ns: causes.map((c) => l.idle[c] || 0)}));
    const total = causes.map((c) => (dir.total || {})[c] || 0);
    const sum = total.reduce((a, b) => a + b, 0);
    const expected = dir.nworkers * dir.makespan_ns;
    const agree = sum === expected &&
        causes.every((_, i) => rows.reduce((a, r) => a + r.ns[i], 0) === total[i]) &&
        rows.every((r) => r.ns.reduce((a, b) => a + b, 0) === dir.makespan_ns);
    return {causes, rows, total, sum, expected, agree};
}

function causeBar(styles, ns, all, causes) {
    return shareBar(causes.map((c, i) => ({share: all ? ns[i] / all : 0,
        colour: styles[i].colour, title: `${causeTitle(c)}: ${formatTime(ns[i])}`})),
    'share of each cause');
}

// Of a large log tasks are shown first; the rest is computed meanwhile.
export function notYet(title) {
    return h('section', null, h('h3', null, title), h('p', {class: 'empty'},
        'Being computed from the log; it will appear here.'));
}

export function idleSection(run) {
    if (!run.dir.explained) return notYet('Where the time of the workers went');
    const {dir} = run, s = idleSums(dir);
    if (!s.rows.length) {
        return h('section', null, h('h3', null, 'Where the time went'),
            h('p', {class: 'empty'}, 'This log has no workers.'));
    }
    const styles = causeStyles(dir.causes), used = s.causes.map((_, i) => i)
        .filter((i) => s.total[i] > 0);
    const list = used.map((i) => [
        h('span', {class: 'key'}, swatch({...styles[i], pattern: 0}, 10), causeTitle(s.causes[i])),
        formatTime(s.total[i]), formatShare(s.total[i] / s.sum)]);
    const totals = dataTable('Time of all workers by cause',
        [['Cause', false], ['Time', true], ['Share', true]], list,
        ['Sum', formatTime(s.sum, 4), '100 %']);
    totals.querySelectorAll('tbody tr').forEach((tr, k) => {
        tr.title = dir.causes[used[k]].text;
    });
    const check = h('p', {class: s.agree ? 'check' : 'check bad'},
        `${s.agree ? '✓' : '✗'} ${formatCount(s.sum)} ns ${s.agree ? '=' : '≠'} ` +
        `${dir.nworkers} workers × ${formatCount(dir.makespan_ns)} ns`);
    const shown = s.rows.slice(0, MOST_ROWS);
    const per = dataTable('Time of each worker by cause',
        [['Worker', false], ['', false], ...used.map((i) =>
            [causeTitle(s.causes[i]), true, dir.causes[i].text])],
        shown.map((r) => [r.name, causeBar(styles, r.ns, dir.makespan_ns, s.causes),
            ...used.map((i) => formatTime(r.ns[i]))]),
        ['Total', causeBar(styles, s.total, s.sum, s.causes),
            ...used.map((i) => formatTime(s.total[i]))]);
    return h('section', null, h('h3', null, 'Where the time of the workers went'),
        causeBar(styles, s.total, s.sum, s.causes), totals, check,
        h('details', {open: s.rows.length <= 8},
            h('summary', null, `Each worker (${s.rows.length})`), per,
            s.rows.length > MOST_ROWS ? h('p', {class: 'note'},
                `The first ${MOST_ROWS} are listed.`) : null));
}

export function blameSection(run) {
    const {dir} = run, names = dir.blames || [];
    const ns = names.map((n) => (dir.blame || {})[n] || 0);
    const sum = ns.reduce((a, b) => a + b, 0);
    if (!run.dir.explained) return notYet('What the end waited for');
    const title = h('h3', null, 'What the end waited for');
    if (!sum) {
        return h('section', null, title, h('p', {class: 'empty'},
            run.noGraph));
    }
    const styles = blameStyles(names);
    const rows = names.map((n, i) => [h('span', {class: 'key'}, swatch(styles[i], 10),
        BLAME_TEXT[n] || n), formatTime(ns[i]), formatShare(ns[i] / sum)])
        .filter((_, i) => ns[i] > 0);
    return h('section', null, title,
        h('p', {class: 'note'},
            'From the last task back to the start, each moment has one reason. ' +
            'B shows the chain above the workers.'),
        shareBar(names.map((n, i) => ({share: ns[i] / sum, colour: styles[i].colour,
            title: BLAME_TEXT[n] || n})), 'share of each reason'),
        dataTable('Chain of blame', [['Reason', false], ['Time', true], ['Share', true]], rows,
            ['Makespan', formatTime(sum, 4), '100 %']));
}

export function boundSection(run) {
    const {bounds, makespan_ns: span} = run.dir;
    if (!run.dir.explained) return notYet('How good could it be?');
    const title = h('h3', null, 'How good could it be?');
    if (!bounds || !bounds.best) {
        return h('section', null, title, h('p', {class: 'empty'},
            run.dir.bounds_why || (run.dir.edges ? 'No lower bound is known for this run.'
                : run.noGraph)));
    }
    const names = {path: 'longest chain: each task where it is fastest',
        area: 'area: all work spread perfectly over the workers',
        mixed: 'mixed: chains and work at once',
        window: 'window: the work between the heads and the tails of chains',
        focus: 'focus: chains and work, between heads and tails',
        links: 'links: work, and copies to and from accelerators'};
    const rows = Object.entries(bounds.kind || {}).filter(([, ns]) => ns > 0)
        .sort((a, b) => b[1] - a[1]).map(([k, ns]) => [names[k] || k, formatTime(ns, 4),
            formatShare(ns / span)]);
    return h('section', null, title,
        h('p', null, 'This run is at ', h('strong', null, formatShare(bounds.best / span)),
            ' of the best possible on this machine; at most ',
            h('strong', null, formatShare(1 - bounds.best / span)), ' to gain.'),
        dataTable('Lower bounds', [['No schedule is shorter than', false], ['Time', true],
            ['of this run', true]], rows),
        bounds.durations ? h('p', {class: 'note'}, `Durations: ${bounds.durations}.`) : null);
}

export function summarySection(run) {
    const {dir} = run, all = dir.nworkers * dir.makespan_ns;
    const work = (dir.total || {}).work || 0;
    return h('section', null, h('h3', null, run.name),
        dir.partial ? h('p', {class: 'warn'}, dir.partial) : null,
        factList([['Makespan', formatTime(dir.makespan_ns, 4)],
            ['Workers', formatCount(dir.nworkers)],
            ['In tasks', all && dir.explained ? formatShare(work / all) : '–'],
            ['Tasks', formatCount(dir.tasks)],
            ['Dependencies', dir.edges ? formatCount(dir.edges) : run.noGraph],
            dir.system_ns ? ['Lost to the system', `${formatTime(dir.system_ns, 4)} of ` +
                `${formatCount(dir.system_tasks)} tasks: something else ran on their cores`] : null,
            dir.path_ns ? ['Longest chain', formatTime(dir.path_ns, 4)] : null,
            run.bad && run.bad.length ? ['Did not end well',
                `${formatCount(run.badCount)} executions, ✗ in the chart (search is:failed)`]
                : null,
            run.pending ? ['Never ran', `${formatCount(run.pending)} tasks`] : null,
            dir.lost ? ['Records lost', formatCount(dir.lost)] : null,
            dir.overwritten ? ['Records overwritten', formatCount(dir.overwritten)] : null]));
}

// Where the log is from: last, nobody begins with it.
export function originSection(run) {
    const {dir} = run;
    const when = dir.wall_ns ? new Date(dir.wall_ns / 1e6).toLocaleString() : null;
    return h('section', null, h('h3', null, 'Machine and log'),
        factList([['Data handles', formatCount(dir.handles)],
            ...(dir.nodes || []).map((n) => [`Memory of ${n.name}`,
                n.bytes ? formatBytes(n.bytes) : 'size not known']),
            when ? ['Recorded', when] : null,
            ...(dir.infos || []).map(([k, v]) => [k, v])]));
}
