// SPDX-License-Identifier: BSD-3-Clause
// The search box: what was typed, how many tasks match, the next and the one
// before.
import { byId } from './dom.js';
import { formatCount } from './format.js';
import { searchTasks } from './search.js';

const TYPING = 250;  // ms without a key, then it looks

export class Finder {
    constructor(app) {
        this.app = app;
        this.query = '';
        this.clear(null);
        const input = byId('search');
        byId('search-form').addEventListener('submit', (e) => {
            e.preventDefault();
            if (input.value.trim() === this.query) this.next(1);
            else this.search(input.value);
        });
        input.addEventListener('input', () => {
            clearTimeout(this.typing);
            this.typing = setTimeout(() => this.search(input.value), TYPING);
        });
        input.addEventListener('keydown', (e) => {
            if (e.key !== 'Escape') return;
            input.value = '';
            this.search('');
            byId('gantt').focus();
        });
        byId('search-next').addEventListener('click', () => this.next(1));
        byId('search-prev').addEventListener('click', () => this.next(-1));
    }

    clear(run) {
        this.hits = {run, tasks: new Uint32Array(0), at: -1};
        this.app.overlay.hits = this.hits;
    }

    // Number of tasks found; `go`: select the first.
    async search(query, go = true) {
        clearTimeout(this.typing);
        const {app} = this, wanted = query.trim();
        this.query = wanted;
        this.clear(app.runs[0]);
        for (const run of wanted ? app.runs : []) {
            await run.loadTasks();
            if (this.query !== wanted) return 0;  // something else was typed meanwhile
            const tasks = searchTasks(run, wanted);
            if (tasks.length) {
                this.hits = app.overlay.hits = {run, tasks, at: -1};
                break;
            }
        }
        this.showCount();
        if (wanted && go) await this.next(1);
        app.redraw();
        app.later();
        return this.hits.tasks.length;
    }

    showCount() {
        const {run, tasks, at} = this.hits, n = tasks.length, {runs} = this.app;
        const text = !this.query ? '' : n === 0 ? 'none'
            : `${at >= 0 ? `${formatCount(at + 1)} of ` : ''}${formatCount(n)}` +
              (runs.length > 1 ? ` in ${'AB'[runs.indexOf(run)]}` : '');
        byId('search-count').textContent = text;
        if (this.query) this.app.say(n ? `${n} tasks found` : 'No task found');
    }

    async next(by) {
        const {run, tasks, at} = this.hits, n = tasks.length;
        if (!n) return;
        this.hits.at = (at + by + (at < 0 && by < 0 ? 1 : 0) + n) % n;
        this.showCount();
        await this.app.select(run, tasks[this.hits.at]);
    }
}
