// SPDX-License-Identifier: BSD-3-Clause
// A few lines about what is under the mouse.
import { NONE } from './pack.js';
import { h } from './dom.js';
import { pieceAt } from './lod.js';
import { formatTime, formatMoment, formatBytes } from './format.js';
import { causeTitle } from './idle.js';
import { blameTitle } from './colour.js';

function gapLines(row, gantt, x) {
    const {run, lane} = row;
    if (!lane.gaps) return null;
    const i = pieceAt(lane.gaps, run.units(gantt.time(x)), 0);
    if (i < 0) return null;
    const cause = run.dir.causes[lane.gaps.cls[i]];
    return [`idle: ${causeTitle(cause.name)}`, cause.text,
        formatTime(lane.gaps.dur[i] * run.unit)];
}

function pieceLines(row, piece) {
    const {run, lane, type} = row, s = lane.series;
    const time = formatTime(s.dur[piece] * run.unit, 4);
    const start = `at ${formatMoment(s.start[piece] * run.unit, s.dur[piece] * run.unit)}`;
    if (type === 'link') {
        const m = run.transfer(lane.index[s.src ? s.src[piece] : piece]);
        return [`${m.kind} ${formatBytes(m.bytes)}`,
            m.handle !== NONE && run.pack.peek('handle_name') ? run.handleName(m.handle) : null,
            `${time}, ${formatBytes(m.bytes / (m.duration || 1) * 1e9)}/s`, start];
    }
    if (type === 'blame')
        return [`blame: ${blameTitle(run.dir.blames[s.cls[piece]])}`, time, start];
    const tasks = run.pack.peek('run_task'), ids = run.pack.peek('task_id');
    const task = tasks ? tasks[run.runOfPiece(lane, piece)] : NONE;
    const names = run.pack.peek('task_name');
    const name = names && task !== NONE ? run.text(names[task]) : '';
    const id = ids && task !== NONE && task < ids.length ? ` #${ids[task]}` : '';
    return [`${run.kernelName(s.cls[piece])}${id}`, name || null, time, start];
}

export function showTooltip(el, hover, gantt, at) {
    if (!hover) { el.hidden = true; return; }
    const lines = hover.piece >= 0 ? pieceLines(hover.row, hover.piece)
        : gapLines(hover.row, gantt, at[0]);
    if (!lines) { el.hidden = true; return; }
    el.replaceChildren(...lines.filter(Boolean).map((l, i) =>
        h('div', {class: i ? null : 'first'}, l)));
    el.hidden = false;
    const w = el.offsetWidth, hgt = el.offsetHeight;
    const x = at[0] + 16 + w > gantt.width ? at[0] - w - 12 : at[0] + 16;
    const y = at[1] + 18 + hgt > gantt.height ? at[1] - hgt - 10 : at[1] + 18;
    el.style.transform = `translate(${Math.round(x)}px, ${Math.round(Math.max(0, y))}px)`;
}
