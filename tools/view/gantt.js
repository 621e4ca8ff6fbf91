// SPDX-License-Identifier: BSD-3-Clause
// The Gantt chart: a row per worker, stream and link. Rows are painted into an
// image, pixel by pixel, so that the time of a frame depends on the size of the
// window, hardly on the number of tasks; text is drawn on top.
import { Row, rasterSeries, upperBound, pieceAt } from './lod.js';
import { causeStyles, blameStyles, blameTitle, xferStyles, XFER_KINDS } from './colour.js';
import { Lut, colourRow, inkOn } from './colour.js';
import { formatTick, formatShare, niceStep, tickUnit } from './format.js';

export const GUTTER = 172;    // width of the names, CSS pixels
export const AXIS = 26;       // height of the time axis
const HEAD = 24;              // title of a run, when there are two
const MARKS = 18;             // room for the names of marks
const GROUP_GAP = 8;          // between workers, devices, links
const NAME_STEP = 10;         // least distance of two names
const ROW_MOST = 240;         // highest row: a few lanes fill the window
const LABEL_MIN = 34;         // narrowest piece with a label

const KIND_ORDER = {worker: 0, device: 1, other: 2, submitter: 3, link: 4};

export class Gantt {
    constructor(canvas, view) {
        this.canvas = canvas;
        this.view = view;
        this.g = canvas.getContext('2d', {willReadFrequently: true, alpha: false});
        this.runs = [];
        this.rows = [];
        this.scrollY = 0;
        this.zoomY = 1;
        this.idle = false;
        this.blame = false;
        this.patterned = false;
        this.colours = {};
        this.widths = new Map();  // of labels
        this.width = this.height = 0;
        this.dpr = 1;
    }

    // Rows of all runs: blame, workers, streams, links.
    setRuns(runs) {
        this.runs = runs;
        this.layout();
        this.restyle();
    }

    setTheme(colours) {
        this.colours = colours;
        this.restyle();
    }

    restyle() {
        if (!this.colours.plot) return;
        const bg = this.colours.plot;
        this.luts = new Map();
        for (const run of this.runs) {
            this.luts.set(run, {
                task: new Lut(run.styles, bg, this.patterned),
                gap: new Lut(causeStyles(run.dir.causes || []), bg, false),
                blame: new Lut(blameStyles(run.dir.blames || []), bg, false),
                link: new Lut(xferStyles(), bg, false)});
        }
    }

    layout() {
        const rows = [];
        for (const run of this.runs) {
            if (this.runs.length > 1) rows.push({type: 'head', run, weight: 0, fixed: HEAD});
            if (this.blame && run.blame) {
                rows.push({type: 'blame', run, lane: run.blame, weight: 0, fixed: 18});
            }
            const lanes = run.lanes.filter((l) => l.dir.is_worker || l.series.n)
                .map((l, i) => ({l, i}))
                .sort((a, b) => (KIND_ORDER[a.l.kind] ?? 2) - (KIND_ORDER[b.l.kind] ?? 2) ||
                    a.i - b.i).map((x) => x.l);
            let kind = null;
            for (const lane of [...lanes, ...run.links]) {
                const gap = kind !== null && kind !== lane.kind ? GROUP_GAP : 0;
                kind = lane.kind;
                const link = lane.kind === 'link' && !lane.dir;
                rows.push({type: link ? 'link' : 'task', run, lane, gap,
                    weight: link ? 0.7 : 1, fixed: 0});
            }
        }
        const marks = this.runs.length === 1 && this.runs[0].dir.arrays.mark_t;
        const top = marks && marks.n ? MARKS : 4;
        const room = this.height - AXIS - top - 4;
        let fixed = 0, weight = 0;
        for (const r of rows) { fixed += r.fixed + (r.gap || 0); weight += r.weight; }
        const fit = weight ? (room - fixed) / weight : 0;
        const unit = Math.max(5, Math.floor(Math.min(ROW_MOST, fit))) * this.zoomY;
        let y = top;
        for (const r of rows) {
            y += r.gap || 0;
            r.y = y;
            r.h = r.fixed ||
                Math.max(4, Math.floor(unit * r.weight), Math.min(11, Math.floor(unit)));
            y += r.h;
        }
        this.rows = rows;
        this.laneRows = new Map(this.runs.map((run) => [run, []]));
        for (const r of rows) if (r.type === 'task') this.laneRows.get(r.run)[r.lane.index] = r;
        this.content = y + 4;
        this.scroll(0);
    }

