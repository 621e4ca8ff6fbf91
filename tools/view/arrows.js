// SPDX-License-Identifier: BSD-3-Clause
// Dependencies of the selected task as arrows, and the longest chain of them.
import { NONE } from './pack.js';
import { upperBound } from './lod.js';
import { GUTTER, AXIS } from './gantt.js';

const MOST_ARROWS = 400;

// Where an execution is on the chart: {x0, x1, y, h}, or null.
export function runBox(gantt, run, r) {
    if (!(r < run.start.length)) return null;
    const row = gantt.rowOfLane(run, run.laneOfRun(r));
    if (!row) return null;
    return {x0: gantt.x(run.ns(run.start[r])), y: gantt.rowY(row), h: row.h,
        x1: gantt.x(run.ns(run.start[r] + run.dur[r]))};
}

// The same for the main execution of a task.
export function taskBox(gantt, run, task) {
    const of = run.pack.peek('task_run');
    return of && task < of.length ? runBox(gantt, run, of[task]) : null;
}

function clampX(x, gantt) {
    return Math.min(Math.max(x, GUTTER - 2000), gantt.width + 2000);
}

function arrow(g, gantt, from, to, colour) {
    const xa = clampX(from.x1, gantt), xb = clampX(to.x0, gantt);
    const ya = from.y + from.h / 2, yb = to.y + to.h / 2;
    const bend = Math.min(60, Math.max(14, Math.abs(xb - xa) / 2));
    g.strokeStyle = g.fillStyle = colour;
    g.beginPath();
    g.moveTo(xa, ya);
    g.bezierCurveTo(xa + bend, ya, xb - bend, yb, xb - 5, yb);
    g.stroke();
    g.beginPath();
    g.moveTo(xb, yb);
    g.lineTo(xb - 7, yb - 3.5);
    g.lineTo(xb - 7, yb + 3.5);
    g.fill();
}

function inPlot(g, gantt, f) {
    g.save();
    g.beginPath();
    g.rect(GUTTER, AXIS, gantt.width - GUTTER, gantt.height - AXIS);
    g.clip();
    f();
    g.restore();
}

// Solid arrows come in, dashed ones go out.
export function drawArrows(g, gantt, sel, colours) {
    const box = taskBox(gantt, sel.run, sel.task);
    if (!box) return;
    inPlot(g, gantt, () => {
        g.lineWidth = 1.5;
        for (const p of sel.preds.slice(0, MOST_ARROWS)) {
            const b = taskBox(gantt, sel.run, p);
            if (b) arrow(g, gantt, b, box, colours.pred);
        }
        g.setLineDash([5, 3]);
        for (const s of sel.succs.slice(0, MOST_ARROWS)) {
            const b = taskBox(gantt, sel.run, s);
            if (b) arrow(g, gantt, box, b, colours.succ);
        }
    });
}

// The longest chain of dependencies: a line through its tasks.
export function drawPath(g, gantt, run, colours) {
    const path = run.pack.peek('path_task'), of = run.pack.peek('task_run');
    if (!path || !of || !path.length) return;
    if (!run.pathStart || run.pathStart.length !== path.length) {
        run.pathStart = Float64Array.from(path, (t) => of[t] === NONE ? 0 : run.start[of[t]]);
    }
    const t0 = run.units(gantt.view.t0), t1 = run.units(gantt.view.t1);
    const first = Math.max(0, upperBound(run.pathStart, t0, 0, path.length) - 2);
    inPlot(g, gantt, () => {
        g.strokeStyle = colours.path;
        g.lineWidth = 2.5;
        g.lineJoin = 'round';
        g.beginPath();
        let lastX = -Infinity, open = false;
        for (let i = first; i < path.length; i++) {
            if (i > first + 1 && run.pathStart[i - 1] > t1) break;
            const b = taskBox(gantt, run, path[i]);
            if (!b || (b.x1 - lastX < 1 && i + 1 < path.length)) continue;
            const y = b.y + b.h / 2, xa = clampX(b.x0, gantt), xb = clampX(b.x1, gantt);
            if (open) g.lineTo(xa, y);
            else g.moveTo(xa, y);
            g.lineTo(xb, y);
            open = true;
            lastX = b.x1;
        }
        g.stroke();
    });
}
