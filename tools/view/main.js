// SPDX-License-Identifier: BSD-3-Clause
// The page: opens the runs, draws the first picture, then fetches the rest, and
// connects charts, panel, search and keys.
import { NONE, openPacks } from './pack.js';
import { h, byId } from './dom.js';
import { formatTime, formatMoment, formatCount, formatShare } from './format.js';
import { Run } from './run.js';
import { View } from './view.js';
import { Gantt, GUTTER } from './gantt.js';
import { Overlay } from './overlay.js';
import { Curves } from './curves.js';
import { Overview } from './overview.js';
import { Legend } from './legend.js';
import { Tabs } from './tabs.js';
import { Input } from './input.js';
import { savePicture } from './picture.js';
import { showTooltip } from './tooltip.js';
import { Finder } from './finder.js';
import { followLive } from './live.js';
import { alignRuns, compareSection } from './compare.js';
import { summarySection, boundSection, originSection } from './idle.js';
import { causeTitle, idleSection, blameSection } from './idle.js';
import { energySection } from './energy.js';
import { causeStyles, blameStyles, blameTitle, xferStyles } from './colour.js';
import { rangeSection } from './stats.js';
import { taskSection, emptyTaskSection } from './panel.js';
import { setupHelp } from './help.js';
import { themeNow, setTheme, themeColours, onSystemTheme } from './theme.js';
import { readHash, writeHash } from './permalink.js';

// [id, title, what it does, on at the start]
const OPTIONS = [
    ['idle', 'Idle causes', 'Colour the time between tasks by its cause (I)', false],
    ['path', 'Longest chain', 'Tasks that depend on each other and take longest together (C)',
        false],
    ['blame', 'Blame', 'From the last task backwards: what each moment was needed for (B)', false],
    ['bounds', 'Lower bounds', 'No schedule on this machine can end before these lines (L)', true],
    ['patterns', 'Patterns', 'A pattern for each kernel, beside its colour (P)', false],
    ['same', 'Equal length', 'Stretch the second run to the length of the first', false]];
const MOST_FRAMES = 5000;
const TELL_EVERY = 150;      // ms
const FEW_TASKS = 200000;    // then all arrays are fetched at once
const SOME_TASKS = 3000000;  // then at least the idle gaps

class App {
    constructor() {
        this.runs = [];
        this.selection = null;
        this.options = Object.fromEntries(OPTIONS.map((o) => [o[0], o[3]]));
        this.frames = [];
        this.dirty = false;
        this.told = -Infinity;
        this.view = new View();
        this.gantt = new Gantt(byId('base'), this.view);
        this.overlay = new Overlay(byId('over'), this.gantt);
        this.curves = new Curves(byId('curve-canvas'), this.view, this.gantt);
        this.overview = new Overview(byId('overview'), this.view);
        this.legend = new Legend(byId('legend'), () => { this.redraw(); this.later(); });
        this.tabs = new Tabs(byId('tabs'), byId('panel-body'));
        this.finder = new Finder(this);
        this.view.onChange(() => { this.redraw(); this.later(); });
    }

    async open() {
        const state = readHash(location.hash);
        if (state.theme) setTheme(state.theme);
        this.runs = (await openPacks(document)).map((p) => new Run(p));
        const newer = this.runs.find((r) => r.dir.version !== 1);
        if (newer)
            throw new Error(`version ${newer.dir.version} of the data is not known to this page`);
        await Promise.all(this.runs.map((r) => r.loadLanes()));
        this.setup();
        this.adopt();
        this.tabs.show(this.runs.length > 1 ? 'compare' : 'run');
        if (state.hide.length) this.legend.set(state.hide);
        for (const o of state.on) if (o in this.options) this.option(o, true);
        for (const o of state.off) if (o in this.options) this.option(o, false);
        if (state.t) this.view.set(...state.t);
        this.frame();
        this.rest = this.loadRest(state);
        this.rest.catch((e) => this.banner(e.message));
    }

    // What is not needed for the first picture.
    async loadRest(state) {
        await new Promise((done) => { setTimeout(done, 0); });
        await this.loadExtras(this.runs);
        this.ready = true;
        if (state.task !== undefined)
            await this.selectId(this.runs[state.run] || this.runs[0], state.task);
        if (state.q) { byId('search').value = state.q; await this.finder.search(state.q, false); }
        this.problems();
        if (location.protocol.startsWith('http')) followLive(this);
    }