    resize(width, height, dpr) {
        if (width === this.width && height === this.height && dpr === this.dpr) return;
        this.width = width;
        this.height = height;
        this.dpr = dpr;
        this.canvas.width = Math.round(width * dpr);
        this.canvas.height = Math.round(height * dpr);
        const w = Math.max(1, this.canvas.width - Math.round(GUTTER * dpr));
        const h = Math.max(1, this.canvas.height - Math.round(AXIS * dpr));
        this.image = new ImageData(w, h);
        this.pixels = new Uint32Array(this.image.data.buffer);
        this.row = new Row(w);
        this.line = new Uint32Array(w);
        this.lines = Array.from({length: 8}, () => new Uint32Array(w));
        this.layout();
    }

    scroll(by) {
        const most = Math.max(0, this.content - (this.height - AXIS));
        this.scrollY = Math.min(Math.max(this.scrollY + by, 0), most);
    }

    get plotWidth() { return Math.max(1, this.width - GUTTER); }

    // Time <-> x in CSS pixels of the canvas.
    x(ns) {
        return GUTTER + (ns - this.view.t0) / (this.view.t1 - this.view.t0) * this.plotWidth;
    }

    time(x) {
        return this.view.t0 + (x - GUTTER) / this.plotWidth * (this.view.t1 - this.view.t0);
    }

    rowY(row) { return row.y - this.scrollY + AXIS; }

    rowAt(y) {
        const at = y - AXIS + this.scrollY;
        return this.rows.find((r) => at >= r.y && at < r.y + r.h) || null;
    }

    rowOfLane(run, lane) {
        const rows = this.laneRows.get(run);
        return (rows && rows[lane]) || null;
    }

    // {row, piece} under a point, or null.
    pick(x, y) {
        if (x < GUTTER || y < AXIS) return null;
        const row = this.rowAt(y);
        if (!row || row.type === 'head') return null;
        const perPixel = row.run.units((this.view.t1 - this.view.t0) / this.plotWidth);
        const piece = pieceAt(row.lane.series, row.run.units(this.time(x)), 2 * perPixel);
        return {row, piece};
    }

    draw() {
        const {g, dpr, view} = this;
        if (!this.image || !this.luts) return;
        const bg = parseInt(this.colours.plot.slice(1), 16);
        const pixel = (255 << 24 | (bg & 255) << 16 | (bg & 0xff00) | bg >> 16) >>> 0;
        this.pixels.fill(pixel);
        this.labels = [];
        for (const row of this.rows) {
            const y = this.rowY(row);
            if (y + row.h < AXIS || y > this.height || row.type === 'head') continue;
            this.paintRow(row, pixel);
        }
        g.setTransform(1, 0, 0, 1, 0, 0);
        g.putImageData(this.image, this.canvas.width - this.image.width,
            this.canvas.height - this.image.height);
        g.setTransform(dpr, 0, 0, dpr, 0, 0);
        this.drawLabels();
        this.drawGutter();
        this.drawAxis(g, view);
    }

