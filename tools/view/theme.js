// SPDX-License-Identifier: BSD-3-Clause
// Light and dark. style.css has the colours; canvases read them from there.

const THEME_NAMES = ['plot', 'panel', 'text', 'muted', 'line', 'grid', 'outside', 'accent',
    'cursor', 'bound', 'mark', 'hit', 'pred', 'succ', 'path', 'veil', 'font'];

export function themeNow() {
    const set = document.documentElement.dataset.theme;
    if (set) return set;
    return matchMedia('(prefers-color-scheme: dark)').matches ? 'dark' : 'light';
}

export function setTheme(name) {
    document.documentElement.dataset.theme = name;
}

export function themeColours() {
    const css = getComputedStyle(document.documentElement);
    return Object.fromEntries(THEME_NAMES.map((n) => [n, css.getPropertyValue(`--${n}`).trim()]));
}

export function onSystemTheme(f) {
    matchMedia('(prefers-color-scheme: dark)').addEventListener('change', f);
}
