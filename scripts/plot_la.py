#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Draws benchmarks of linear algebra: plot_la.py < lines.json > chart.svg.

Reads what 'heddle bench potrf --json' and its like print, one object per line,
and writes bars: GFLOP/s of the library and of its peer for each routine and
order, with the ratio of their times (median and extremes of the rounds).
"""
import html
import json
import math
import sys

LEFT, TOP, HEIGHT, BOTTOM, BAR, GAP = 56, 56, 220, 62, 30, 44
OURS, PEER, PEAK = "#1f6f8b", "#c9b79c", "#a33b20"


def step_of(most):
    """The distance of grid lines: at most eight of them."""
    power = 10.0 ** math.floor(math.log10(most))
    return next(power * f for f in (0.1, 0.2, 0.5, 1, 2) if most / (power * f) <= 8)


def text(x, y, what, more=""):
    return f'<text x="{x:.0f}" y="{y:.0f}" {more}>{html.escape(what)}</text>'


def bar(x, rate, scale, color):
    tall = rate * scale
    return (f'<rect x="{x:.0f}" y="{TOP + HEIGHT - tall:.1f}" width="{BAR}" '
            f'height="{tall:.1f}" fill="{color}"/>')


def group(x, run, scale):
    """Two bars, the ratio above them, what they are below."""
    middle, centre = x + BAR, 'text-anchor="middle"'
    spread = f'{run["ratio_min"]:.2f} to {run["ratio_max"]:.2f}'
    return [bar(x, run["gflops"], scale, OURS),
            bar(x + BAR, run["peer_gflops"], scale, PEER),
            text(middle, TOP + 2, f'{run["ratio"]:.2f}',
                 centre + ' font-weight="bold"'),
            text(middle, TOP + 14, spread, centre + ' font-size="9"'),
            text(middle, TOP + HEIGHT + 16, run["name"], centre),
            text(middle, TOP + HEIGHT + 31, str(run["n"]), centre)]


def chart(runs):
    most = max(max(r["gflops"], r["peer_gflops"], r["peak_gflops"]) for r in runs)
    scale, step = HEIGHT / (most * 1.15), step_of(most)
    width = max(LEFT + len(runs) * (2 * BAR + GAP) + 16, 500)
    first = runs[0]
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" '
           f'height="{TOP + HEIGHT + BOTTOM}" font-family="sans-serif" font-size="12">',
           "<!-- SPDX-License-Identifier: BSD-3-Clause; made by scripts/plot_la.py -->",
           '<rect width="100%" height="100%" fill="#ffffff"/>',
           text(LEFT, 18, "GFLOP/s. At the top: our time over the peer's, "
                          "median, least to greatest"),
           f'<rect x="{LEFT}" y="28" width="12" height="12" fill="{OURS}"/>',
           text(LEFT + 18, 38, "Heddle"),
           f'<rect x="{LEFT + 80}" y="28" width="12" height="12" fill="{PEER}"/>',
           text(LEFT + 98, 38, first["peer_is"].split(" NO_")[0].split(" DYN")[0]),
           f'<line x1="{LEFT + 230}" x2="{LEFT + 242}" y1="34" y2="34" '
           f'stroke="{PEAK}" stroke-dasharray="3 2"/>',
           text(LEFT + 248, 38, "gemm on each core")]
    for i in range(int(most * 1.15 / step) + 1):
        y = TOP + HEIGHT - i * step * scale
        out += [f'<line x1="{LEFT}" x2="{width - 8}" y1="{y:.1f}" y2="{y:.1f}" '
                'stroke="#dddddd"/>',
                text(LEFT - 6, y + 4, f"{i * step:g}", 'text-anchor="end"')]
    for i, run in enumerate(runs):
        x = LEFT + GAP / 2 + i * (2 * BAR + GAP)
        y = TOP + HEIGHT - run["peak_gflops"] * scale
        out += group(x, run, scale)
        out += [f'<line x1="{x - 6:.0f}" x2="{x + 2 * BAR + 6:.0f}" y1="{y:.1f}" '
                f'y2="{y:.1f}" stroke="{PEAK}" stroke-dasharray="3 2"/>']
    cores = "core" if first["workers"] == 1 else "cores"
    out += [text(LEFT, TOP + HEIGHT + 52,
                 f'{first["machine"]}, {first["workers"]} {cores}, type {first["type"]}'),
            "</svg>"]
    return "\n".join(out) + "\n"


def main():
    runs = [json.loads(line) for line in sys.stdin if line.strip()]
    runs = [r for r in runs if r.get("peer_gflops")]
    if not runs:
        sys.exit("plot_la.py: no run with a peer on the standard input")
    sys.stdout.write(chart(runs))


if __name__ == "__main__":
    main()
