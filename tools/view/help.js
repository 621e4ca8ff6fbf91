// SPDX-License-Identifier: BSD-3-Clause
// The help: what is what, and the keys.
import { h, byId } from './dom.js';

const WHAT = [
    ['Chart', 'Each row is a worker, a stream of a device, or a link between memories. ' +
        'Time goes from left to right. A box is a task, its colour is its kernel. ' +
        'Zoomed out, a column has the colour of the kernel that fills most of it, ' +
        'and is paler the more idle time it has.'],
    ['Percent beside a name', 'Share of the run which that worker spent in tasks.'],
    ['Curves', 'Running and ready tasks, memory with its budget (dashed), power, links.'],
    ['Energy',
        'What counters measured; with an energy model also joules per kernel and the idle part.'],
    ['Lower bound', 'No schedule of these tasks on this machine can end before this line.'],
    ['Arrows', 'Of the selected task: solid ones come from what it waited for, dashed ones ' +
        'go to what waited for it.'],
    ['Longest chain', 'The tasks that depend on each other and take longest together.'],
    ['Blame', 'From the last task backwards: what each moment of the run was needed for.'],
];
const KEYS = [
    ['wheel, + −, W S', 'zoom (wheel: at the mouse)'],
    ['drag, ← →, A D', 'move in time'],
    ['↑ ↓, wheel over the names', 'move over the rows'],
    ['Shift + drag, or drag on the time axis', 'zoom to what the box covers'],
    ['0, Home', 'the whole run'],
    ['[ ]', 'lower or higher rows'],
    ['Enter', 'select the task in the middle'],
    [', .', 'previous or next task of that row'],
    ['J K', 'task in the row below or above'],
    ['F', 'zoom to the selected task'],
    ['/', 'search: kernel, name, operand, id; kernel:x name:x operand:x id:5 dur>1ms is:failed'],
    ['N, Shift + N', 'next or previous hit'],
    ['I', 'idle time by cause'],
    ['C', 'longest chain'],
    ['B', 'chain of blame'],
    ['L', 'lower bounds'],
    ['P', 'a pattern for each kernel'],
    ['T', 'light or dark'],
    ['Esc', 'nothing selected'],
    ['?', 'this help'],
];

export function setupHelp(dialog) {
    const list = (items, cls) => h('dl', {class: cls}, items.map(([k, v]) =>
        [h('dt', null, k), h('dd', null, v)]));
    dialog.append(h('form', {method: 'dialog'},
        h('button', {value: 'close', autofocus: true, class: 'close'}, 'Close'),
        h('h2', {id: 'help-title'}, 'What is what'), list(WHAT, 'what'),
        h('h2', null, 'Mouse and keys'), list(KEYS, 'keys'),
        h('p', null, 'The address of this page keeps the view: copy it to come back. ',
            'All data are in this page or come from the program that serves it; ' +
            'nothing is sent anywhere.')));
    byId('help-button').addEventListener('click', () => dialog.showModal());
}
