// SPDX-License-Identifier: BSD-3-Clause
// Reads the PNG files of screenshots: 8 bits, RGB or RGBA, not interlaced.
import {readFileSync} from 'node:fs';
import zlib from 'node:zlib';

export function readPng(file) {
    const b = readFileSync(file), parts = [];
    let width = 0, height = 0, channels = 0;
    for (let at = 8; at < b.length;) {
        const n = b.readUInt32BE(at), type = b.toString('latin1', at + 4, at + 8);
        const data = b.subarray(at + 8, at + 8 + n);
        if (type === 'IHDR') {
            width = data.readUInt32BE(0);
            height = data.readUInt32BE(4);
            if (data[8] !== 8 || ![2, 6].includes(data[9]) || data[12]) throw new Error('odd PNG');
            channels = data[9] === 6 ? 4 : 3;
        } else if (type === 'IDAT') parts.push(data);
        at += 12 + n;
    }
    const raw = zlib.inflateSync(Buffer.concat(parts)), row = width * channels;
    const out = Buffer.alloc(row * height);
    for (let y = 0; y < height; y++) {
        const filter = raw[y * (row + 1)];
        for (let x = 0; x < row; x++) {
            const a = x >= channels ? out[y * row + x - channels] : 0;
            const up = y ? out[(y - 1) * row + x] : 0;
            const c = x >= channels && y ? out[(y - 1) * row + x - channels] : 0;
            const p = a + up - c, pa = Math.abs(p - a), pb = Math.abs(p - up), pc = Math.abs(p - c);
            const add = [0, a, up, (a + up) >> 1,
                pa <= pb && pa <= pc ? a : pb <= pc ? up : c][filter];
            out[y * row + x] = raw[y * (row + 1) + 1 + x] + add;
        }
    }
    return {width, height, channels, data: out};
}

// Map from colour (0xrrggbb) to the number of its pixels.
export function countColours(png) {
    const count = new Map();
    for (let i = 0; i < png.data.length; i += png.channels) {
        const c = png.data[i] << 16 | png.data[i + 1] << 8 | png.data[i + 2];
        count.set(c, (count.get(c) || 0) + 1);
    }
    return count;
}
