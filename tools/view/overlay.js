// SPDX-License-Identifier: BSD-3-Clause
// What lies above the chart and changes with the mouse: grid, selection, arrows,
// longest chain, bounds, marks, hits of a search, the box of a zoom.
import { NONE } from './pack.js';
import { upperBound } from './lod.js';
import { GUTTER, AXIS } from './gantt.js';
import { drawArrows, drawPath, runBox } from './arrows.js';
import { formatTime, niceStep } from './format.js';

const BOUND_NAMES = {path: 'longest chain', area: 'area', mixed: 'mixed',
    window: 'window', focus: 'focus', links: 'links'};
const MOST_HITS = 20000;
const MARK_LEFT = 420;  // with two runs their titles are left of this

export class Overlay {
    constructor(canvas, gantt) {
        this.canvas = canvas;
        this.gantt = gantt;
        this.g = canvas.getContext('2d');
        this.hover = null;      // {row, piece}
        this.selection = null;  // {run, task, preds, succs}
        this.box = null;        // {x0, x1} of a zoom in progress
        this.cursor = null;     // x of the mouse
        this.hits = null;       // {run, tasks}
        this.path = false;
        this.bounds = true;
        this.arrows = true;
        this.drawn = undefined; // the cursor, when nothing else was drawn
        this.colours = {};
    }

    resize(width, height, dpr) {
        const w = Math.round(width * dpr), h = Math.round(height * dpr);
        if (w !== this.canvas.width || h !== this.canvas.height) {
            this.canvas.width = w;
            this.canvas.height = h;
            this.drawn = undefined;
        }
        this.dpr = dpr;
    }

    // What changes with the view alone is drawn onto the chart itself.
    drawBelow(g) {
        const {gantt, colours} = this;
        if (!gantt.width || !colours.accent) return;
        g.setTransform(this.dpr, 0, 0, this.dpr, 0, 0);
        this.drawGrid(g);
        for (const run of gantt.runs) {
            this.drawMarks(g, run);
            this.drawBad(g, run);
            if (this.path) drawPath(g, gantt, run, colours);
        }
        if (this.bounds) this.drawBounds(g);
        this.drawHits(g);
    }

    draw() {
        const {g, gantt, colours, selection} = this;
        if (!gantt.width || !colours.accent) return;
        const plain = !selection && !this.hover && !this.box;
        if (plain && this.drawn === this.cursor) return;  // nothing new
        this.drawn = plain ? this.cursor : undefined;
        g.setTransform(this.dpr, 0, 0, this.dpr, 0, 0);
        g.clearRect(0, 0, gantt.width, gantt.height);
        if (selection) {
            if (this.arrows) drawArrows(g, gantt, selection, colours);
            for (const e of selection.runs) {
                this.outline(g, runBox(gantt, selection.run, e.run), colours.accent, 2.5);
            }
        }
        if (this.hover) this.outlinePiece(g, this.hover);
        if (this.box) this.drawBox(g);
        if (this.cursor !== null && !this.box) this.drawCursor(g);
    }

    drawGrid(g) {
        const {gantt} = this, {view} = gantt;
        const step = niceStep((view.t1 - view.t0) / Math.max(2, gantt.plotWidth / 110));
        g.fillStyle = this.colours.grid;
        for (let t = Math.ceil(view.t0 / step) * step; t <= view.t1; t += step) {
            const x = Math.round(gantt.x(t));
            if (x > GUTTER) g.fillRect(x, AXIS, 1, gantt.height - AXIS);
        }
        // Before the first and after the last time there is nothing.
        g.fillStyle = this.colours.outside;
        const a = gantt.x(0), b = gantt.x(view.total);
        if (a > GUTTER) g.fillRect(GUTTER, AXIS, a - GUTTER, gantt.height - AXIS);
        if (b < gantt.width)
            g.fillRect(Math.max(b, GUTTER), AXIS, gantt.width, gantt.height - AXIS);
    }

