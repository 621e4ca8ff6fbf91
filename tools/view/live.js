// SPDX-License-Identifier: BSD-3-Clause
// A program that still runs, or a large log that is still being explained: each
// second, is there a newer pack? Then its run replaces the old one; view and
// selection stay.
import { Pack, fetchDir } from './pack.js';
import { Run } from './run.js';

const LIVE_EVERY = 1000;

// Run k of the page, newer if there is one; else null.
async function newerRun(app, k) {
    const dir = await fetchDir(k), old = app.runs[k];
    if (!(dir.generation > old.dir.generation)) return null;
    const run = new Run(new Pack(k, dir, old.pack.source));
    if (!run.takeLanes(old)) await run.loadLanes();
    return run;
}

async function replaceRun(app, k, run) {
    const old = app.runs[k], {selection} = app;
    const kept = selection && selection.run === old ? selection.task : null;
    app.runs[k] = run;
    if (app.finder.hits.run === old) app.finder.clear(run);
    if (kept !== null) app.selection = app.overlay.selection = null;
    app.adopt();
    await app.loadExtras(app.runs);
    if (kept !== null) await app.select(run, kept, false, false);
    else app.tabs.refresh();
}

export function followLive(app) {
    let busy = false;
    const timer = setInterval(async () => {
        if (busy || document.hidden) return;
        busy = true;
        try {
            for (let k = 0; k < app.runs.length; k++) {
                const run = app.runs[k].dir.live ? await newerRun(app, k) : null;
                if (run) await replaceRun(app, k, run);
            }
        } catch (e) {
            app.banner(`The program that serves this page does not answer: ${e.message}`);
        }
        if (!app.runs.some((r) => r.dir.live)) clearInterval(timer);
        busy = false;
    }, LIVE_EVERY);
}
