// SPDX-License-Identifier: BSD-3-Clause
// Level of detail. A *series* is what one lane shows: pieces (start, dur, class)
// that do not overlap, by start. Above a few pieces per pixel it is drawn from
// a pyramid of bins: per bin the time that is covered, and the class that covers
// most of it. Level 0 is exact; a bin of a higher level has the sum of its two
// children, and the class of the fuller one.

export const EMPTY = 0xffff;   // class of a bin without pieces
export const HIDDEN = 0xfffe;  // class of a bin with filtered pieces only
const PER_BIN = 2;             // pieces per bin of level 0, on average
const SMALL = 4096;            // fewer pieces need no pyramid

// First index in [lo, hi) with array[i] > x.
export function upperBound(array, x, lo, hi) {
    while (lo < hi) {
        const mid = (lo + hi) >>> 1;
        if (array[mid] <= x) lo = mid + 1;
        else hi = mid;
    }
    return lo;
}

// Pieces that overlap (nested tasks, parallel transfers) made disjoint: what
// began last is on top. Returns null when nothing overlaps.
export function flatten(start, dur, cls, first, n) {
    let end = 0, clean = true;
    for (let i = first; i < first + n && clean; i++) {
        clean = start[i] >= end;
        end = start[i] + dur[i];
    }
    if (clean) return null;
    const s = [], d = [], c = [], src = [], stack = [];
    let now = 0;
    const emit = (to) => {  // what is on top, until `to`
        while (stack.length) {
            const top = stack[stack.length - 1];
            const e = start[top] + dur[top];
            const stop = Math.min(e, to);
            if (stop > now) {
                const k = s.length - 1;
                if (k >= 0 && src[k] === top && s[k] + d[k] === now) d[k] += stop - now;
                else { s.push(now); d.push(stop - now); c.push(cls[top]); src.push(top); }
                now = stop;
            }
            if (e > to) break;
            stack.pop();
        }
    };
    for (let i = first; i < first + n; i++) {
        emit(start[i]);
        now = Math.max(now, start[i]);
        stack.push(i);
    }
    emit(Infinity);
    return {start: Uint32Array.from(s), dur: Uint32Array.from(d),
        cls: Uint16Array.from(c), src: Uint32Array.from(src)};
}

function buildFinest(series, shift, span, shown) {
    const {start, dur, cls, first, n} = series;
    const w = 2 ** shift, bins = Math.floor(span / w) + 1;
    const kern = new Uint16Array(bins).fill(EMPTY), busy = new Uint32Array(bins);
    const sum = new Float64Array(65536), touched = [];
    let bin = -1, hidden = 0;
    const flush = () => {
        let best = 0, all = 0, k = EMPTY;
        for (const c of touched) {
            all += sum[c];
            if (sum[c] > best || (sum[c] === best && c < k)) { best = sum[c]; k = c; }
            sum[c] = 0;
        }
        if (all > 0) { kern[bin] = k; busy[bin] = all; }
        else if (hidden > 0) { kern[bin] = HIDDEN; busy[bin] = hidden; }
        touched.length = 0;
        hidden = 0;
    };
    for (let i = first; i < first + n; i++) {
        let s = start[i];
        const e = s + dur[i], c = cls[i];
        const on = !shown || shown[c];
        while (s < e) {
            const b = Math.floor(s / w);
            if (b >= bins) break;
            if (b !== bin) {
                if (bin >= 0) flush();
                bin = b;
            }
            const stop = Math.min(e, (b + 1) * w), by = stop - s;
            if (!on) hidden += by;
            else {
                if (sum[c] === 0) touched.push(c);
                sum[c] += by;
            }
            s = stop;
        }
    }
    if (bin >= 0) flush();
    return {w, kern, busy};
}

function mergeLevel(low) {
    const bins = Math.ceil(low.kern.length / 2);
    const kern = new Uint16Array(bins).fill(EMPTY), busy = new Uint32Array(bins);
    const k = low.kern, b = low.busy;
    for (let i = 0; i < bins; i++) {
        const p = 2 * i, q = p + 1;
        const two = q < k.length && k[q] !== EMPTY;
        if (!two || k[p] === EMPTY) {
            const r = two ? q : p;
            kern[i] = k[r];
            busy[i] = b[r];
        } else if ((k[p] === HIDDEN) !== (k[q] === HIDDEN)) {
            const r = k[p] === HIDDEN ? q : p;
            kern[i] = k[r];
            busy[i] = b[r];
        } else {
            kern[i] = b[q] > b[p] ? k[q] : k[p];
            busy[i] = b[p] + b[q];
        }
    }
    return {w: 2 * low.w, kern, busy};
}

// `shown`: per class 0 when filtered; null: all are shown.
export function buildPyramid(series, span, shown) {
    if (series.n < SMALL) return [];
    let shift = 0;
    while (span / 2 ** shift > series.n / PER_BIN) shift++;
    const levels = [buildFinest(series, shift, span, shown)];
    while (levels[levels.length - 1].kern.length > 256) {
        levels.push(mergeLevel(levels[levels.length - 1]));
    }
    return levels;
}

