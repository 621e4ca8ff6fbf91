// SPDX-License-Identifier: BSD-3-Clause
// Mouse, touch and keys on the chart.
import { GUTTER, AXIS } from './gantt.js';
import { selectMiddle, stepInRow, stepToRow } from './walk.js';

const STILL = 4;  // pixels: less is a click

export class Input {
    constructor(root, app) {
        this.root = root;
        this.app = app;
        this.press = null;
        root.addEventListener('wheel', (e) => this.wheel(e), {passive: false});
        root.addEventListener('pointerdown', (e) => this.down(e));
        root.addEventListener('pointermove', (e) => this.move(e));
        root.addEventListener('pointerup', (e) => this.up(e));
        root.addEventListener('pointercancel', () => this.cancel());
        root.addEventListener('pointerleave', () => app.hover(null));
        root.addEventListener('dblclick', () => app.focusSelection());
        document.addEventListener('keydown', (e) => this.key(e));
    }

    at(e) {
        const {left, top} = this.app.corner;  // asking the element would cost a layout
        return [e.clientX - left, e.clientY - top];
    }

    wheel(e) {
        e.preventDefault();
        const [x] = this.at(e), {view, gantt} = this.app;
        const by = e.deltaMode === 1 ? 16 : e.deltaMode === 2 ? 400 : 1;
        const dx = e.deltaX * by, dy = e.deltaY * by;
        if (x < GUTTER) return this.app.scrollRows(dy);
        if (e.shiftKey || Math.abs(dx) > Math.abs(dy)) {
            return view.pan((dx || dy) / gantt.plotWidth);
        }
        view.zoom(Math.exp(Math.max(-1, Math.min(1, dy * 0.0022))), gantt.time(x));
    }

    down(e) {
        if (e.button !== 0) return;
        const [x, y] = this.at(e);
        this.root.focus({preventScroll: true});
        const box = e.shiftKey || (y < AXIS && x > GUTTER);
        this.press = {x, y, t0: this.app.view.t0, lastY: y, box, moved: false};
        this.root.setPointerCapture(e.pointerId);
    }

    move(e) {
        const [x, y] = this.at(e), {press, app} = this;
        if (!press) return app.hover([x, y]);
        if (!press.moved && Math.hypot(x - press.x, y - press.y) < STILL) return;
        press.moved = true;
        if (press.box) return app.setBox({x0: press.x, x1: x});
        const len = app.view.t1 - app.view.t0;
        const t0 = press.t0 - (x - press.x) / app.gantt.plotWidth * len;
        app.scrollRows(press.lastY - y);
        press.lastY = y;
        app.view.pan((t0 - app.view.t0) / len);
        this.root.classList.add('dragging');
    }

    up(e) {
        const [x, y] = this.at(e), {press, app} = this;
        this.cancel();
        if (!press) return;
        if (!press.moved) return app.click(x, y);
        if (!press.box) return;
        const a = Math.max(GUTTER, Math.min(press.x, x)), b = Math.max(press.x, x);
        if (b - a > STILL) app.view.set(app.gantt.time(a), app.gantt.time(b));
    }

    cancel() {
        this.press = null;
        this.root.classList.remove('dragging');
        this.app.setBox(null);
    }

    key(e) {
        if (e.ctrlKey || e.metaKey || e.altKey) return;
        const el = e.target;
        if (el.closest && el.closest('dialog')) return;
        if (el.tagName === 'INPUT') return;
        const moves = ['ArrowLeft', 'ArrowRight', 'ArrowUp', 'ArrowDown', 'Home', 'Enter'];
        const elsewhere = el !== document.body && el !== this.root;
        if (moves.includes(e.key) && elsewhere) return;
        const action = this.actions()[e.key.length === 1 ? e.key.toLowerCase() : e.key];
        if (!action) return;
        e.preventDefault();
        action(e);
    }

    actions() {
        const {app} = this, {view} = app;
        const zoomIn = () => view.zoom(0.7), zoomOut = () => view.zoom(1 / 0.7);
        return {
            ArrowLeft: () => view.pan(-0.12), a: () => view.pan(-0.12),
            ArrowRight: () => view.pan(0.12), d: () => view.pan(0.12),
            ArrowUp: () => app.scrollRows(-40), ArrowDown: () => app.scrollRows(40),
            w: zoomIn, '+': zoomIn, '=': zoomIn, s: zoomOut, '-': zoomOut,
            0: () => view.reset(), Home: () => view.reset(),
            '[': () => app.rowHeight(1 / 1.25), ']': () => app.rowHeight(1.25),
            Enter: () => selectMiddle(app),
            ',': () => stepInRow(app, -1), '.': () => stepInRow(app, 1),
            j: () => stepToRow(app, 1), k: () => stepToRow(app, -1),
            f: () => app.focusSelection(),
            '/': () => app.focusSearch(),
            n: (e) => app.finder.next(e.shiftKey ? -1 : 1),
            i: () => app.toggle('idle'), c: () => app.toggle('path'),
            b: () => app.toggle('blame'), l: () => app.toggle('bounds'),
            p: () => app.toggle('patterns'), t: () => app.switchTheme(),
            Escape: () => app.deselect(), '?': () => app.help(),
        };
    }
}
