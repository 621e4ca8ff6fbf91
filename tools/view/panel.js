// SPDX-License-Identifier: BSD-3-Clause
// The panel of a task: times, prediction, operands, neighbours, why it waited.
import { NONE } from './pack.js';
import { h, dataTable, factList } from './dom.js';
import { swatch } from './colour.js';
import { causeTitle } from './idle.js';
import { formatTime, formatMoment, formatCount, formatBytes } from './format.js';

const MOST_LINKS = 12;
// The causes of a worker's time, as a task that waits sees them.
const WAIT_TEXT = {
    sched: 'its worker was busy with other tasks', data: 'its data were on their way',
    memory: 'room was made for its data', overhead: 'the runtime: waking, scheduling'};

function taskLink(run, index, select) {
    const t = run.task(index);
    return h('button', {class: 'link', type: 'button', onclick: () => select(run, index)},
        `#${t.id} ${t.name || t.kernel}`);
}

function predictionFact(t) {
    if (t.predicted === null || !t.ran) return ['Predicted', 'not recorded'];
    const off = t.predicted > 0 ? t.duration / t.predicted - 1 : 0;
    const word = Math.abs(off) < 0.005 ? 'as predicted'
        : `measured ${(100 * Math.abs(off)).toFixed(1)} % ${off > 0 ? 'longer' : 'shorter'}`;
    return ['Predicted', `${formatTime(t.predicted, 4)} (${word})`];
}

// The same task in the other run, when two are shown.
function otherFact(sel, t, select) {
    if (!sel.other) return null;
    const {run, task} = sel.other, o = run.task(task);
    if (!o.ran) return [`In ${run.name}`, 'never ran'];
    const off = t.ran && t.duration
        ? ` (${(100 * (o.duration / t.duration - 1)).toFixed(1)} %)` : '';
    return [`In ${run.name}`, h('span', null,
        `${formatTime(o.duration, 4)}${off} on ${o.laneName} `,
        taskLink(run, task, select))];
}

// From submission to end, as a bar of three parts.
function lifeSection(t) {
    if (!t.ran || t.submit === null || t.ready === null) {
        return h('p', {class: 'empty'}, 'When it was submitted and ready is not in this log: ' +
            'record level 1.');
    }
    const waited = Math.max(0, t.ready - t.submit), queued = Math.max(0, t.start - t.ready);
    const all = Math.max(1, t.end - t.submit);
    const part = (ns, cls, text) => h('span', {class: cls, title: `${text}: ${formatTime(ns)}`,
        style: `width:${(100 * ns / all).toFixed(2)}%`});
    return h('div', null,
        h('div', {class: 'bar', role: 'img', 'aria-label': 'submitted, ready, running'},
            part(waited, 'life-dep', 'waited for other tasks'),
            part(queued, 'life-queue', 'ready, not started'),
            part(t.duration, 'life-run', 'ran')),
        h('ul', {class: 'life'},
            h('li', {class: 'life-dep'}, `${formatTime(waited)} for other tasks`),
            h('li', {class: 'life-queue'}, `${formatTime(queued)} ready, not started`),
            h('li', {class: 'life-run'}, `${formatTime(t.duration)} running`)));
}

// A log has no such time for a task that waited for nobody when it was submitted.
export function readyTime(run, t, preds) {
    if (t.ready !== null || t.submit === null) return t.ready;
    return preds.reduce((at, p) => Math.max(at, run.task(p).end ?? 0), t.submit);
}

// One sentence: why it did not start earlier. t.ready is that of readyTime().
export function whyItWaited(run, t, preds) {
    if (!t.ran) return 'It never ran.';
    if (t.ready === null) return 'This log does not tell: record level 1.';
    const parts = [];
    let last = null;
    for (const p of preds) {
        const q = run.task(p);
        if (q.ran && (!last || q.end > last.end)) last = q;
    }
    if (last && t.submit !== null && last.end > t.submit) {
        parts.push(`It became ready when #${last.id} ${last.name || last.kernel} ended.`);
    } else if (t.submit !== null) parts.push('It was ready as soon as it was submitted.');
    const queued = t.start - t.ready;
    if (queued > 0) {
        const why = t.wait ? WAIT_TEXT[t.wait.name] || causeTitle(t.wait.name) : 'why is not known';
        parts.push(`Then it took ${formatTime(queued)} until it started: ${why}.`);
    } else parts.push('It started at once.');
    return parts.join(' ');
}