// A series of n pieces from `first`, overlaps resolved, with its pyramid.
export function makeSeries(start, dur, cls, first, n, span, shown = null) {
    const flat = flatten(start, dur, cls, first, n);
    const s = flat ? {...flat, first: 0, n: flat.start.length}
        : {start, dur, cls, src: null, first, n};
    s.span = span;
    s.levels = buildPyramid(s, span, shown);
    return s;
}

// Index of the piece at time t (units), or -1; `slack` units off are forgiven.
export function pieceAt(s, t, slack) {
    const i = upperBound(s.start, t, s.first, s.first + s.n) - 1;
    const off = (k) => k < s.first || k >= s.first + s.n ? Infinity
        : Math.max(s.start[k] - t, t - s.start[k] - s.dur[k], 0);
    const a = off(i), b = off(i + 1);
    const best = b < a ? i + 1 : i;
    return Math.min(a, b) <= slack ? best : -1;
}

// One row of pixels: class per pixel, covered share, and where pieces begin.
export class Row {
    constructor(width) {
        this.width = width;
        this.kern = new Uint16Array(width);
        this.cover = new Float32Array(width);
        this.best = new Float32Array(width);
        this.edge = new Uint8Array(width);
        this.direct = false;
    }

    clear() {
        this.kern.fill(EMPTY);
        this.cover.fill(0);
        this.best.fill(0);
        this.edge.fill(0);
    }
}

function rasterLevel(row, level, t0, scale) {
    const {kern, busy, w} = level, bins = kern.length;
    for (let x = 0; x < row.width; x++) {
        const a = Math.floor((t0 + x * scale) / w);
        let z = Math.floor((t0 + (x + 1) * scale) / w);
        if (z <= a) z = a + 1;
        const lo = Math.max(a, 0), hi = Math.min(z, bins);
        let sum = 0, hid = 0, best = 0, k = EMPTY;
        for (let b = lo; b < hi; b++) {
            const c = kern[b];
            if (c === HIDDEN) hid += busy[b];
            else if (c !== EMPTY) {
                sum += busy[b];
                if (busy[b] > best) { best = busy[b]; k = c; }
            }
        }
        if (k !== EMPTY) {
            row.kern[x] = k;
            row.cover[x] = Math.min(1, sum / ((z - a) * w));
        } else if (hid > 0) {
            row.kern[x] = HIDDEN;
            row.cover[x] = Math.min(1, hid / ((z - a) * w));
        }
    }
}

function paint(row, x, by, c) {
    const cover = row.cover[x] + by;
    row.cover[x] = cover > 1 ? 1 : cover;
    if (by > row.best[x] || row.kern[x] === HIDDEN) {
        if (c === HIDDEN && row.kern[x] !== EMPTY) return;
        row.best[x] = by;
        row.kern[x] = c;
    }
}

function rasterPieces(row, s, t0, t1, scale, shown) {
    const {start, dur, cls} = s, last = s.first + s.n, width = row.width;
    let i = Math.max(s.first, upperBound(start, t0, s.first, last) - 1);
    const stop = upperBound(start, t1, i, last);
    const dense = stop - i > 8 * width;  // then look at a few per pixel
    const k = 1 / scale;
    for (; i < stop; i++) {
        const a = (start[i] - t0) * k, b = a + dur[i] * k;
        if (b <= 0) continue;
        const c = shown && !shown[cls[i]] ? HIDDEN : cls[i];
        const xa = a < 0 ? 0 : a | 0, xb = b >= width ? width : b | 0;
        if (xa >= width) break;
        if (xa === xb) {
            paint(row, xa, b - a, c);
            if (dense) {
                const next = upperBound(start, t0 + (xa + 1) * scale, i, stop) - 1;
                if (next - i > 8) i += Math.ceil((next - i) / 8) - 1;
            }
            continue;
        }
        paint(row, xa, a < 0 ? 1 : xa + 1 - a, c);
        for (let x = xa + 1; x < xb; x++) { row.kern[x] = c; row.cover[x] = 1; }
        if (xb < width && b > xb) paint(row, xb, b - xb, c);
        if (a >= 0 && b - a >= 3) row.edge[xa] = 1;
    }
}

// Fills `row` with the series between t0 and t1 (units). row.direct tells
// whether single pieces were drawn.
export function rasterSeries(row, s, t0, t1, shown) {
    row.clear();
    const scale = (t1 - t0) / row.width;
    let level = null;
    for (const l of s.levels) {
        if (l.w <= scale) level = l;
    }
    row.direct = !level;
    if (level) rasterLevel(row, level, t0, scale);
    else rasterPieces(row, s, t0, t1, scale, shown);
}
