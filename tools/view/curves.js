// SPDX-License-Identifier: BSD-3-Clause
// What changes over time: running and ready tasks, memory against its budget,
// power, links. A canvas under the chart with the same time axis.
import { upperBound } from './lod.js';
import { GUTTER } from './gantt.js';
import { formatValue } from './format.js';

export const CURVE_HEIGHT = 58;
const CURVE_COLOURS = {running: '#0072b2', ready: '#e69f00', submitted: '#56b4e9',
    memory: '#cc79a7', power: '#d55e00', link: '#009e73'};

// Per pixel the largest and smallest value of a step curve, between t0 and t1.
export function curveColumns(t, v, t0, t1, width, hi, lo) {
    const scale = (t1 - t0) / width, n = t.length;
    let i = upperBound(t, t0, 0, n) - 1;
    let now = i >= 0 ? v[i] : 0;
    i++;
    for (let x = 0; x < width; x++) {
        const end = t0 + (x + 1) * scale;
        let a = now, b = now;
        while (i < n && t[i] < end) {
            now = v[i++];
            if (now > a) a = now;
            if (now < b) b = now;
        }
        hi[x] = a;
        lo[x] = b;
    }
}

export class Curves {
    constructor(canvas, view, gantt) {
        this.canvas = canvas;
        this.view = view;
        this.gantt = gantt;
        this.g = canvas.getContext('2d', {willReadFrequently: true, alpha: false});
        this.list = [];
        this.cursor = null;
        this.colours = {};
    }

    // Curves of all runs; those of the same name share a picture.
    async setRuns(runs) {
        const rows = new Map();
        for (const [k, run] of runs.entries()) {
            for (const c of run.dir.curves || []) {
                const a = await run.pack.all(c.array_t, c.array_v);
                if (!a[c.array_t].length) continue;
                if (!rows.has(c.name)) {
                    rows.set(c.name, {name: c.name, kind: c.kind, unit: c.unit, max: 0, parts: []});
                }
                const row = rows.get(c.name);
                row.max = Math.max(row.max, c.max || 0, c.limit || 0);
                const v = a[c.array_v];
                row.parts.push({run, k, t: a[c.array_t], v, limit: c.limit,
                    top: v.reduce((x, y) => Math.max(x, y), 0)});
            }
        }
        this.list = [...rows.values()];
    }

    get height() { return this.list.length * CURVE_HEIGHT; }

    resize(width, dpr) {
        const w = Math.round(width * dpr), h = Math.max(1, Math.round(this.height * dpr));
        this.width = width;
        this.dpr = dpr;
        if (this.canvas.width !== w || this.canvas.height !== h) {
            this.canvas.width = w;
            this.canvas.height = h;
            this.canvas.style.height = `${this.height}px`;
        }
        const n = Math.max(1, Math.floor(width - GUTTER));
        if (!this.hi || this.hi.length !== n) {
            this.hi = new Float64Array(n);
            this.lo = new Float64Array(n);
        }
    }

    draw() {
        const {g, colours} = this;
        if (!this.list.length || !colours.plot) return;
        g.setTransform(this.dpr, 0, 0, this.dpr, 0, 0);
        g.fillStyle = colours.plot;
        g.fillRect(0, 0, this.width, this.height);
        g.fillStyle = colours.panel;
        g.fillRect(0, 0, GUTTER, this.height);
        this.list.forEach((c, i) => this.drawCurve(c, i * CURVE_HEIGHT));
        g.fillStyle = colours.line;
        g.fillRect(GUTTER - 1, 0, 1, this.height);
        if (this.cursor !== null && this.cursor > GUTTER) {
            g.fillStyle = colours.cursor;
            g.fillRect(Math.round(this.cursor), 0, 1, this.height);
        }
    }

