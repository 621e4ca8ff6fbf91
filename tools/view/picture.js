// SPDX-License-Identifier: BSD-3-Clause
// The chart as a PNG file.
import { h } from './dom.js';

export function savePicture(app) {
    const {gantt, overlay} = app, out = document.createElement('canvas');
    out.width = gantt.canvas.width;
    out.height = gantt.canvas.height;
    const g = out.getContext('2d');
    g.drawImage(gantt.canvas, 0, 0);
    g.drawImage(overlay.canvas, 0, 0);
    out.toBlob((blob) => {
        const a = h('a', {href: URL.createObjectURL(blob), download: `${app.runs[0].name}.png`});
        a.click();
        setTimeout(() => URL.revokeObjectURL(a.href), 1000);
    });
}