    async loadExtras(runs) {
        for (const r of runs) {
            await r.loadLinks();
            await r.loadBlame();
            await r.loadBad();
            await r.pack.all('mark_t', 'mark_text', 'text', 'path_task');
            if (this.options.path) await r.pack.get('task_run');
            if (r.dir.tasks <= SOME_TASKS || this.options.idle) await r.loadGaps();
            if (r.dir.tasks <= FEW_TASKS) await r.loadTasks();
            if (r.bad.length || r.pending) this.tabs.refresh('run');
        }
        await this.curves.setRuns(runs);
        this.overview.setCurve(this.curves.list);
        this.gantt.layout();
        this.legend.setKeys(this.keys());
        this.resize();
        this.tabs.refresh('range');
    }

    setup() {
        const on = (id, f) => byId(id).addEventListener('click', f);
        on('zoom-in', () => this.view.zoom(0.5));
        on('zoom-out', () => this.view.zoom(2));
        on('zoom-all', () => this.view.reset());
        on('png-button', () => savePicture(this));
        on('theme-button', () => this.switchTheme());
        on('panel-button', () => {
            const hide = !byId('panel').hidden;
            byId('panel').hidden = hide;
            byId('panel-button').setAttribute('aria-expanded', String(!hide));
        });
        byId('options').append(...OPTIONS.filter((o) => o[0] !== 'same' || this.runs.length > 1)
            .map(([id, title, what]) => h('button', {type: 'button', id: `opt-${id}`, title: what,
                'aria-pressed': String(this.options[id]), onclick: () => this.toggle(id)}, title)));
        this.tabs.add('run', 'Run', () => this.runs.map((r) => [summarySection(r),
            boundSection(r), idleSection(r), blameSection(r), energySection(r),
            originSection(r)]).flat());
        this.tabs.add('kernels', 'Kernels', () => this.legend.sections());
        this.tabs.add('range', 'Range', () => {
            this.gaps();
            return [h('p', {class: 'note'}, 'What is visible in the chart.'),
                ...this.runs.map((r) => rangeSection(r, this.view))];
        });
        this.tabs.add('task', 'Task', () => (this.selection
            ? taskSection(this.selection, (run, t) => this.select(run, t, true),
                () => this.focusSelection())
            : emptyTaskSection()));
        if (this.runs.length > 1)
            this.tabs.add('compare', 'A / B', () => compareSection(this.runs));
        setupHelp(byId('help'));
        this.input = new Input(byId('gantt'), this);
        byId('curves').addEventListener('pointermove', (e) => this.setCursor(
            e.clientX - byId('curves').getBoundingClientRect().left));
        byId('curves').addEventListener('pointerleave', () => this.setCursor(null));
        new ResizeObserver(() => this.resize()).observe(byId('gantt'));
        onSystemTheme(() => this.recolour());
    }

    // New data in this.runs: titles, colours, axis.
    adopt() {
        const first = this.runs[0], d = first.dir;
        document.title = `${first.name} – Heddle trace`;
        byId('title').textContent = this.runs.map((r) => r.name).join('  |  ');
        const all = d.nworkers * d.makespan_ns;
        const work = all && d.explained ? `${formatShare(d.total.work / all)} in tasks`
            : 'being explained';
        const best = d.bounds
            ? ` · ${formatShare(d.bounds.best / d.makespan_ns)} of the best possible` : '';
        byId('facts').textContent = this.runs.length > 1 ? 'two runs, one time axis'
            : `${formatTime(d.makespan_ns, 4)} · ${formatCount(d.nworkers)} workers · ` +
              `${formatCount(d.tasks)} tasks · ${work}${best}`;
        byId('live').hidden = !d.live;
        byId('live').textContent = d.explained ? 'live' : 'reading';
        const nothing = this.runs.every((r) => !r.dir.runs);
        byId('nothing').hidden = !nothing;
        byId('nothing').textContent = 'This log has no task that ran.';
        this.legend.setRuns(this.runs);
        if (this.legend.hidden.size) for (const r of this.runs) this.legend.apply(r);
        this.gantt.setRuns(this.runs);
        this.align();
        this.recolour();
        this.resize();
        this.problems();
    }

    align() {
        const total = alignRuns(this.runs, this.options.same);
        this.view.resize(total, 16 * Math.min(...this.runs.map((r) => r.unit)));
    }

    problems() {
        const all = this.runs.flatMap((r) => [r.dir.partial, ...r.pack.problems]).filter(Boolean);
        this.banner(all.slice(0, 3).join(' '));
    }

    banner(text) {
        byId('banner').textContent = text;
        byId('banner').hidden = !text;
    }

    say(text) { byId('status').textContent = text; }

    // ---- drawing

    resize() {
        const box = byId('gantt'), dpr = Math.min(window.devicePixelRatio || 1, 2);
        this.corner = box.getBoundingClientRect();
        this.gantt.resize(box.clientWidth, box.clientHeight, dpr);
        this.overlay.resize(box.clientWidth, box.clientHeight, dpr);
        this.curves.resize(box.clientWidth, dpr);
        this.overview.resize(box.clientWidth, byId('overview').clientHeight, dpr);
        this.all = true;
        this.frame();  // at once: a canvas of a new size is empty
    }

