#!/bin/sh
# cltrain-probe report, bench --html, compare --html: pages as a browser draws them, and files that are none.
. "$(dirname "$0")/probe_common.sh"

browser=$(command -v chromium || command -v chromium-browser || command -v google-chrome)
[ -n "$python" ] && [ -n "$browser" ] || { echo "Python or Chromium is missing: skipped"; exit 77; }

# page FILE WANTED...: to be looked at, at the end, as check_page.py has it.
page() {
    printf '%s' "$1" >>"$folder/pages"
    shift
    [ $# -eq 0 ] || printf '\t%s' "$@" >>"$folder/pages"
    echo >>"$folder/pages"
}

# report CODE NAME FILE...: a page of some of the documents that were made.
report() {
    code=$1 html=$folder/$2.html
    shift 2
    files=
    for file; do files="$files $folder/$file.json"; done
    # shellcheck disable=SC2086
    expect "$code" "" report $files --html "$html"
}

# The policy of pages allows roofline.js alone: by the hash that browsers reckon.
hash=$("$python" -c 'import base64, hashlib, sys; print("sha256-" + base64.b64encode(hashlib.sha256(open(sys.argv[1], "rb").read()).digest()).decode())' \
    "$sources/tools/cltrain-probe/roofline.js")
grep -qF "\"$hash\"" "$sources/tools/cltrain-probe/report_page.c" || fail "roofline.js has another hash than report_page.c says: $hash"

# ---- a real bench ----

cat >"$folder/small.txt" <<'END'
forward          1 matmul 64x80 96x80^T -> 64x96
weight-gradient  2 matmul 64x96^T 64x80 -> 96x80
forward          1 conv2d k3 s1 p1 d1 g1 4x16x12x12 32x16x3x3 -> 4x32x12x12
forward          1 reduce r0 ad 8x32x8x8 -> 32
update           1 adam 5000 5000 8 scalar 5000 5000 -> 5000
END
a=$folder/a.json
# Limits of few samples, and not the dear ones: rows are what pages are made of, not what is in them.
CLTRAIN_PROBE_TEST="only fma|copy|launch|lo|op ;samples=3;crash 64x80 -> 96x80 by reference" expect 0 "Measuring" bench --full --shapes "$folder/small.txt" --seconds 60 --passes 1 --json "$a" --html "$folder/a.html"
valid "$a"
# By other backends, too: what crashes there costs nothing else.
"$python" - "$a" >"$out" 2>"$err" <<'END' || fail "the other backends' rows"
import json, sys
results = {r["key"]: r for r in json.load(open(sys.argv[1]))["results"]}
assert not any(" by " in key for key in results), results.keys()
for key, r in results.items():
    if r["kind"] == "limit": continue
    others = {o["backend"]: o for o in r["other_backends"]}
    assert len(others) == len(r["other_backends"]) and r["backend"].split("#")[0] not in others, (key, others)
    if key.startswith("op matmul") and "64x96^T" in key: assert others["reference"]["status"] == "crashed", others
    elif r["backend"] != "reference": assert others["reference"]["status"] == "ok", (key, others)
    if key.startswith("op conv2d"): assert len(others) >= 2, others
    for o in others.values():
        assert (o["status"] == "ok") == (o["time_us"] is not None) and (o["status"] == "ok") == (o["reason"] is None), o
        assert o["status"] != "ok" or o["row"].split("#")[0] == o["backend"], o
END
ok=$("$python" -c 'import json, sys; print(sum(r["kind"] == "op" and r["status"] in ("ok", "suspect") for r in json.load(open(sys.argv[1]))["results"]))' "$a")
[ "$ok" -ge 4 ] || fail "only $ok ops were measured"
device=$("$python" -c 'import json, sys; print(json.load(open(sys.argv[1]))["devices"][0]["name"])' "$a")
page "$folder/a.html" "points=$ok" "contains=$device" "contains=Arithmetic intensity, flop/byte" "contains=matmul 64x80 96x80^T -> 64x96" "contains=crashed" "contains=reference"
expect 0 "" report "$a"
cmp -s "$out" "$folder/a.html" || fail "the page of a file is not that of its bench"
"$program" list --json >"$folder/list.json" 2>/dev/null
ls "$folder" | grep -q '\.part$' && fail "a temporary file was left"

# Drivers that misbehave, and a device that is gone once the measuring begins.
mkdir "$folder/vendors"
for fault in crash nonsense late wrong; do echo "$build/libfake_icd_$fault.so" >"$folder/vendors/$fault.icd"; done
OCL_ICD_VENDORS="$folder/vendors" "$program" list --json >"$folder/faults.json" 2>/dev/null
report 0 faults faults
page "$folder/faults.html" points=0 "contains=garb????" "contains=signal 6" "contains=absurd"
CLTRAIN_PROBE_TEST="crash  " expect 1 "nothing could be measured" bench --shapes "$folder/small.txt" --seconds 20 --passes 1 --html "$folder/gone.html"
page "$folder/gone.html" points=0 "contains=5 crashed" "contains=ended by signal 6"

"$python" "$sources/tests/tools/make_pages.py" "$a" "$folder" || exit 1

# ---- pages ----

report 0 devices list
page "$folder/devices.html" points=0 "contains=$device"
report 0 many many
page "$folder/many.html" points=500
report 0 none none
page "$folder/none.html" points=0 "contains=No op was timed"
report 0 limits limits
page "$folder/limits.html" points=0 "contains=No op was measured"
report 0 failed failed
page "$folder/failed.html" points=0 "contains=5 crashed" "contains=signal 11"
report 0 markup markup model2
page "$folder/markup.html" "contains=<script>window.hacked=1</script>GPU" "contains=<img src=x onerror=window.hacked=1>&amp;</td></svg></style>"
report 0 numbers numbers model3
page "$folder/numbers.html" "contains=no place on such axes"
report 0 types types
page "$folder/types.html" points=0
report 0 long long
page "$folder/long.html" "points=$ok"
grep -q "NNNN…</h1>" "$folder/long.html" || fail "a name that is too long has no ellipsis"
grep -q "N\{500\}\|d\{500\}" "$folder/long.html" && fail "a name fills the page"
report 0 one one
page "$folder/one.html" points=1
report 0 stopped stopped
page "$folder/stopped.html" "points=$ok" "contains=stopped before its end"
report 0 models a list model0 model1 model4 model5
page "$folder/models.html" "points=$ok" "contains=Predicted step times" "contains=convnet 48x3x32x32" "contains=31.42" "contains=4096" \
     "contains=it ended by signal 11"
report 0 recommend recommend
page "$folder/recommend.html" points=0 "contains=Devices for a model" "contains=the fastest <script>" "contains=1.40 times as fast"
report 0 two a elsewhere
page "$folder/two.html" "points=$((2 * ok))" "contains=Another"

# What no bench writes, what is suspect, and what has no roofline or no spread: a dash. The cells behind the status are the median by
# native and by the reference, spread, speed, traffic, part of the roofline, and bound.
report 0 told told
page "$folder/told.html" points=16 "contains=hollow: suspect (1)" "contains=2 samples"
"$python" - "$folder/told.html" >"$out" 2>"$err" <<'END' || fail "cells of the tables"
import html, re, sys
dash = "\u2013"
rows = {}
for row in re.findall(r"<tr>(.*?)</tr>", open(sys.argv[1], encoding="utf-8").read(), re.S):
    cells = [html.unescape(re.sub(r"<[^>]*>", "", re.sub(r"(class=\"code\".*?)<small.*", r"\1", c))).strip() for c in re.findall(r"<td[^>]*>(.*?)</td>", row, re.S)]
    if cells: rows[cells[1] if cells[0].isdigit() else cells[0]] = cells[3:] if cells[0].isdigit() else cells[1:]
def has(name, *wanted):
    assert rows[name] == list(wanted), (name, rows[name], wanted)
full = ["100.0", "", "30", "20.0", "40.00"]
none = [dash, "", dash, dash, dash]
has("whole", *full, "50", "memory")
has("cached", *full, dash, "cache")
has("old_cached", *full, dash, "cache")
has("near", *full, "110", "memory")
has("winograd", *full, "250", "compute")
has("launched", *full, "150", "launch")
has("suspect", "100.0", "", "30", dash, dash, dash, "memory")
has("suspect_wrong", "100.0", "", "30", dash, dash, dash, "memory")
has("single", "100.0", "", "1 sample", "20.0", "40.00", "50", "memory")
has("double", "100.0", "", "2 samples", "20.0", "40.00", "50", "memory")
has("three", *full, "50", "memory")
for name in ("odd", "odd_p10", "odd_p50", "odd_p90", "odd_count", "turned"): has(name, *none, "50", "memory")
has("odd_amounts", "100.0", "", "30", dash, dash, "50", "memory")
has("odd_fraction", *full, dash, "memory")
has("odd_other", "100.0", dash, "30", "20.0", "40.00", "50", "memory")
has("copy", "10.00", "8.00", "11.11")
has("read", "10.00", dash, dash)
has("triad", dash, dash, dash)
END

# ---- comparisons ----

cp "$folder/steady.json" "$folder/b.json"
expect 0 "" compare "$folder/steady.json" "$folder/b.json" --html "$folder/same.html"
says "0 faster, 0 slower"
page "$folder/same.html" "points=$((2 * ok))" "contains=B is same"
expect 1 "" compare "$folder/steady.json" "$folder/slow.json" --html "$folder/slow.html"
page "$folder/slow.html" "contains=B is worse" "contains=Comparison of B with A"
report 0 slower steady slow
grep -q "B is <span class=\"badge bad\">worse" "$folder/slower.html" || fail "a report of two benches does not compare them"
expect 0 "" compare --json "$folder/steady.json" "$folder/b.json"
cp "$out" "$folder/compared.json"
report 0 compared compared
grep -q "median" "$folder/compared.html" && fail "times that are compared are called medians"
grep -q "the best sample of the middle one of its three best passes" "$folder/compared.html" || fail "the page does not say what times are compared"
expect 0 "" report "$folder/model6.json"
grep -q "7,\?654" "$out" && fail "times that no command writes are read"
page "$folder/compared.html" points=0 "contains=B is same"

# Where there is none the page has the benches, and why.
report 0 refused a stopped
page "$folder/refused.html" "points=$((2 * ok))" "contains=Comparison of B with A" "contains=There is none: B: the bench was cut short."
grep -q "warning: no comparison: B: the bench was cut short" "$err" || fail "no word on stderr of a comparison that is none"
report 0 inconclusive steady steady_once
grep -q "There is none: B: no row was measured in 3 passes of both" "$folder/inconclusive.html" || fail "too few passes: no reason on the page"
report 0 three steady b slow
grep -q "There is none: a comparison is of two benches, and these are more" "$folder/three.html" || fail "three benches, and no word of why they are not compared"
[ "$(grep -c "<h2>Roofline" "$folder/three.html")" -eq 3 ] || fail "not all of three benches"
grep -q "There is none: the two benches are of different devices" "$folder/two.html" || fail "two devices, and no word of why they are not compared"

mkdir "$folder/drivers"

# ---- what is none: 2, a reason, no page ----

for bad in "schema its schema is 'cltrain-probe/2'" "kind its kind is 'poem'" "noresults it has no results" "half cut short, or no JSON" \
           "nan cut short, or no JSON" "bytes cut short, or no JSON" "deep cut short, or no JSON" "nowhere nowhere.json"; do
    refuse "${bad#* }" report "$a" "$folder/${bad%% *}.json" --html "$folder/bad.html"
    [ -e "$folder/bad.html" ] && fail "a page was written of ${bad%% *}"
done
refuse "files that other commands wrote" report
refuse "$folder/drivers: it is a directory" report "$a" "$folder/drivers"
refuse "unknown option '--frobnicate'" report "$a" --frobnicate
refuse "stdout is for one of" bench --json - --html -
refuse "a file expected" compare "$a" "$a" --html -
expect 1 "/nonexistent/a.html cannot be written" report "$a" --html /nonexistent/a.html
expect 1 "/nonexistent/a.html cannot be written" compare "$folder/steady.json" "$folder/b.json" --html /nonexistent/a.html
expect 1 "/nonexistent/a.html cannot be written" bench --models none --html /nonexistent/a.html
OCL_ICD_VENDORS="$folder/drivers" expect 1 "" bench --html "$folder/bad.html"
[ -s "$err" ] || fail "no platform, and no word of it"
[ -e "$folder/bad.html" ] && fail "a page was written without a device"
if [ -w /dev/full ]; then
    "$program" report "$a" >/dev/full 2>"$err"
    [ $? -eq 1 ] || fail "a full disk is no error"
fi
ls "$folder" | grep -q '\.part$' && fail "a temporary file was left"

"$python" "$sources/tests/tools/check_page.py" "$browser" <"$folder/pages" >"$out" 2>"$err" || fail "pages as they are drawn"
says "22 pages looked at"
tail -n 1 "$out"
finish
