#!/bin/sh
# cltrain-probe simulate: bubbles that are known, unlike stages, a picture, and what is refused.
. "$(dirname "$0")/probe_common.sh"

# (p - 1) / (m + p - 1) is 3 / 11; with two chunks 3 / 19; gradients of weights fill two thirds of it.
expect 0 "" simulate --stages 4 --microbatches 8
says "1f1b              330.000    27.3 %          4"
says "gpipe             330.000    27.3 %          8"
says "zb-h1             270.000    11.1 %          4"
says "interleaved       285.000    15.8 %"
expect 0 "" simulate --stages 4 --microbatches 8 --json="$folder/a.json"
valid "$folder/a.json"
json "$folder/a.json" '[s["schedule"] for s in o["simulated"]] == ["1f1b", "gpipe", "zb-h1", "interleaved"] and o["stages"] == 4 and o["microbatches"] == 8'
json "$folder/a.json" 'all(abs(s["step_seconds"] * (1 - s["bubble"]) - 0.24) < 1e-9 for s in o["simulated"])'

# Micro-batches that are no multiple of the stages leave interleaved out, unless it is asked for.
expect 0 "" simulate --stages 3 --microbatches 4 --json="$folder/b.json"
json "$folder/b.json" 'len(o["simulated"]) == 3'
expect 1 "a multiple of its 3 stages" simulate --stages 3 --microbatches 4 --schedule interleaved

# The slowest stage bounds a step; sends lengthen it.
expect 0 "" simulate --stages 2 --microbatches 10 --factors 1,3 --schedule gpipe --json="$folder/c.json"
json "$folder/c.json" 'abs(o["simulated"][0]["step_seconds"] - (0.01 + 10 * 0.09 + 0.02)) < 1e-9'
expect 0 "" simulate --stages 2 --microbatches 10 --factors 1,3 --schedule gpipe --send 7 --json="$folder/d.json"
json "$folder/d.json" 'abs(o["simulated"][0]["step_seconds"] - (0.01 + 10 * 0.09 + 0.02 + 0.014)) < 1e-9'

# A picture has every turn.
expect 0 "" simulate --stages 3 --microbatches 5 --schedule zb-h1 --svg "$folder/step.svg"
[ "$(grep -c '<rect class="[fbw]"' "$folder/step.svg")" -eq 45 ] || fail "the picture has not 3 x 5 x 3 turns"
if [ -n "$python" ]; then "$python" -c 'import sys, xml.dom.minidom; xml.dom.minidom.parse(sys.argv[1])' "$folder/step.svg" || fail "the picture is no XML"; fi
echo '{"a": 1}' >"$folder/other.json"
expect 1 "other.json" simulate --schedule 1f1b --svg "$folder/other.json"

refuse "--stages '0'" simulate --stages 0
refuse "--stages 5000: expected 1 to 4096" simulate --stages 5000
refuse "expected a product up to" simulate --stages 4096 --microbatches 100000
refuse "--schedule 'best'" simulate --schedule best
refuse "--chunks: expected --schedule interleaved" simulate --schedule gpipe --chunks 2
refuse "a picture is of one --schedule" simulate --svg x.svg
refuse "too many to be seen" simulate --stages 512 --schedule 1f1b --svg x.svg
for factors in 1 1,2,3,4,5 1,2,0,4 1,2,x,4 1,,2,3 -1,2,3,4; do
    refuse "--factors '$factors': expected" simulate --factors "$factors"
done
refuse "--forward '0'" simulate --forward 0
refuse "'word'" simulate word
finish