    recolour() {
        const c = themeColours();
        this.gantt.setTheme(c);
        this.overlay.colours = this.curves.colours = this.overview.colours = c;
        this.overlay.drawn = undefined;
        this.redraw();
    }

    // `all`: also what does not change with the mouse.
    redraw(all = true) {
        this.all = this.all || all;
        if (this.dirty) return;
        this.dirty = true;
        requestAnimationFrame(() => this.frame());
    }

    frame() {
        const begin = performance.now(), {all} = this;
        this.dirty = this.all = false;
        if (all) {
            this.gantt.draw();
            this.overlay.drawBelow(this.gantt.g);
        }
        this.overlay.draw();
        this.curves.draw();
        if (!all) return;
        this.overview.draw();
        if (begin - this.told > TELL_EVERY) this.tellRange(begin);
        if (this.frames.length < MOST_FRAMES) this.frames.push(performance.now() - begin);
    }

    // Not in each frame: a changed text costs as much as the charts.
    tellRange(now) {
        const {t0, t1, total} = this.view, from = Math.max(0, t0), to = Math.min(total, t1);
        this.told = now;
        const length = from > 0 ? ` (${formatTime(to - from)})` : '';
        byId('range').textContent =
            `${formatMoment(from, t1 - t0)} to ${formatMoment(to, t1 - t0)}${length}`;
    }

    // When things are calm: statistics and the address.
    later() {
        clearTimeout(this.calm);
        this.overlay.hover = null;  // something else is under the mouse now
        byId('tooltip').hidden = true;
        this.calm = setTimeout(() => {
            if (this.mouse) this.hover(this.mouse);
            this.tellRange(performance.now());
            this.tabs.refresh('range');
            this.permalink();
        }, 200);
    }

    permalink() {
        const on = OPTIONS.filter((o) => this.options[o[0]] && !o[3]).map((o) => o[0]);
        const off = OPTIONS.filter((o) => !this.options[o[0]] && o[3]).map((o) => o[0]);
        const s = this.selection;
        const hash = writeHash({t: this.view.isWhole ? null : [this.view.t0, this.view.t1],
            task: s ? s.run.pack.peek('task_id')[s.task] : undefined,
            run: s ? this.runs.indexOf(s.run) : 0, q: this.finder.query,
            hide: [...this.legend.hidden],
            on, off, theme: document.documentElement.dataset.theme});
        history.replaceState(null, '', hash || location.pathname + location.search);
    }

    // ---- options

    toggle(id) { this.option(id, !this.options[id]); }

    option(id, value) {
        this.options[id] = value;
        const button = byId(`opt-${id}`);
        if (button) button.setAttribute('aria-pressed', String(value));
        this.gantt.idle = this.options.idle;
        this.gantt.blame = this.options.blame;
        this.overlay.bounds = this.options.bounds;
        this.overlay.path = this.options.path;
        if (id === 'path' && !value) this.problems();
        if (id === 'path' && value) {
            Promise.all(this.runs.map((r) => r.pack.all('path_task', 'task_run'))).then(() => {
                const none = this.runs.every((r) => !r.pack.peek('path_task').length);
                this.banner(none && this.runs.length ? this.runs[0].noGraph : '');
                this.redraw();
            });
        }
        if (id === 'idle' && value) this.gaps();
        if (id === 'patterns') {
            this.gantt.patterned = this.legend.patterned = value;
            this.gantt.restyle();
            this.legend.draw();
        }
        if (id === 'same') this.align();
        if (id === 'blame') this.gantt.layout();
        this.legend.setKeys(this.keys());
        this.redraw();
        this.later();
    }

    // What else has colours in the chart, for the legend.
    keys() {
        const {dir} = this.runs[0], {idle, blame} = this.options, out = [];
        const used = (c) => c.name !== 'work' &&
            this.runs.some((r) => (r.dir.total || {})[c.name] > 0);
        if (idle) {
            const styles = causeStyles(dir.causes || []);
            out.push(['Idle', styles.filter((s, i) => used(dir.causes[i]))
                .map((s) => ({...s, name: causeTitle(s.name)}))]);
        }
        if (blame) {
            out.push(['Blame',
                blameStyles(dir.blames || []).map((s) => ({...s, name: blameTitle(s.name)}))]);
        }
        if (this.runs.some((r) => r.links.length)) out.push(['Transfers', xferStyles()]);
        return out;
    }

    // Idle gaps, fetched when they are first wanted.
    gaps() {
        const missing = this.runs.filter((r) => !r.hasGaps);
        if (!missing.length || !this.ready) return;
        Promise.all(missing.map((r) => r.loadGaps())).then(() => {
            this.tabs.refresh('range');
            this.redraw();
        });
    }

