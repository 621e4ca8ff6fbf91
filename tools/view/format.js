// SPDX-License-Identifier: BSD-3-Clause
// Numbers for people: times, bytes, counts, shares.

const TIME_UNITS = [['s', 1e9], ['ms', 1e6], ['µs', 1e3], ['ns', 1]];

function digits(v, n) {
    if (v === 0) return '0';
    const a = Math.abs(v);
    const d = Math.max(0, n - 1 - Math.floor(Math.log10(a)));
    return v.toFixed(Math.min(d, 9));
}

// Narrow blanks between groups of three digits.
function groupDigits(text) { return text.replace(/\B(?=(\d{3})+$)/g, '\u202f'); }

// 1234567 -> "1.23 ms"
export function formatTime(ns, n = 3) {
    if (!Number.isFinite(ns)) return '–';
    const a = Math.abs(ns);
    for (const [name, by] of TIME_UNITS) {
        if (a >= by) return `${digits(ns / by, n)} ${name}`;
    }
    return ns === 0 ? '0' : `${digits(ns, n)} ns`;
}

// The unit for ticks `step` apart up to `most`: the largest in which they need no
// more than `decimals`.
export function tickUnit(step, most, decimals = 3) {
    for (const u of TIME_UNITS) {
        if (most >= u[1] && step >= u[1] * 0.99 * 10 ** -decimals) return u;
    }
    return TIME_UNITS[3];
}

// A time with enough digits to tell it from others `step` apart.
export function formatTick(ns, step, unit) {
    const d = Math.max(0, Math.ceil(-Math.log10(step / unit[1]) - 1e-9));
    const [whole, part] = (ns / unit[1]).toFixed(Math.min(d, 9)).split('.');
    return `${groupDigits(whole)}${part ? `.${part}` : ''} ${unit[0]}`;
}

// A moment, precise enough for things that last `length`.
export function formatMoment(ns, length) {
    if (!Number.isFinite(ns)) return '–';
    if (ns === 0) return '0';
    const step = 10 ** Math.floor(Math.log10(Math.max(1, length / 1000)));
    return formatTick(ns, step, tickUnit(step, Math.abs(ns), 6));
}

export function formatBytes(b) {
    if (!Number.isFinite(b)) return '–';
    const names = ['B', 'KiB', 'MiB', 'GiB', 'TiB', 'PiB'];
    let i = 0;
    while (Math.abs(b) >= 1024 && i < names.length - 1) { b /= 1024; i++; }
    return `${i ? digits(b, 3) : Math.round(b)} ${names[i]}`;
}

// 0.0123 -> "12.3 mJ"
export function formatJoules(j) {
    if (!Number.isFinite(j)) return '–';
    const a = Math.abs(j);
    for (const [name, by] of [['GJ', 1e9], ['MJ', 1e6], ['kJ', 1e3], ['J', 1], ['mJ', 1e-3]]) {
        if (a >= by) return `${digits(j / by, 3)} ${name}`;
    }
    return j === 0 ? '0 J' : `${digits(j * 1e6, 3)} µJ`;
}

export function formatCount(n) {
    if (!Number.isFinite(n)) return '–';
    return groupDigits(String(Math.round(n)));
}

// 0.1234 -> "12.3 %"
export function formatShare(x) {
    if (!Number.isFinite(x)) return '–';
    const p = 100 * x, a = Math.abs(p);
    if (p === 0) return '0 %';
    return a < 0.1 ? '< 0.1 %' : `${p.toFixed(a < 99.95 ? 1 : 0)} %`;
}

export function formatValue(v, unit) {
    switch (unit) {
    case 'B': return formatBytes(v);
    case 'B/s': return `${formatBytes(v)}/s`;
    case 'tasks': return formatCount(v);
    default: return `${digits(v, 3)} ${unit || ''}`.trim();
    }
}

// 1, 2 or 5 times a power of ten, at least x.
export function niceStep(x) {
    const p = 10 ** Math.floor(Math.log10(x));
    for (const m of [1, 2, 5]) {
        if (m * p >= x * (1 - 1e-9)) return m * p;
    }
    return 10 * p;
}