    // Top and bottom of what belongs to a run; null when it has no rows.
    extent(run) {
        const {gantt} = this, rows = gantt.rows.filter((r) => r.run === run);
        if (gantt.runs.length < 2) return {top: AXIS, end: gantt.height};
        if (!rows.length) return null;
        const last = rows[rows.length - 1];
        return {top: Math.max(AXIS, gantt.rowY(rows[0])), head: gantt.rowY(rows[0]) + 6,
            end: gantt.rowY(last) + last.h};
    }

    drawBounds(g) {
        const {gantt, colours} = this;
        g.font = `11px ${colours.font}`;
        for (const run of gantt.runs) {
            const {bounds} = run.dir, e = this.extent(run);
            if (!bounds || !e) continue;
            const names = new Map();  // of equal ones: all names
            for (const [kind, ns] of Object.entries(bounds.kind || {})) {
                if (!(ns > 0) || (gantt.runs.length > 1 && ns !== bounds.best)) continue;
                names.set(ns, [...(names.get(ns) || []), BOUND_NAMES[kind] || kind]);
            }
            const list = [...names].sort((a, b) => b[0] - a[0]);
            list.forEach(([ns, kinds], i) => {
                const x = gantt.x(ns / run.stretch), best = ns === bounds.best;
                if (e.end < AXIS) return;
                if (x < GUTTER || x > gantt.width) {
                    if (best) this.boundAside(g, ns, x < GUTTER, e);
                    return;
                }
                g.strokeStyle = best ? colours.bound : colours.muted;
                g.lineWidth = best ? 2 : 1;
                g.setLineDash(best ? [] : [4, 4]);
                g.beginPath();
                g.moveTo(x, e.top);
                g.lineTo(x, e.end);
                g.stroke();
                const two = gantt.runs.length > 1;  // then there is room in the row of the name
                const text = two ? `lower bound ${formatTime(ns, 4)}`
                    : `${best ? 'lower bound: ' : ''}${kinds.join(', ')} ${formatTime(ns, 4)}`;
                this.boundLabel(g, text, x, two ? e.top + 18 : e.end - 4 - 15 * i, best);
            });
            g.setLineDash([]);
        }
    }

    // The best bound lies outside of what the view shows: where, and where it is.
    boundAside(g, ns, isLeft, e) {
        const text = `lower bound ${formatTime(ns, 4)}`, {gantt} = this;
        const at = isLeft ? `\u2190 ${text}` : `${text} \u2192`;
        this.boundLabel(g, at, isLeft ? GUTTER : gantt.width,
            gantt.runs.length > 1 ? e.top + 18 : e.end - 4, true);
    }

    boundLabel(g, text, x, y, best) {
        const {colours} = this, w = g.measureText(text).width;
        const tx = x - w - 12 > GUTTER ? x - w - 6 : x + 6;
        g.textBaseline = 'bottom';
        g.textAlign = 'left';
        g.fillStyle = colours.plot;
        g.globalAlpha = 0.85;
        g.fillRect(tx - 3, y - 14, w + 6, 15);
        g.globalAlpha = 1;
        g.fillStyle = best ? colours.bound : colours.muted;
        g.fillText(text, tx, y);
    }

    drawMarks(g, run) {
        const t = run.pack.peek('mark_t'), text = run.pack.peek('mark_text');
        const e = this.extent(run);
        if (!t || !t.length || !e) return;
        const {gantt, colours} = this, two = gantt.runs.length > 1;
        g.font = `10px ${colours.font}`;
        g.textBaseline = 'top';
        g.textAlign = 'left';
        let next = GUTTER;
        const lo = upperBound(t, run.units(gantt.view.t0), 0, t.length);
        for (let i = lo; i < t.length; i++) {
            const x = gantt.x(run.ns(t[i]));
            if (x > gantt.width) break;
            if (x < next) continue;
            g.fillStyle = colours.mark;
            g.fillRect(Math.round(x), e.top, 1, e.end - e.top);
            next = x + 2;
            const name = run.text(text ? text[i] : NONE), y = two ? e.head : AXIS + 1;
            if (!name || y < AXIS || (two && x < MARK_LEFT)) continue;
            g.fillText(name, x + 4, y);
            next = x + g.measureText(name).width + 10;
        }
    }

