#!/bin/sh
# ship_tuning.sh PLATFORM TYPE WIDTH FILE: from a file of tuning results what is to be shipped with the library for devices
# of a class: thorough ones, on problems for which the default is not the best.
#
#     cltrain-probe tune --budget 600
#     sh tools/ship_tuning.sh "Portable Computing Language" cpu 16 ~/.cache/cltrain/tune/NAME.jsonl \
#         >backends/tune/shipped/pocl-cpu-16.jsonl
#
# A file begins with the class: part of the platform's name, cpu or gpu, and floats in a vector.
set -eu
[ $# -eq 4 ] || { sed -n '2,9s/^# \{0,1\}//p' "$0" >&2; exit 2; }
head -n 1 "$4" | grep -q '"cltrain-tune": 1,' || { echo "$4 is not a file of tuning results" >&2; exit 1; }
printf '{"cltrain-tune": 1, "platform": "%s", "type": "%s", "vector_width": %d}\n' "$1" "$2" "$3"
awk '/"effort": "full"/ && !/"failed":/ {
    us = $0; sub(/.*"us": /, "", us); sub(/,.*/, "", us)
    without = $0; sub(/.*"default_us": /, "", without); sub(/,.*/, "", without)
    if (us != without) print
}' "$4" | LC_ALL=C sort
