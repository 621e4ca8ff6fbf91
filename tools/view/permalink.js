// SPDX-License-Identifier: BSD-3-Clause
// The state of the page in the address, after the #.

// {t: [a, b], sel: id, run, q, hide: [names], on: [options], off: [options], theme}
export function readHash(hash) {
    const p = new URLSearchParams(hash.replace(/^#/, '')), out = {};
    const t = (p.get('t') || '').split(',').map(Number);
    if (t.length === 2 && t.every(Number.isFinite) && t[1] > t[0]) out.t = t;
    if (/^\d+$/.test(p.get('task') || '')) out.task = Number(p.get('task'));
    out.run = p.get('run') === '1' ? 1 : 0;
    if (p.get('q')) out.q = p.get('q');
    out.hide = p.getAll('hide');
    out.on = p.getAll('on');
    out.off = p.getAll('off');
    if (['light', 'dark'].includes(p.get('theme'))) out.theme = p.get('theme');
    return out;
}

export function writeHash(s) {
    const p = new URLSearchParams();
    if (s.t) p.set('t', s.t.map((x) => Math.round(x)).join(','));
    if (s.task !== undefined) p.set('task', String(s.task));
    if (s.run) p.set('run', '1');
    if (s.q) p.set('q', s.q);
    for (const key of ['hide', 'on', 'off']) for (const v of s[key] || []) p.append(key, v);
    if (s.theme) p.set('theme', s.theme);
    const text = p.toString();
    return text ? `#${text}` : '';
}