    paintRow(row, background) {
        const {run, lane, type} = row, {view} = this;
        const luts = this.luts.get(run);
        const t0 = run.units(view.t0), t1 = run.units(view.t1);
        const pad = row.h > 14 ? 2 : row.h > 4 ? 1 : 0;
        const top = row.y - this.scrollY + (row.h > 9 ? 1 : 0);
        const bottom = row.y + row.h - this.scrollY - pad;
        // Zoomed in, gaps lie between the tasks; zoomed out, in a strip below them.
        let tasksEnd = bottom;
        if (this.idle && lane.gaps) {
            rasterSeries(this.row, lane.gaps, t0, t1, null);
            const height = bottom - top, inset = Math.floor(height / 4);
            const below = !this.row.direct && height >= 6;
            if (below) tasksEnd = bottom - Math.max(2, Math.floor(height / 3));
            this.fillRows(luts.gap, below ? tasksEnd : top + inset,
                below ? bottom : bottom - inset, background);
        }
        if (!lane.series.n) return;
        rasterSeries(this.row, lane.series, t0, t1, type === 'task' ? run.shown : null);
        this.fillRows(luts[type], top, tasksEnd, null);
        if (this.row.direct && row.h >= 13) this.collectLabels(row, t0, t1);
    }

    // Copies the row of pixels to all heights. background: a colour for empty
    // pixels, or null to keep what is there.
    fillRows(lut, top, bottom, background) {
        const w = this.image.width, h = this.image.height, {row, lines, pixels, dpr} = this;
        const y0 = Math.max(0, Math.round(top * dpr)), y1 = Math.min(h, Math.round(bottom * dpr));
        const phases = lut.patterned ? 8 : 1;
        const keep = background === null && this.idle;
        const base = background ?? pixels[y0 * w];
        if (!keep) {
            for (let p = 0; p < phases; p++) {
                lines[p].fill(base);
                colourRow(row, lut, p, lines[p]);
            }
        }
        for (let y = y0; y < y1; y++) {
            if (keep) colourRow(row, lut, y & 7, pixels.subarray(y * w, (y + 1) * w));
            else pixels.set(lines[y & (phases - 1)], y * w);
        }
    }

    collectLabels(row, t0, t1) {
        const {run} = row, s = row.lane.series, last = s.first + s.n;
        const k = this.plotWidth / (t1 - t0), min = LABEL_MIN / k;
        let i = Math.max(s.first, upperBound(s.start, t0, s.first, last) - 1);
        const stop = upperBound(s.start, t1, i, last);
        if (stop - i > 2 * this.plotWidth) return;
        for (; i < stop; i++) {
            if (s.dur[i] < min) continue;
            const a = Math.max(0, (s.start[i] - t0) * k);
            const b = Math.min(this.plotWidth, (s.start[i] + s.dur[i] - t0) * k);
            if (b - a >= LABEL_MIN) this.labels.push({row, run, i, x: GUTTER + a, w: b - a});
        }
    }

    labelText(label) {
        const {row, run, i} = label, s = row.lane.series, cls = s.cls[i];
        if (row.type === 'link') return XFER_KINDS[cls] || '';
        if (row.type === 'blame') return blameTitle((run.dir.blames || [])[cls] || '');
        const names = run.pack.peek('task_name'), tasks = run.pack.peek('run_task');
        const r = run.runOfPiece(row.lane, i);
        const own = names && tasks ? run.text(names[tasks[r]]) : '';
        return own || run.kernelName(cls);
    }

    drawLabels() {
        const {g} = this;
        g.textBaseline = 'middle';
        g.textAlign = 'left';
        for (const l of this.labels) {
            const s = l.row.lane.series, style = l.row.type === 'task'
                ? l.run.styles[s.cls[l.i]] : null;
            if (l.run.shown && l.row.type === 'task' && !l.run.shown[s.cls[l.i]]) continue;
            const small = l.row.h < 16;
            const text = this.fit(this.labelText(l), l.w - 5, small);
            if (!text) continue;
            g.font = `${small ? 10 : 11}px ${this.colours.font}`;
            g.fillStyle = style ? inkOn(style.colour) : '#ffffff';
            g.fillText(text, l.x + 3.5, this.rowY(l.row) + l.row.h / 2 + 0.5);
        }
    }

