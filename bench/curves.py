#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Curves of a bring-up against the number of adapters, as SVG, from the samples of bench/subnet_manager.py."""
import argparse
import json
import pathlib
import statistics
import subprocess
import sys

HELP = """\
Reads what `bench/subnet_manager.py --json` has written and has gnuplot (`scripts/setup figures`) draw two pictures in
one file: seconds, and MiB of softibd, with logarithmic axes. Several files count as one: the first that has a size and
a way gives its samples.

Example:
  bench/subnet_manager.py --ways own --sizes 36,324,648,2048,8192,20000,41000 --json own.json
  bench/curves.py own.json -o docs/pictures/bring-up.svg
"""
SECONDS = {"own": "softib's own manager and softibd, from the start", "ibsim": "OpenSM over ibsim",
           "softib": "OpenSM over softib"}
COLORS = {"own": "#0072b2", "ibsim": "#d55e00", "softib": "#009e73"}
SCRIPT = """\
set terminal svg size 900,380 font "sans-serif,13" background "white"
set output
set multiplot layout 1,2
set logscale xy
set xrange [20:80000]
set yrange [0.01:2000]
set grid xtics ytics lc rgb "#dddddd"
set border 3
set tics nomirror
set format x "%.0f"
set xtics ("36" 36, "324" 324, "648" 648, "2,048" 2048, "8,192" 8192, "41,000" 41000) rotate by -35
set xlabel "adapters"
set key top left Left reverse
set title "seconds until all is set up"
set format y "%g"
plot {seconds}
set title "MiB of softibd"
unset key
set yrange [1:1000]
plot $mib_own using 1:2 with linespoints lw 2 pt 7 ps 0.6 lc rgb "{own}"
unset multiplot
"""


def points(files, way, key):
    """(adapters, median), by the number of adapters."""
    found = {}
    for results in files:
        for size, samples in results.items():
            if samples.get(way):
                found.setdefault(int(size), statistics.median(one[key] for one in samples[way]))
    return sorted(found.items())


def block(name, rows):
    return f"${name} << EOD\n" + "".join(f"{x} {y:.4f}\n" for x, y in rows) + "EOD\n"


def main():
    parser = argparse.ArgumentParser(description=HELP, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="+", metavar="JSON")
    parser.add_argument("-o", "--output", required=True, metavar="SVG")
    options = parser.parse_args()
    files = [json.loads(pathlib.Path(name).read_text()) for name in options.files]
    curves = {way: rows for way in SECONDS if (rows := points(files, way, "sweep"))}
    if "own" not in curves:
        sys.exit("bench/curves.py: no samples of softib's own manager (--ways own)")
    text = "".join(block(f"s_{way}", rows) for way, rows in curves.items())
    text += block("mib_own", points(files, "own", "mib"))
    seconds = ", ".join(f'$s_{way} using 1:2 with linespoints lw 2 pt 7 ps 0.6 lc rgb "{COLORS[way]}" title "{SECONDS[way]}"'
                        for way in curves)
    text += SCRIPT.format(seconds=seconds, own=COLORS["own"])
    try:
        done = subprocess.run(["gnuplot", "-"], input=text, text=True, capture_output=True, check=False)
    except FileNotFoundError:
        sys.exit("bench/curves.py: gnuplot is not installed: scripts/setup figures")
    if done.returncode or not done.stdout:
        sys.exit(f"bench/curves.py: gnuplot: {done.stderr.strip()}")
    drawing = done.stdout.replace("?>\n", "?>\n<!-- SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only -->\n", 1)
    pathlib.Path(options.output).write_text(drawing)
    return 0


if __name__ == "__main__":
    sys.exit(main())
