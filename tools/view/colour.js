// SPDX-License-Identifier: BSD-3-Clause
// Colours of kernels, causes and transfers, and patterns, so that colour is not
// the only cue. A kernel's colour depends on the names in the page alone: the
// same program looks the same every time.
import { EMPTY, HIDDEN } from './lod.js';

// Seven colours that people with any common colour blindness can tell apart
// (after Okabe and Ito, the yellow less bright); from the eighth kernel on, patterns distinguish
// them.
const KERNEL_COLOURS = ['#0072b2', '#e69f00', '#009e73', '#cc79a7', '#56b4e9',
    '#d55e00', '#d9c95f'];
const CAUSE_COLOURS = {work: '#4878a8', waste: '#c22b2b', data: '#8a5fbf',
    memory: '#d9487d', overhead: '#a0703a', start: '#a9b4c2', end: '#c3ccd6',
    sched: '#d99a1c', submit: '#2a9d9a', deps: '#77839a', unknown: '#9aa0a6'};
const BLAME_COLOURS = {exec: '#4878a8', transfer: '#8a5fbf', queue: '#d99a1c',
    submit: '#2a9d9a', overhead: '#a0703a'};
const BLAME_TITLES = {exec: 'task ran', transfer: 'data', queue: 'behind others',
    submit: 'submission', overhead: 'runtime'};
export const XFER_KINDS = ['fetch', 'prefetch', 'write back', 'evict'];
const XFER_COLOURS = ['#8a5fbf', '#56a0d8', '#d99a1c', '#d9487d'];
const NPATTERNS = 7;
const LEVELS = 16;

// Whether pixel (x, y) has the second colour of pattern p.
export function patternBit(p, x, y) {
    switch (p) {
    case 1: return ((x + y) & 7) < 2;
    case 2: return ((x - y) & 7) < 2;
    case 3: return (y & 3) === 0;
    case 4: return (x & 7) < 2;
    case 5: return (x & 3) === 0 && (y & 3) === 0;
    case 6: return ((x + y) & 7) === 0 || ((x - y) & 7) === 0;
    default: return false;
    }
}

export function rgbOf(hex) {
    const v = parseInt(hex.slice(1), 16);
    return [v >> 16, (v >> 8) & 255, v & 255];
}

function pixel(c) { return (255 << 24 | c[2] << 16 | c[1] << 8 | c[0]) >>> 0; }

function blend(a, b, f) { return a.map((x, i) => Math.round(x + (b[i] - x) * f)); }

// Black or white, whichever is readable on the colour.
export function inkOn(hex) {
    const [r, g, b] = rgbOf(hex).map((v) => {
        const c = v / 255;
        return c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4;
    });
    return 0.2126 * r + 0.7152 * g + 0.0722 * b > 0.2 ? '#000000' : '#ffffff';
}

function hashName(name) {
    let h = 2166136261;
    for (let i = 0; i < name.length; i++) h = Math.imul(h ^ name.charCodeAt(i), 16777619);
    return h >>> 0;
}

// {name: {colour, pattern, own}} for all names; `own` is its pattern when each
// kernel gets one. A name takes the slot its name hashes
// to, or the next free one, in alphabetical order; a full table starts over
// with the next pattern.
export function assignStyles(names) {
    const sorted = [...new Set(names)].sort(), out = new Map();
    const n = KERNEL_COLOURS.length;
    for (let i = 0; i < sorted.length; i += n) {
        const taken = new Array(n).fill(false);
        for (const name of sorted.slice(i, i + n)) {
            let slot = hashName(name) % n;
            while (taken[slot]) slot = (slot + 1) % n;
            taken[slot] = true;
            const pattern = Math.floor(i / n) % NPATTERNS;
            const own = 1 + out.size % (NPATTERNS - 1);
            out.set(name, {colour: KERNEL_COLOURS[slot], pattern, own});
        }
    }
    return out;
}

function fixedStyles(names, colours) {
    return names.map((name) => ({name, colour: colours[name] || '#9aa0a6', pattern: 0}));
}

export function causeStyles(causes) {
    return fixedStyles(causes.map((c) => c.name), CAUSE_COLOURS)
        .map((s) => ({...s, pattern: 1}));
}

export function blameStyles(names) { return fixedStyles(names, BLAME_COLOURS); }

export function blameTitle(name) { return BLAME_TITLES[name] || name; }

export function xferStyles() {
    return XFER_KINDS.map((name, i) => ({name, colour: XFER_COLOURS[i], pattern: 0}));
}

// Pixels for class x covered share: `front` is the colour, `back` the second
// colour of its pattern. Made once per theme.
export class Lut {
    constructor(styles, background, patterned) {
        const bg = rgbOf(background), n = styles.length + 1, step = LEVELS + 1;
        this.n = styles.length;
        this.front = new Uint32Array(n * step);
        this.back = new Uint32Array(n * step);
        this.dark = new Uint32Array(n);
        this.pattern = new Uint8Array(n);
        this.patterned = false;
        for (let k = 0; k < n; k++) {
            const s = styles[k] || {colour: '#9aa0a6', pattern: 0, faint: true};
            const c = s.faint ? blend(bg, rgbOf(s.colour), 0.35) : rgbOf(s.colour);
            const p = patterned && s.own ? s.own : s.pattern;
            const second = blend(c, rgbOf(inkOn(s.colour)), 0.35);
            this.pattern[k] = p;
            this.patterned = this.patterned || p !== 0;
            this.dark[k] = pixel(blend(c, bg, 0.6));
            for (let q = 0; q <= LEVELS; q++) {
                const f = q === 0 ? 0 : Math.max(0.3, q / LEVELS);
                this.front[k * step + q] = pixel(blend(bg, c, f));
                this.back[k * step + q] = pixel(blend(bg, second, f));
            }
        }
    }
}

// Pixels of a Row at height y. Empty pixels keep what is in `out`.
export function colourRow(row, lut, y, out) {
    const {kern, cover, edge, width} = row, step = LEVELS + 1;
    for (let x = 0; x < width; x++) {
        let k = kern[x];
        if (k === EMPTY) continue;
        if (k === HIDDEN || k > lut.n) k = lut.n;
        if (edge[x]) { out[x] = lut.dark[k]; continue; }
        const q = Math.ceil(cover[x] * LEVELS - 0.01);
        const two = lut.pattern[k] && patternBit(lut.pattern[k], x, y);
        out[x] = (two ? lut.back : lut.front)[k * step + (q > 0 ? q : 1)];
    }
}

// A small canvas with colour and pattern, for legends.
export function swatch(style, size = 14) {
    const el = document.createElement('canvas');
    el.width = el.height = size;
    el.className = 'swatch';
    el.setAttribute('aria-hidden', 'true');
    const g = el.getContext('2d');
    g.fillStyle = style.colour;
    g.fillRect(0, 0, size, size);
    g.fillStyle = inkOn(style.colour);
    g.globalAlpha = 0.35;
    for (let y = 0; style.pattern && y < size; y++) {
        for (let x = 0; x < size; x++) {
            if (patternBit(style.pattern, x, y)) g.fillRect(x, y, 1, 1);
        }
    }
    return el;
}
