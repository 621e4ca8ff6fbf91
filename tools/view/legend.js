// SPDX-License-Identifier: BSD-3-Clause
// The legend: a button per kernel. A click hides or shows it; with Shift, or a
// double click, only this one is shown.
import { h, dataTable } from './dom.js';
import { assignStyles, swatch } from './colour.js';
import { formatTime, formatCount, formatShare, formatJoules } from './format.js';
import { energySums } from './energy.js';

export class Legend {
    constructor(root, onFilter) {
        this.root = root;
        this.onFilter = onFilter;
        this.hidden = new Set();
        this.names = [];
        this.patterned = false;  // a pattern for each kernel
        this.keys = [];          // [title, styles] of other colours
    }

    setRuns(runs) {
        this.runs = runs;
        const time = new Map();
        for (const run of runs) {
            for (const k of run.dir.kernels) time.set(k.name, (time.get(k.name) || 0) + k.total_ns);
        }
        this.names = [...time.keys()].sort((a, b) => time.get(b) - time.get(a));
        this.styles = assignStyles(this.names);
        for (const run of runs) run.styles = run.dir.kernels.map((k) => this.styles.get(k.name));
        this.draw();
    }

    draw() {
        const chip = (name) => h('button', {type: 'button', class: 'chip',
            'aria-pressed': String(!this.hidden.has(name)),
            title: `${name}: click to hide or show, Shift-click for only this one`,
            onclick: (e) => (e.shiftKey ? this.only(name) : this.toggle(name)),
            ondblclick: () => this.only(name)}, swatch(this.shownStyle(name), 12), name);
        const all = this.hidden.size ? h('button', {type: 'button', class: 'chip all',
            onclick: () => this.set([])}, 'Show all') : null;
        const keys = this.keys.map(([title, styles]) => h('span', {class: 'legend-keys'},
            h('span', {class: 'legend-title'}, title), styles.map((s) =>
                h('span', {class: 'key'}, swatch(s, 12), s.name))));
        this.root.replaceChildren(h('span', {class: 'legend-title', id: 'legend-title'}, 'Kernels'),
            ...(this.names.length ? this.names.map(chip)
                : [h('span', {class: 'empty'}, 'no task ran')]), ...(all ? [all] : []), ...keys);
    }

    setKeys(keys) {
        this.keys = keys;
        this.draw();
    }

    shownStyle(name) {
        const s = this.styles.get(name);
        return this.patterned ? {...s, pattern: s.own} : s;
    }

    toggle(name) {
        const next = new Set(this.hidden);
        if (!next.delete(name)) next.add(name);
        this.set([...next]);
    }

    only(name) { this.set(this.names.filter((n) => n !== name)); }

    set(hidden) {
        const focus = [...this.root.children].indexOf(document.activeElement);
        this.hidden = new Set(hidden.filter((n) => this.names.includes(n)));
        for (const run of this.runs) this.apply(run);
        this.draw();
        if (focus >= 0 && this.root.children[focus]) this.root.children[focus].focus();
        this.onFilter();
    }

    apply(run) {
        const shown = this.hidden.size
            ? Uint8Array.from(run.dir.kernels, (k) => (this.hidden.has(k.name) ? 0 : 1)) : null;
        run.filter(shown);
    }

    // The tab "Kernels": one table per run.
    sections() {
        return this.runs.map((run) => {
            const all = run.dir.kernels.reduce((a, k) => a + k.total_ns, 0);
            const order = run.dir.kernels.map((k, i) => i).filter((i) => run.dir.kernels[i].n)
                .sort((a, b) => run.dir.kernels[b].total_ns - run.dir.kernels[a].total_ns);
            const energy = energySums(run.dir), joules = energy && energy.kernels;
            const error = (k) => Number.isFinite(k.model_error) && k.model_error !== null
                ? formatShare(k.model_error) : '–';
            return h('section', null, h('h3', null, run.name), order.length ? dataTable(
                'Kernels of the run',
                [['Kernel', false], ['Runs', true], ['Time', true], ['Share', true],
                    ['Median', true], ['Min', true], ['Max', true],
                    ['Model error', true, 'mean error of the predicted durations'],
                    ...(joules ? [['Energy', true, 'above idle, by the energy model']] : [])],
                order.map((i) => {
                    const k = run.dir.kernels[i];
                    return [h('span', {class: 'key'}, swatch(run.styles[i], 10), k.name),
                        formatCount(k.n), formatTime(k.total_ns), formatShare(k.total_ns / all),
                        formatTime(k.median_ns), formatTime(k.min_ns), formatTime(k.max_ns),
                        error(k),
                        ...(joules ? [formatJoules(joules.get(k.name) || 0)] : [])];
                })) : h('p', {class: 'empty'}, 'No task ran.'));
        });
    }
}
