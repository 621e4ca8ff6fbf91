// SPDX-License-Identifier: BSD-3-Clause
// The whole run in a strip, with the visible part marked; drag it to move.
import { GUTTER } from './gantt.js';
import { curveColumns } from './curves.js';

export class Overview {
    constructor(canvas, view) {
        this.canvas = canvas;
        this.view = view;
        this.g = canvas.getContext('2d', {willReadFrequently: true, alpha: false});
        this.part = null;
        this.colours = {};
        this.width = this.height = 1;
        this.grab = null;
        canvas.addEventListener('pointerdown', (e) => this.press(e));
        canvas.addEventListener('pointermove', (e) => this.move(e));
        canvas.addEventListener('pointerup', () => { this.grab = null; });
    }

    // The curve of running tasks of the first run.
    setCurve(list) {
        const c = list.find((x) => x.kind === 'running');
        this.part = c ? {...c.parts[0], max: c.max} : null;
    }

    resize(width, height, dpr) {
        this.width = width;
        this.height = height;
        this.dpr = dpr;
        const w = Math.round(width * dpr), h = Math.round(height * dpr);
        if (this.canvas.width !== w) this.canvas.width = w;
        if (this.canvas.height !== h) this.canvas.height = h;
    }

    x(ns) {
        const [a, b] = this.view.whole();
        return GUTTER + (ns - a) / (b - a) * (this.width - GUTTER);
    }

    time(x) {
        const [a, b] = this.view.whole();
        return a + (x - GUTTER) / Math.max(1, this.width - GUTTER) * (b - a);
    }

    press(e) {
        const t = this.time(e.offsetX), {t0, t1} = this.view;
        const inside = t >= t0 && t <= t1 && !this.view.isWhole;
        this.grab = inside ? t - t0 : (t1 - t0) / 2;
        this.canvas.setPointerCapture(e.pointerId);
        this.move(e);
    }

    move(e) {
        if (this.grab === null || this.view.isWhole) return;
        const a = this.time(e.offsetX) - this.grab, len = this.view.t1 - this.view.t0;
        this.view.set(a, a + len);
    }

    draw() {
        const {g, colours, width, height} = this;
        if (!colours.plot) return;
        g.setTransform(this.dpr, 0, 0, this.dpr, 0, 0);
        g.fillStyle = colours.panel;
        g.fillRect(0, 0, width, height);
        g.fillStyle = colours.muted;
        g.font = `11px ${colours.font}`;
        g.textBaseline = 'middle';
        g.fillText('whole run', 10, height / 2);
        if (this.part) this.drawCurve();
        const a = Math.max(GUTTER, this.x(this.view.t0)), b = Math.max(a + 2, this.x(this.view.t1));
        g.fillStyle = colours.veil;
        g.fillRect(GUTTER, 0, a - GUTTER, height);
        g.fillRect(b, 0, width - b, height);
        g.strokeStyle = colours.accent;
        g.lineWidth = 2;
        g.strokeRect(a + 1, 1, Math.max(1, Math.min(b, width) - a - 2), height - 3);
        g.fillStyle = colours.line;
        g.fillRect(0, height - 1, width, 1);
    }

    drawCurve() {
        const {g, part, height} = this, n = Math.max(1, Math.floor(this.width - GUTTER));
        if (!this.hi || this.hi.length !== n) {
            this.hi = new Float64Array(n);
            this.lo = new Float64Array(n);
        }
        const [a, b] = this.view.whole(), {run} = part;
        curveColumns(part.t, part.v, run.units(a), run.units(b), n, this.hi, this.lo);
        g.fillStyle = '#0072b2';
        g.globalAlpha = 0.5;
        g.beginPath();
        g.moveTo(GUTTER, height);
        for (let x = 0; x < n; x++) {
            g.lineTo(GUTTER + x, height - 4 - this.hi[x] / (part.max || 1) * (height - 8));
        }
        g.lineTo(GUTTER + n, height);
        g.fill();
        g.globalAlpha = 1;
    }
}