    // As much of a text as fits into `room` pixels; widths are measured once.
    fit(text, room, small) {
        if (this.widths.size > 20000) this.widths.clear();
        const key = small ? text : `${text}\n`;
        let w = this.widths.get(key);
        if (w === undefined) {
            this.g.font = `${small ? 10 : 11}px ${this.colours.font}`;
            w = this.g.measureText(text).width;
            this.widths.set(key, w);
        }
        if (w <= room) return text;
        const n = Math.floor(text.length * (room - 8) / w);
        return n >= 3 ? `${text.slice(0, n)}…` : '';
    }

    drawGutter() {
        const {g, colours} = this;
        g.fillStyle = colours.panel;
        g.fillRect(0, 0, GUTTER, this.height);
        g.textBaseline = 'middle';
        let last = -Infinity;
        for (const row of this.rows) {
            const y = this.rowY(row);
            if (y + row.h < AXIS || y > this.height) continue;
            if (row.type === 'head') {
                g.fillStyle = colours.panel;
                g.fillRect(0, y + 2, this.width, row.h - 4);
                g.fillStyle = colours.text;
                g.font = `600 12px ${colours.font}`;
                g.textAlign = 'left';
                g.fillText(this.headText(row.run), 10, y + row.h / 2);
                continue;
            }
            if (y + row.h / 2 - last < NAME_STEP) continue;  // no room for every name
            last = y + row.h / 2;
            g.font = `${row.h < 12 ? 9.5 : 11.5}px ${colours.font}`;
            g.fillStyle = row.type === 'task' ? colours.text : colours.muted;
            g.textAlign = 'left';
            const idle = row.run.dir.explained && row.lane.dir && row.lane.dir.is_worker &&
                row.lane.dir.idle;
            const room = idle ? 17 : 24;
            const name = row.lane.name;
            g.fillText(name.length > room ? `${name.slice(0, room - 1)}…` : name,
                10, y + row.h / 2 + 0.5);
            if (idle && row.run.dir.makespan_ns) {
                g.textAlign = 'right';
                g.fillStyle = colours.muted;
                g.fillText(formatShare(idle.work / row.run.dir.makespan_ns),
                    GUTTER - 10, y + row.h / 2 + 0.5);
            }
        }
        g.fillStyle = colours.line;
        g.fillRect(GUTTER - 1, 0, 1, this.height);
        const room = this.height - AXIS;
        if (this.content > room) {  // there is more above or below
            g.fillStyle = colours.muted;
            g.fillRect(GUTTER - 5, AXIS + this.scrollY / this.content * room, 3,
                room * room / this.content);
        }
    }

    headText(run) {
        const letter = 'AB'[this.runs.indexOf(run)] || '';
        const norm = run.stretch !== 1 ? `, time × ${(1 / run.stretch).toFixed(3)}` : '';
        return `${letter}  ${run.name}${norm}`;
    }

    drawAxis(g, view) {
        const {colours} = this;
        g.fillStyle = colours.panel;
        g.fillRect(0, 0, this.width, AXIS);
        g.fillStyle = colours.muted;
        g.font = `11px ${colours.font}`;
        g.textBaseline = 'middle';
        g.textAlign = 'left';
        g.fillText('time', 10, AXIS / 2);
        g.textAlign = 'right';
        g.fillText('in tasks', GUTTER - 10, AXIS / 2);
        const step = niceStep((view.t1 - view.t0) / Math.max(2, this.plotWidth / 110));
        const unit = tickUnit(step, Math.max(Math.abs(view.t0), Math.abs(view.t1)));
        g.textAlign = 'center';
        for (let t = Math.ceil(view.t0 / step) * step; t <= view.t1; t += step) {
            const x = this.x(t);
            if (x < GUTTER + 22 || x > this.width - 24) continue;
            g.fillText(formatTick(Math.abs(t) < step / 2 ? 0 : t, step, unit), x, AXIS / 2);
            g.fillRect(Math.round(x), AXIS - 4, 1, 4);
        }
        g.fillStyle = colours.line;
        g.fillRect(0, AXIS - 1, this.width, 1);
    }
}