function neighbours(run, title, list, select, none) {
    return [h('h4', null, `${title} (${formatCount(list.length)})`),
        list.length ? h('ul', {class: 'links'}, list.slice(0, MOST_LINKS)
            .map((i) => h('li', null, taskLink(run, i, select))),
        list.length > MOST_LINKS ? h('li', {class: 'note'},
            `and ${formatCount(list.length - MOST_LINKS)} more`) : null)
            : h('p', {class: 'empty'}, none)];
}

export function taskSection(sel, select, focus) {
    const {run, task, preds, succs} = sel, t = run.task(task);
    const at = (ns) => ns === null ? 'not recorded' : formatMoment(ns, t.duration || 0);
    t.ready = readyTime(run, t, preds);
    const style = run.styles[t.kernelIndex];
    const ops = run.operands(task), moves = run.transfers(task);
    const noGraph = run.dir.edges ? 'none' : run.noGraph;
    return h('section', null,
        h('h3', {class: 'key'}, style ? swatch(style, 14) : null, ` ${t.kernel} `,
            h('span', {class: 'id'}, `#${t.id}`)),
        t.name ? h('p', {class: 'name'}, t.name) : null,
        h('p', null, h('button', {type: 'button', onclick: focus}, 'Zoom to it (F)')),
        factList([['Ran on', t.laneName],
            ['Start', at(t.start)], ['End', at(t.end)],
            ['Duration', t.ran ? h('strong', null, formatTime(t.duration, 4)) : '–'],
            predictionFact(t),
            ['Submitted', at(t.submit)], ['Ready', at(t.ready)],
            t.priority !== null ? ['Priority', String(t.priority)] : null,
            ['Outcome', t.statusName + (t.flags.length ? `; ${t.flags.join('; ')}` : '')],
            t.parent !== NONE ? ['Submitted by', taskLink(run, t.parent, select)] : null,
            otherFact(sel, t, select)]),
        sel.runs.length > 1 ? [h('h4', null, `Executions (${sel.runs.length})`),
            dataTable('Executions',
            [['On', false], ['Start', true], ['Duration', true], ['Outcome', false]],
            sel.runs.slice(0, MOST_LINKS).map((e) => [(run.lanes[e.lane] || {name: '–'}).name,
                formatMoment(e.start, e.duration), formatTime(e.duration), e.status]))] : null,
        h('h4', null, 'Why it waited'), h('p', null, whyItWaited(run, t, preds)), lifeSection(t),
        h('h4', null, `Operands (${ops.length})`),
        ops.length ? dataTable('Operands', [['Data', false], ['Access', false], ['Size', true]],
            ops.map((o) => [o.name, o.mode, formatBytes(o.bytes)]))
            : h('p', {class: 'empty'}, run.dir.handles ? 'none'
                : 'This log has no operands: record level 1.'),
        neighbours(run, 'Predecessors, solid arrows', preds, select, noGraph),
        neighbours(run, 'Successors, dashed arrows', succs, select, noGraph),
        moves.length ? [h('h4', null, 'Transfers for it'), dataTable('Transfers for this task',
            [['From, to', false], ['Kind', false], ['Size', true], ['Time', true]],
            moves.map((m) => [`${m.from} → ${m.to}`, m.kind, formatBytes(m.bytes),
                formatTime(m.duration)]))] : null);
}

export function emptyTaskSection() {
    return h('p', {class: 'empty'}, 'Click on a task in the chart, or search for one, ' +
        'to see its times, its operands and what it waited for.');
}
