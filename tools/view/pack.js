// SPDX-License-Identifier: BSD-3-Clause
// Where the data come from: arrays inside this page, or from a server. Arrays
// are fetched and decoded when somebody asks for them, once.

export const NONE = 0xffffffff;

const ARRAY_TYPES = {u8: Uint8Array, u16: Uint16Array, u32: Uint32Array,
    i32: Int32Array, f32: Float32Array, f64: Float64Array};

export function decodeBase64(text) {
    if (Uint8Array.fromBase64) return Uint8Array.fromBase64(text);
    const s = atob(text), out = new Uint8Array(s.length);
    for (let i = 0; i < s.length; i++) out[i] = s.charCodeAt(i);
    return out;
}

// Raw deflate; `bytes` is the size of the result. Never returns more.
export async function inflateRaw(coded, bytes) {
    const stream = new DecompressionStream('deflate-raw');
    const writer = stream.writable.getWriter();
    const sent = writer.write(coded).then(() => writer.close());
    sent.catch(() => {});  // the reader reports it
    const out = new Uint8Array(bytes), reader = stream.readable.getReader();
    let at = 0;
    for (;;) {
        const {done, value} = await reader.read();
        if (done) break;
        if (at + value.length > bytes) throw new Error('more data than announced');
        out.set(value, at);
        at += value.length;
    }
    if (at !== bytes) throw new Error(`${at} bytes instead of ${bytes}`);
    return out;
}

// Byte k of all elements follows byte k - 1 of all; `out` is in that order.
function joinPlanes(out) {
    const k = out.BYTES_PER_ELEMENT, n = out.length;
    if (k === 1) return out;
    const from = new Uint8Array(out.buffer, out.byteOffset, out.byteLength).slice();
    if (k === 2) {
        for (let i = 0; i < n; i++) out[i] = from[i] | from[n + i] << 8;
    } else if (k === 4 && !(out instanceof Float32Array)) {
        for (let i = 0; i < n; i++) {
            out[i] = from[i] | from[n + i] << 8 | from[2 * n + i] << 16 | from[3 * n + i] << 24;
        }
    } else {
        const to = new Uint8Array(out.buffer, out.byteOffset, out.byteLength);
        for (let b = 0; b < k; b++) for (let i = 0; i < n; i++) to[i * k + b] = from[b * n + i];
    }
    return out;
}

// In place, from what is stored to the elements.
export function undoCoding(out, coding) {
    switch (coding) {
    case 'delta':
        for (let i = 1; i < out.length; i++) out[i] += out[i - 1];
        return out;
    case 'planes':
        return joinPlanes(out);
    case 'dplanes':
        joinPlanes(out);
        for (let i = 0, last = 0; i < out.length; i++) {
            last = last + ((out[i] >>> 1) ^ -(out[i] & 1)) | 0;
            out[i] = last;
        }
        return out;
    case 'raw':
        return out;
    default:
        throw new Error(`unknown coding ${coding}`);
    }
}

// Coded bytes to the typed array of the directory's entry {type, n, coding}.
export function decodeArray(bytes, entry) {
    const type = ARRAY_TYPES[entry.type];
    if (!type) throw new Error(`unknown type ${entry.type}`);
    const need = entry.n * type.BYTES_PER_ELEMENT;
    if (bytes.byteLength !== need) {
        throw new Error(`${bytes.byteLength} bytes instead of ${need}`);
    }
    const fits = bytes.byteOffset % type.BYTES_PER_ELEMENT === 0;
    const at = fits ? bytes : bytes.slice();
    const out = new type(at.buffer, at.byteOffset, entry.n);
    return undoCoding(out, entry.coding);
}

// One run: the directory, and its arrays on demand.
export class Pack {
    constructor(number, dir, source) {
        this.number = number;
        this.source = source;  // (name, bytes, generation) -> Promise of coded bytes
        this.problems = [];
        this.dir = dir;
        this.pending = new Map();
        this.arrays = new Map();
    }

    // A typed array; empty when the pack has none of this name.
    get(name) {
        let p = this.pending.get(name);
        if (!p) {
            p = this.load(name);
            this.pending.set(name, p);
        }
        return p;
    }

    // Several at once, as an object by name.
    async all(...names) {
        const got = await Promise.all(names.map((n) => this.get(n)));
        return Object.fromEntries(names.map((n, i) => [n, got[i]]));
    }

    // An array that is known already.
    put(name, array) {
        this.arrays.set(name, array);
        this.pending.set(name, Promise.resolve(array));
    }

    // The array if it was loaded, else null.
    peek(name) { return this.arrays.get(name) || null; }

    async load(name) {
        const entry = (this.dir.arrays || {})[name];
        let out;
        try {
            if (!entry || !entry.n) {
                out = new (ARRAY_TYPES[entry ? entry.type : 'u32'] || Uint32Array)(0);
            } else {
                const size = ARRAY_TYPES[entry.type].BYTES_PER_ELEMENT;
                out = decodeArray(await this.source(name, entry.n * size,
                    this.dir.generation), entry);
            }
        } catch (e) {
            const problem = `array ${name} cannot be read: ${e.message}`;
            if (!this.problems.includes(problem)) this.problems.push(problem);
            this.pending.delete(name);  // who asks again, tries again
            out = new Uint32Array(0);
        }
        this.arrays.set(name, out);
        return out;
    }
}

function inlineSource(doc, number) {
    return async (name, bytes) => {
        const el = doc.querySelector(
            `script[data-pack="${number}"][data-array="${name}"]`);
        if (!el) throw new Error('it is not in the page');
        const coded = decodeBase64(el.textContent);
        el.remove();  // its text is no longer needed
        return inflateRaw(coded, bytes);
    };
}

async function fetchOk(url) {
    const r = await fetch(url, {cache: 'no-store'});
    if (!r.ok) throw new Error(`${url}: ${r.status} ${r.statusText}`);
    return r;
}

export async function fetchDir(number) {
    return (await fetchOk(`pack/${number}/dir`)).json();
}

function httpSource(number) {
    return async (name, bytes, generation) => new Uint8Array(await (await fetchOk(
        `pack/${number}/${name}?g=${generation}`)).arrayBuffer());
}

// All runs of the page, or of the server that handed it out.
export async function openPacks(doc) {
    const inline = doc.querySelectorAll('script[type="application/json"][data-pack]');
    if (inline.length) {
        return Array.from(inline, (el, i) =>
            new Pack(i, JSON.parse(el.textContent), inlineSource(doc, i)));
    }
    const dir = await fetchDir(0);
    const packs = [new Pack(0, dir, httpSource(0))];
    for (let i = 1; i < (dir.packs || 1); i++) {
        packs.push(new Pack(i, await fetchDir(i), httpSource(i)));
    }
    return packs;
}