    drawCurve(c, top) {
        const {g, colours} = this, h = CURVE_HEIGHT - 8, base = top + CURVE_HEIGHT - 3;
        const max = c.max > 0 ? c.max * 1.05 : 1, y = (v) => base - v / max * h;
        const colour = CURVE_COLOURS[c.kind] || '#7a8699';
        for (const part of c.parts) {
            const {run} = part;
            curveColumns(part.t, part.v, run.units(this.view.t0), run.units(this.view.t1),
                this.hi.length, this.hi, this.lo);
            this.fillCurve(part, colour, y, base);
            if (part.limit) {
                g.strokeStyle = colours.bound;
                g.setLineDash([5, 4]);
                g.lineWidth = 1;
                g.beginPath();
                g.moveTo(GUTTER, Math.round(y(part.limit)) + 0.5);
                g.lineTo(this.width, Math.round(y(part.limit)) + 0.5);
                g.stroke();
                g.setLineDash([]);
            }
        }
        this.curveText(c, top);
        g.fillStyle = colours.line;
        g.fillRect(0, top + CURVE_HEIGHT - 1, this.width, 1);
    }

    // The first run is an area (darker up to the smallest value), the second a line.
    fillCurve(part, colour, y, base) {
        const {g, hi, lo} = this, end = part.run.makespan;
        const x0 = Math.max(0, Math.floor(this.gantt.x(0) - GUTTER));
        const x1 = Math.min(hi.length, Math.ceil(this.gantt.x(end) - GUTTER));
        if (x1 <= x0) return;
        for (const values of part.k === 0 ? [hi, lo] : []) {
            g.fillStyle = colour;
            g.globalAlpha = 0.28;
            g.beginPath();
            g.moveTo(GUTTER + x0, base);
            for (let x = x0; x < x1; x++) g.lineTo(GUTTER + x, y(values[x]));
            g.lineTo(GUTTER + x1, base);
            g.fill();
        }
        g.globalAlpha = 1;
        g.strokeStyle = part.k === 0 ? colour : this.colours.text;
        g.lineWidth = 1;
        g.beginPath();
        for (let x = x0; x < x1; x++) g.lineTo(GUTTER + x, y(hi[x]));
        g.stroke();
    }

    valueAt(part, x) {
        const i = upperBound(part.t, part.run.units(this.gantt.time(x)), 0, part.t.length) - 1;
        return i >= 0 ? part.v[i] : 0;
    }

    curveText(c, top) {
        const {g, colours} = this;
        g.textBaseline = 'alphabetic';
        g.textAlign = 'left';
        g.fillStyle = colours.text;
        g.font = `11.5px ${colours.font}`;
        let y = top + 3;
        const write = (text) => g.fillText(text, 10, y += 13);
        const cut = c.name.length > 24 ? c.name.lastIndexOf(' ', 24) : -1;
        for (const part of cut > 0 ? [c.name.slice(0, cut), c.name.slice(cut + 1)] : [c.name]) {
            write(part.length > 26 ? `${part.slice(0, 25)}…` : part);
        }
        g.fillStyle = colours.muted;
        g.font = `11px ${colours.font}`;
        const limit = c.parts[0].limit;
        const top1 = Math.max(...c.parts.map((p) => p.top));
        write(`max ${formatValue(top1, c.unit)}`);
        if (limit) {
            const what = c.kind === 'memory' ? 'budget'
                : c.kind === 'running' ? 'workers' : 'limit';
            write(`${what} ${formatValue(limit, c.unit)}`);
        }
        if (this.cursor !== null && this.cursor > GUTTER) {
            const text = c.parts.map((p) => formatValue(this.valueAt(p, this.cursor), c.unit))
                .join(' / ');
            const right = this.cursor > this.width - 120;
            g.textAlign = right ? 'right' : 'left';
            g.font = `600 11px ${colours.font}`;
            const w = g.measureText(text).width, x = this.cursor + (right ? -7 : 7);
            g.fillStyle = colours.plot;
            g.globalAlpha = 0.8;
            g.fillRect(right ? x - w - 3 : x - 3, top + 4, w + 6, 16);
            g.globalAlpha = 1;
            g.fillStyle = colours.text;
            g.fillText(text, x, top + 16);
        }
    }
}
