#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Draws theft.svg from two simulated runs of the Mandelbrot batch, without and with theft:

    docs/images/theft.py build/release/bench/filch-bench
"""
import json
import pathlib
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
ROWS = 20000
COLOURS = ["#4477aa", "#ccbb44", "#aa3377"]
SPEEDS = ["4 G", "2 G", "1 G"]
LEFT, WIDTH, BAR = 118, 640, 26


def trace(bench, policy):
    """Chunks of each device as [start, end, first row, end row], in microseconds; thefts."""
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "trace.json"
        subprocess.run([bench, "sim", "mandelbrot", "--devices", f"sim:{HERE / 'theft.json'}",
                        "--n", str(ROWS), "--repeat", "1", "--policy", policy, "--trace", path],
                       check=True, stdout=subprocess.DEVNULL)
        events = json.loads(path.read_text())["traceEvents"]
    chunks = [[] for _ in COLOURS]
    thefts = []
    for e in events:
        if e.get("cat") == "tile":
            a = e["args"]
            chunks[e["tid"]].append([e["ts"], e["ts"] + e["dur"], a["first"], a["end"]])
        elif e.get("cat") == "theft":
            thefts.append((e["ts"], e["tid"], int(e["args"]["victim"][-1]), e["args"]["taken"]))
    return chunks, thefts


def home(row):
    """The device to which the static partition, by equal scores, gave a row."""
    return min(row * len(COLOURS) // ROWS, len(COLOURS) - 1)


def merged(chunks, least):
    """Neighbours of one home joined until they are wide enough to see."""
    out = []
    for c in sorted(chunks):
        if out and home(c[2]) == home(out[-1][2]) and out[-1][1] - out[-1][0] < least:
            out[-1][1] = c[1]
        else:
            out.append(list(c))
    return out


def text(x, y, what, anchor="start", size=13, more=""):
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" font-size="{size}"{more}>{what}</text>'


def lanes(y, chunks, scale, title):
    svg = [text(LEFT, y, title, more=' font-weight="bold"')]
    last = max(c[1] for lane in chunks for c in lane)
    for d, lane in enumerate(chunks):
        top = y + 10 + d * (BAR + 8)
        svg.append(text(LEFT - 8, top + 17, f"{SPEEDS[d]}/s", "end"))
        svg.append(f'<rect x="{LEFT}" y="{top}" width="{last * scale:.1f}" height="{BAR}" fill="#e4e4e4"/>')
        for c in merged(lane, 3 / scale):
            svg.append(f'<rect x="{LEFT + c[0] * scale:.1f}" y="{top}" width="{(c[1] - c[0]) * scale:.1f}" '
                       f'height="{BAR}" fill="{COLOURS[home(c[2])]}" stroke="#fff" stroke-width="0.5"/>')
    end = LEFT + last * scale
    bottom = y + 10 + len(chunks) * (BAR + 8)
    svg.append(f'<line x1="{end:.1f}" y1="{y + 4}" x2="{end:.1f}" y2="{bottom}" stroke="#222" stroke-dasharray="3 3"/>')
    svg.append(text(end, bottom + 14, f"{last / 1000:.1f} ms", "end" if end > LEFT + WIDTH - 60 else "middle"))
    return svg


def main():
    bench = sys.argv[1]
    static, _ = trace(bench, "static")
    steal, thefts = trace(bench, "steal")
    scale = WIDTH / max(c[1] for lane in static for c in lane)
    svg = ['<svg xmlns="http://www.w3.org/2000/svg" width="800" height="420" viewBox="0 0 800 420" '
           'font-family="sans-serif" fill="#222">',
           "<title>A static partition seeds the devices; theft evens them out</title>",
           '<rect width="800" height="420" fill="#fff"/>']
    y = 24
    svg.append(text(LEFT, y, f"{ROWS:,} rows of unequal cost, cut by the scores, which are equal",
                    more=' font-weight="bold"'))
    for d, colour in enumerate(COLOURS):
        x = LEFT + d * WIDTH / 3
        svg.append(f'<rect x="{x:.1f}" y="{y + 10}" width="{WIDTH / 3 - 1:.1f}" height="{BAR}" fill="{colour}"/>')
        svg.append(text(x + WIDTH / 6, y + 28, f"share of device {d}", "middle", more=' fill="#fff"'))
    svg += lanes(96, static, scale, "without theft (policy static)")
    svg += lanes(256, steal, scale, "with theft (policy steal); colour: whose share a chunk came from")
    for when, thief, victim, taken in thefts:
        if taken < ROWS // 40:
            continue
        x = LEFT + when * scale
        a, b = (256 + 10 + d * (BAR + 8) + BAR / 2 for d in (victim, thief))
        svg.append(f'<path d="M{x:.1f} {a} L{x:.1f} {b}" stroke="#222" stroke-width="1.5" fill="none"/>'
                   f'<circle cx="{x:.1f}" cy="{b}" r="3.5"/>')
    svg.append(text(LEFT, 410, f"lines: the larger thefts, dot at the thief; {len(thefts)} thefts in all",
                    size=12))
    svg.append("</svg>")
    (HERE / "theft.svg").write_text("\n".join(svg) + "\n")


main()