    switchTheme() {
        setTheme(themeNow() === 'dark' ? 'light' : 'dark');
        this.recolour();
        this.later();
    }

    help() { byId('help').showModal(); }
    focusSearch() { byId('search').focus(); byId('search').select(); }

    rowHeight(factor) {
        this.gantt.zoomY = Math.min(Math.max(this.gantt.zoomY * factor, 0.3), 8);
        this.gantt.layout();
        this.redraw();
    }

    scrollRows(by) { this.gantt.scroll(by); this.redraw(); }

    setBox(box) { this.overlay.box = box; this.redraw(false); }

    setCursor(x) {
        this.overlay.cursor = this.curves.cursor = x !== null && x >= GUTTER ? x : null;
        this.redraw(false);
    }

    hover(at) {
        this.mouse = at;
        const pick = at ? this.gantt.pick(at[0], at[1]) : null;
        this.overlay.hover = pick;
        this.setCursor(at ? at[0] : null);
        showTooltip(byId('tooltip'), pick, this.gantt, at);
    }

    // ---- selection

    async click(x, y) {
        const pick = this.gantt.pick(x, y);
        if (!pick || pick.piece < 0) return this.deselect();
        return this.selectPiece(pick.row, pick.piece);
    }

    async selectPiece(row, piece) {
        const {run, lane, type} = row;
        if (!run.pack.peek('task_run')) this.fetching();
        await run.loadTasks();
        let task = NONE;
        if (type === 'task') task = run.pack.peek('run_task')[run.runOfPiece(lane, piece)];
        else if (type === 'blame') task = lane.task[piece];
        else
            task = run.xfer.xfer_task[lane.index[lane.series.src ? lane.series.src[piece] : piece]];
        if (task === undefined || task === NONE) return this.deselect();
        return this.select(run, task, false);
    }

    // Details of large logs are fetched with the first selection.
    fetching() {
        this.tabs.show('task');
        byId('panel-body').replaceChildren(
            h('p', {class: 'empty'}, 'Fetching the details of all tasks…'));
    }

    // reveal: move the view to the task; show: turn to its tab.
    async select(run, task, reveal = true, show = true) {
        if (show && !run.pack.peek('task_run')) this.fetching();
        await run.loadTasks();
        if (run.pack.problems.length) this.problems();
        if (!(task >= 0 && task < run.dir.tasks)) return;
        this.selection = this.overlay.selection = {run, task,
            preds: run.predecessors(task), succs: run.successors(task),
            runs: run.executions(task), other: await this.counterpart(run, task)};
        const t = run.task(task);
        if (reveal && t.ran) {
            this.view.reveal(t.start / run.stretch, t.end / run.stretch);
            const row = this.gantt.rowOfLane(run, t.lane);
            if (row) {
                const y = this.gantt.rowY(row);
                if (y < 40) this.gantt.scroll(y - 60);
                if (y + row.h > this.gantt.height)
                    this.gantt.scroll(y + row.h - this.gantt.height + 20);
            }
        }
        if (show) this.tabs.show('task');
        else this.tabs.refresh();
        this.say(`Task ${t.id}, ${t.kernel} ${t.name}, on ${t.laneName}, ` +
            `${t.ran ? formatTime(t.duration) : 'never ran'}`);
        this.redraw();
        this.later();
    }

    // The task of the same id and kernel in the other run.
    async counterpart(run, task) {
        const other = this.runs.find((r) => r !== run);
        if (!other) return null;
        await other.loadTasks();
        const t = run.task(task), i = other.pack.peek('task_id').indexOf(t.id);
        return i >= 0 && other.task(i).kernel === t.kernel ? {run: other, task: i} : null;
    }

    async selectId(run, id) {
        await run.loadTasks();
        const i = run.pack.peek('task_id').indexOf(id);
        if (i >= 0) await this.select(run, i, false);
    }

    deselect() {
        this.selection = this.overlay.selection = null;
        this.tabs.refresh('task');
        this.redraw();
        this.later();
    }

    focusSelection() {
        if (!this.selection) return;
        const {run} = this.selection, t = run.task(this.selection.task);
        if (!t.ran) return;
        const a = t.start / run.stretch, b = t.end / run.stretch, pad = (b - a) * 2;
        this.view.set(a - pad, b + pad);
    }
}

const app = new App();
window.heddleView = {
    app,
    frames: app.frames,
    ready: app.open().then(() => app).catch((e) => {
        app.banner(`The data cannot be shown: ${e.message}`);
        throw e;
    }),
    range: () => [app.view.t0, app.view.t1],
    select: (task) => app.select(app.runs[0], task),
    selected: () => (app.selection ? app.selection.task : null),
    search: (q) => { byId('search').value = q; return app.finder.search(q); },
};
