// SPDX-License-Identifier: BSD-3-Clause
// Elements from JavaScript. Text is always text, never markup.

// h('td', {class: 'num'}, 'text', otherElement)
export function h(tag, attributes, ...children) {
    const el = document.createElement(tag);
    for (const [name, value] of Object.entries(attributes || {})) {
        if (value === null || value === undefined || value === false) continue;
        if (name.startsWith('on')) el.addEventListener(name.slice(2), value);
        else el.setAttribute(name, value === true ? '' : value);
    }
    el.append(...children.flat(Infinity).filter((c) => c !== null && c !== undefined));
    return el;
}

export function byId(id) { return document.getElementById(id); }

// A table. columns: [[title, is number, title for the mouse]], rows of cells.
export function dataTable(caption, columns, rows, foot) {
    const cell = (tag, c, i) => h(tag, {class: columns[i][1] ? 'num' : null,
        scope: tag === 'th' ? 'row' : null}, c instanceof Node ? c : String(c));
    const line = (cells) => h('tr', null,
        cells.map((c, i) => cell(i === 0 ? 'th' : 'td', c, i)));
    return h('div', {class: 'scroll', tabindex: '0', role: 'region', 'aria-label': caption},
        h('table', null, h('caption', {class: 'sr'}, caption),
            h('thead', null, h('tr', null, columns.map((c) => h('th', {scope: 'col',
                class: c[1] ? 'num' : null, title: c[2] || null}, c[0])))),
            h('tbody', null, rows.map(line)),
            foot ? h('tfoot', null, line(foot)) : null));
}

// Name and value, one below the other.
export function factList(facts) {
    return h('dl', {class: 'facts'}, facts.filter((f) => f)
        .map(([name, value]) => [h('dt', null, name), h('dd', null, value)]));
}

// A horizontal bar of parts [{share, colour, title}].
export function shareBar(parts, label) {
    return h('div', {class: 'bar', role: 'img', 'aria-label': label},
        parts.filter((p) => p.share > 0).map((p) => h('span',
            {style: `width:${(100 * p.share).toFixed(3)}%;background:${p.colour}`,
                title: p.title})));
}
