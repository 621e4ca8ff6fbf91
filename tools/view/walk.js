// SPDX-License-Identifier: BSD-3-Clause
// From task to task with keys: along a row, and to the rows beside it.
import { pieceAt } from './lod.js';

// Where keys go on: the selection, or the middle of what is visible.
function walkPlace(app) {
    const {gantt, view, selection} = app;
    if (selection) {
        const {run, task} = selection, t = run.task(task);
        const row = t.ran ? gantt.rowOfLane(run, t.lane) : null;
        if (row) return {row, at: (t.start + t.end) / 2 / run.stretch};
    }
    return {row: gantt.rows.find((r) => r.type === 'task' && r.lane.series.n),
        at: (view.t0 + view.t1) / 2};
}

function selectNear(app, row, at) {
    const piece = pieceAt(row.lane.series, row.run.units(at), Infinity);
    return piece >= 0 ? app.selectPiece(row, piece) : null;
}

export function selectMiddle(app) {
    const {row, at} = walkPlace(app);
    return row ? selectNear(app, row, at) : null;
}

export async function stepInRow(app, by) {
    const {row, at} = walkPlace(app);
    if (!row) return;
    const {run, lane} = row, s = lane.series, i = pieceAt(s, run.units(at), Infinity) + by;
    if (i < s.first || i >= s.first + s.n) return;
    await run.loadTasks();
    await app.select(run, run.pack.peek('run_task')[run.runOfPiece(lane, i)]);
}

export function stepToRow(app, by) {
    const {row, at} = walkPlace(app);
    const rows = app.gantt.rows.filter((r) => r.type === 'task' && r.lane.series.n);
    const next = row ? rows[rows.indexOf(row) + by] : null;
    return next ? selectNear(app, next, at) : null;
}
