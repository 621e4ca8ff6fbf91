// SPDX-License-Identifier: BSD-3-Clause
// A program that still runs: each second, has its log grown? Then the first run
// is replaced by a newer one; view and selection stay.
import { Pack, fetchDir } from './pack.js';
import { byId } from './dom.js';
import { Run } from './run.js';

const LIVE_EVERY = 1000;

async function pollOnce(app) {
    const dir = await fetchDir(0), old = app.runs[0];
    byId('live').hidden = !dir.live;
    if (!(dir.generation > old.dir.generation)) return;
    const run = new Run(new Pack(0, dir, old.pack.source));
    await run.loadLanes();
    const {selection} = app, kept = selection && selection.run === old ? selection.task : null;
    app.runs[0] = run;
    app.finder.clear(run);
    if (kept !== null) app.selection = app.overlay.selection = null;
    app.adopt();
    await app.loadExtras(app.runs);
    if (kept !== null) await app.select(run, kept, false, false);
    else app.tabs.refresh();
}

export function followLive(app) {
    let busy = false;
    setInterval(async () => {
        if (busy || document.hidden) return;
        busy = true;
        try {
            await pollOnce(app);
        } catch (e) {
            app.banner(`The program that serves this page does not answer: ${e.message}`);
        }
        busy = false;
    }, LIVE_EVERY);
}
