// SPDX-License-Identifier: BSD-3-Clause
// The tabs at the right, with the keys that people expect of tabs.
import { h, byId } from './dom.js';

export class Tabs {
    constructor(list, body) {
        this.list = list;
        this.body = body;
        this.tabs = [];
        this.current = null;
    }

    // fill(): content of the tab, made when it is shown.
    add(id, title, fill) {
        const button = h('button', {type: 'button', role: 'tab', id: `tab-${id}`,
            'aria-controls': 'panel-body', 'aria-selected': 'false', tabindex: '-1',
            onclick: () => this.show(id), onkeydown: (e) => this.key(e)}, title);
        this.list.append(button);
        this.tabs.push({id, button, fill});
    }

    show(id) {
        this.current = id;
        for (const t of this.tabs) {
            t.button.setAttribute('aria-selected', String(t.id === id));
            t.button.tabIndex = t.id === id ? 0 : -1;
        }
        this.body.setAttribute('aria-labelledby', `tab-${id}`);
        this.body.scrollTop = 0;
        this.refresh();
    }

    refresh(id = this.current) {
        if (id !== this.current) return;
        const t = this.tabs.find((x) => x.id === id);
        const top = this.body.scrollTop;
        if (t) this.body.replaceChildren(...[t.fill()].flat());
        this.body.scrollTop = top;
    }

    key(e) {
        const i = this.tabs.findIndex((t) => t.id === this.current), n = this.tabs.length;
        const to = {ArrowLeft: i - 1, ArrowRight: i + 1, Home: 0, End: n - 1}[e.key];
        if (to === undefined) return;
        e.preventDefault();
        e.stopPropagation();
        this.show(this.tabs[(to + n) % n].id);
        byId(`tab-${this.current}`).focus();
    }
}