    // A cross over what did not end well.
    drawBad(g, run) {
        const {gantt} = this;
        let last = null;
        g.strokeStyle = this.colours.bound;
        g.lineWidth = 2;
        g.beginPath();
        for (const r of run.bad || []) {
            const b = runBox(gantt, run, r);
            if (!b || b.x1 < GUTTER || b.x0 > gantt.width || b.y < AXIS) continue;
            const x = (Math.max(b.x0, GUTTER) + Math.min(b.x1, gantt.width)) / 2;
            if (last && last.y === b.y && Math.abs(last.x - x) < 6) continue;
            last = {x, y: b.y};
            const y = b.y + b.h / 2, d = Math.min(5, b.h / 2 - 1);
            g.moveTo(x - d, y - d);
            g.lineTo(x + d, y + d);
            g.moveTo(x + d, y - d);
            g.lineTo(x - d, y + d);
        }
        g.stroke();
    }

    drawHits(g) {
        if (!this.hits || !this.hits.tasks.length || this.hits.tasks.length > MOST_HITS) return;
        const {gantt} = this, {run, tasks} = this.hits;
        const of = run.pack.peek('task_run');
        const seen = new Map();
        g.fillStyle = this.colours.hit;
        for (const t of tasks) {
            const r = of[t];
            if (r === NONE) continue;
            const x = Math.round(gantt.x(run.ns(run.start[r])));
            if (x < GUTTER - 5 || x > gantt.width) continue;
            const lane = run.laneOfRun(r), key = lane * 65536 + x;
            if (seen.has(key)) continue;
            seen.set(key, true);
            const row = gantt.rowOfLane(run, lane);
            if (!row) continue;
            const y = gantt.rowY(row);
            if (y < AXIS) continue;
            const end = gantt.x(run.ns(run.start[r] + run.dur[r]));
            g.fillRect(Math.max(x, GUTTER), y, Math.max(2, end - x), 3);
        }
    }

    outline(g, b, colour, width) {
        if (!b) return;
        const x0 = Math.max(b.x0, GUTTER - 4), x1 = Math.min(Math.max(b.x1, b.x0 + 3),
            this.gantt.width + 4);
        if (x1 < GUTTER || x0 > this.gantt.width || b.y + b.h < AXIS) return;
        g.save();
        g.beginPath();
        g.rect(GUTTER, AXIS, this.gantt.width, this.gantt.height);
        g.clip();
        g.strokeStyle = this.colours.plot;
        g.lineWidth = width + 2;
        g.strokeRect(x0, b.y + 0.5, x1 - x0, b.h - 2);
        g.strokeStyle = colour;
        g.lineWidth = width;
        g.strokeRect(x0, b.y + 0.5, x1 - x0, b.h - 2);
        g.restore();
    }

    outlinePiece(g, hover) {
        const {row, piece} = hover, {gantt} = this;
        if (piece < 0) return;
        const s = row.lane.series;
        this.outline(g, {x0: gantt.x(row.run.ns(s.start[piece])), y: gantt.rowY(row), h: row.h,
            x1: gantt.x(row.run.ns(s.start[piece] + s.dur[piece]))}, this.colours.text, 1.5);
    }

    drawBox(g) {
        const {gantt, colours} = this;
        const a = Math.max(GUTTER, Math.min(this.box.x0, this.box.x1));
        const b = Math.max(this.box.x0, this.box.x1);
        g.fillStyle = colours.accent;
        g.globalAlpha = 0.15;
        g.fillRect(a, AXIS, b - a, gantt.height);
        g.globalAlpha = 1;
        g.fillRect(a, 0, 1, gantt.height);
        g.fillRect(b, 0, 1, gantt.height);
        g.font = `600 11px ${colours.font}`;
        g.textAlign = 'center';
        g.textBaseline = 'top';
        g.fillText(formatTime(gantt.time(b) - gantt.time(a)), (a + b) / 2, AXIS + 6);
    }

    drawCursor(g) {
        if (this.cursor < GUTTER) return;
        g.fillStyle = this.colours.cursor;
        g.fillRect(Math.round(this.cursor), AXIS, 1, this.gantt.height);
    }
}
