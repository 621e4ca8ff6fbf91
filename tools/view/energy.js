// SPDX-License-Identifier: BSD-3-Clause
// The energy of the run: what counters measured and, with a model, joules per
// kernel and the idle part. In the tab "Run".
import { h, dataTable, shareBar } from './dom.js';
import { swatch } from './colour.js';
import { formatTime, formatShare, formatCount, formatJoules, formatValue } from './format.js';
import { notYet } from './idle.js';

const IDLE_COLOUR = '#9aa5b1', MOVE_COLOUR = '#56b4e9';

const known = (x) => typeof x === 'number' && Number.isFinite(x);

// Domains with what was measured and what the model says; parts of the energy by
// the model, most first behind the idle part. null: nothing is known.
export function energySums(dir) {
    const e = dir.energy;
    if (!e) return null;
    const model = e.model || null, domains = new Map();
    const get = (d) => {
        if (!domains.has(d.name)) domains.set(d.name, {name: d.name, device: d.device || ''});
        return domains.get(d.name);
    };
    for (const d of e.domains || []) {
        Object.assign(get(d), {joules: d.joules, peak: d.peak_watts,
            mean: d.seconds > 0 ? d.joules / d.seconds : NaN});
    }
    for (const d of model ? model.domains || [] : []) {
        Object.assign(get(d), {model: d.joules, idle: d.joules > 0 ? d.idle / d.joules : NaN,
            error: d.measured > 0 && known(d.predicted) ? d.predicted / d.measured - 1 : NaN});
    }
    const rows = [...domains.values()];
    const measured = rows.filter((d) => known(d.joules)).reduce((a, d) => a + d.joules, 0);
    if (!model) return {domains: rows, measured, model: null};
    const kernels = new Map();
    for (const k of model.kernels || []) {
        kernels.set(k.name, (kernels.get(k.name) || 0) + (known(k.joules) ? k.joules : 0));
    }
    const sum = model.idle + model.active + model.move;
    return {domains: rows, measured, model, kernels, sum,
        idleShare: sum > 0 ? model.idle / sum : NaN};
}

function domainTable(s) {
    const w = (x) => (known(x) ? formatValue(x, 'W') : '–');
    const columns = [['Domain', false], ['Measured', true, 'of the run'],
        ['Average', true], ['Peak', true, 'between two samples that differ']];
    if (s.model) {
        columns.push(['By model', true, 'of the whole run'],
            ['Idle', true, 'share of the model\'s energy'],
            ['Model error', true, 'of the time that samples cover']);
    }
    return dataTable('Energy of each domain', columns, s.domains.map((d) => [
        d.device ? `${d.name} (${d.device})` : d.name,
        known(d.joules) ? formatJoules(d.joules) : '–', w(d.mean), w(d.peak),
        ...(s.model ? [known(d.model) ? formatJoules(d.model) : '–', formatShare(d.idle),
            formatShare(d.error)] : [])]),
    s.domains.length > 1 ? ['Sum', formatJoules(s.measured), '', '',
        ...(s.model ? [formatJoules(s.sum), formatShare(s.idleShare), ''] : [])] : null);
}

function kernelRows(run, s) {
    const style = new Map(run.dir.kernels.map((k, i) => [k.name, run.styles[i]]));
    const key = (k) => h('span', {class: 'key'},
        style.has(k.name) ? swatch(style.get(k.name), 10) : null, k.name);
    return s.model.kernels.map((k) => [key(k), k.variant ? `${k.device}, ${k.variant}` : k.device,
        formatTime(k.seconds * 1e9), known(k.watts) ? formatValue(k.watts, 'W') : '–',
        known(k.joules) ? formatJoules(k.joules) : '–',
        known(k.joules) ? formatShare(k.joules / s.sum) : '–']);
}

function energyBar(run, s) {
    const parts = [{share: s.idleShare, colour: IDLE_COLOUR,
        title: `idle: ${formatJoules(s.model.idle)}`}];
    run.dir.kernels.forEach((k, i) => {
        const joules = s.kernels.get(k.name) || 0;
        parts.push({share: joules / s.sum, colour: run.styles[i].colour,
            title: `${k.name}: ${formatJoules(joules)}`});
    });
    parts.push({share: s.model.move / s.sum, colour: MOVE_COLOUR,
        title: `moving data: ${formatJoules(s.model.move)}`});
    return shareBar(parts, 'share of idle power and of each kernel');
}

function modelPart(run, s) {
    const m = s.model, blank = ['', '', ''];
    const rows = [['idle', ...blank, formatJoules(m.idle), formatShare(s.idleShare)],
        ...kernelRows(run, s)];
    if (m.move > 0)
        rows.push(['moving data', ...blank, formatJoules(m.move), formatShare(m.move / s.sum)]);
    return [h('p', null, 'By the model ', h('strong', null, formatJoules(s.sum)), ', ',
        h('strong', null, formatShare(s.idleShare)),
        ' of it idle power, which is drawn whatever runs.'),
    energyBar(run, s),
    dataTable('Energy of each kernel', [['Kernel', false], ['Device', false],
        ['Time', true], ['Power', true, 'above idle, while a task runs'],
        ['Energy', true], ['Share', true]],
    rows, ['Sum', ...blank, formatJoules(s.sum), '100 %']),
    m.unknown_tasks ? h('p', {class: 'warn'},
        `The model does not know ${formatCount(m.unknown_tasks)} tasks: they count as nothing.`)
        : null,
    h('p', {class: 'note'}, `Model: ${m.file || 'not named'}.`)];
}

export function energySection(run) {
    const title = h('h3', null, 'Energy'), s = energySums(run.dir);
    if (!run.dir.explained) return notYet('Energy');
    if (!s) {
        return h('section', null, title, h('p', {class: 'empty'}, run.dir.energy_why
            ? `No energy was measured: ${run.dir.energy_why}.`
            : 'This log has no power samples, and no energy model was given.'));
    }
    return h('section', null, title,
        (run.dir.energy.domains || []).length ? null : h('p', {class: 'note'},
            'Nothing was measured; this is what the model says.'),
        s.domains.length ? domainTable(s) : null,
        s.model ? modelPart(run, s) : h('p', {class: 'note'},
            'Joules per kernel and the idle share need an energy model: ' +
            'heddle trace view … --energy-model FILE (heddle energy fit makes one).'));
}
