// SPDX-License-Identifier: BSD-3-Clause
// Which part of time is visible: t0 to t1, nanoseconds of the common axis.

const MARGIN = 0.02;  // empty share of the whole range at either side

export class View {
    constructor() {
        this.total = 1;       // length of the axis
        this.least = 10;      // shortest visible range
        this.t0 = 0;
        this.t1 = 1;
        this.listeners = [];
    }

    onChange(f) { this.listeners.push(f); }

    get isWhole() {
        const [a, b] = this.whole();
        return this.t0 <= a + 1e-6 * this.total && this.t1 >= b - 1e-6 * this.total;
    }

    whole() { return [-MARGIN * this.total, (1 + MARGIN) * this.total]; }

    // A new length; a view of everything stays one.
    resize(total, least) {
        const follow = this.isWhole || this.total <= 1;
        this.total = Math.max(total, 1);
        this.least = Math.min(least, this.total);
        if (follow) this.reset();
        else this.set(this.t0, this.t1);
    }

    reset() { this.set(...this.whole()); }

    set(a, b) {
        if (!(b > a)) return;
        const [lo, hi] = this.whole();
        let len = Math.min(Math.max(b - a, this.least), hi - lo);
        let mid = (a + b) / 2;
        if (len !== b - a && b - a > this.least) mid = Math.max(lo + len / 2, mid);
        let t0 = Math.min(Math.max(mid - len / 2, lo), hi - len);
        this.t0 = t0;
        this.t1 = t0 + len;
        for (const f of this.listeners) f();
    }

    // factor < 1 zooms in; `at` stays where it is.
    zoom(factor, at = (this.t0 + this.t1) / 2) {
        const len = Math.min(Math.max((this.t1 - this.t0) * factor, this.least),
            this.whole()[1] - this.whole()[0]);
        const f = (at - this.t0) / (this.t1 - this.t0);
        this.set(at - f * len, at + (1 - f) * len);
    }

    pan(share) {
        const by = share * (this.t1 - this.t0), [lo, hi] = this.whole();
        const d = Math.min(Math.max(by, lo - this.t0), hi - this.t1);
        this.set(this.t0 + d, this.t1 + d);
    }

    // Brings [a, b] into view, with as little movement as possible.
    reveal(a, b) {
        const len = this.t1 - this.t0;
        if (a >= this.t0 && b <= this.t1 && b - a > len / 400) return;
        const want = Math.min(Math.max(len, (b - a) * 1.5), Math.max((b - a) * 40, this.least));
        this.set((a + b - want) / 2, (a + b + want) / 2);
    }
}
