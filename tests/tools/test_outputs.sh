#!/bin/sh
# Where cltrain-probe and cltrain-conform write: files, links, devices, pipes, and what is refused.
. "$(dirname "$0")/probe_common.sh"

conform=$(dirname "$program")/cltrain-conform
cat >"$folder/list.json" <<'END'
{"schema": "cltrain-probe/1", "kind": "list", "drivers": [], "devices": []}
END
report="report $folder/list.json --html"

# no_leftovers: no temporary file is beside what was written.
no_leftovers() {
    find "$folder" -name '*.part' | grep -q . && fail "a temporary file was left"
}

# ---- a new file, and one that is replaced as a whole ----

expect 0 "" $report "$folder/new.html"
grep -q '</html>' "$folder/new.html" || fail "no page"
echo "<old>" >"$folder/old.html"
ln "$folder/old.html" "$folder/kept.html"
expect 0 "" $report "$folder/old.html"
grep -q '</html>' "$folder/old.html" || fail "an old page stays"
[ "$(cat "$folder/kept.html")" = "<old>" ] || fail "a file is written over, not replaced"

# With the mode of the old one.
for mode in 600 640 664; do
    chmod $mode "$folder/old.html"
    expect 0 "" $report "$folder/old.html"
    [ "$(stat -c %a "$folder/old.html")" = $mode ] || fail "a file of mode $mode becomes $(stat -c %a "$folder/old.html")"
done

# Through links: the file is replaced, the links stay.
mkdir "$folder/far"
echo "<old>" >"$folder/far/page.html"
ln "$folder/far/page.html" "$folder/far/kept.html"
ln -s far/page.html "$folder/near.html"
ln -s near.html "$folder/link.html"
expect 0 "" $report "$folder/link.html"
[ -L "$folder/link.html" ] && [ -L "$folder/near.html" ] || fail "a link was replaced"
grep -q '</html>' "$folder/far/page.html" || fail "the file that a link names was not written"
[ "$(cat "$folder/far/kept.html")" = "<old>" ] || fail "the file that a link names is written over, not replaced"
ln -s nowhere/at-all "$folder/dangling.html"
expect 1 "it is a link to nothing" $report "$folder/dangling.html"
[ -L "$folder/dangling.html" ] || fail "a link to nothing was replaced"

# ---- a pipe, a device ----

mkfifo "$folder/fifo"
expect 1 "no process reads from this pipe" $report "$folder/fifo"
cat "$folder/fifo" >"$folder/read" &
reader=$!
written=no
for _ in 1 2 3 4 5 6 7 8 9 10; do
    "$program" $report "$folder/fifo" >"$out" 2>"$err" && written=yes && break
    sleep 0.2
done
[ $written = yes ] && [ -p "$folder/fifo" ] || kill "$reader" 2>/dev/null
wait "$reader" 2>/dev/null
[ -p "$folder/fifo" ] || fail "a FIFO was replaced"
grep -q '</html>' "$folder/read" || fail "nothing came through the FIFO"
"$program" $report /dev/fd/3 3>&1 >"$out" 2>"$err" | grep -q '</html>' || fail "nothing came through /dev/fd/3"
# A null device of its own where that may be made: the machine's is not put at risk.
if mknod "$folder/null" c 1 3 2>/dev/null && (: >"$folder/null") 2>/dev/null; then
    expect 0 "" $report "$folder/null"
    [ -c "$folder/null" ] || fail "a device was replaced"
fi
# By a link of its own, as with the null device: a program that replaces what it is given must not get at the machine's.
ln -s /proc/self/fd/1 "$folder/stdout"
"$program" $report "$folder/stdout" 2>"$err" | grep -q '</html>' || fail "nothing came through a link to stdout"
"$program" $report "$folder/stdout" >"$folder/stdout.html" 2>"$err" || fail "a link to stdout that is a file gave $?"
grep -q '</html>' "$folder/stdout.html" || fail "a link to stdout that is a file"

# ---- a directory: at once, not after the work ----

export OCL_ICD_VENDORS="$folder/far"
expect 1 "$folder/far cannot be written: it is a directory" $report "$folder/far"
unset OCL_ICD_VENDORS
expect 1 "$folder/far cannot be written: it is a directory" bench --models none --seconds 300 --json "$folder/far"
grep -q "Measuring" "$err" && fail "a directory is refused after the bench has begun"

# ---- the same file twice: before anything ----

ln -s . "$folder/self"
ln -s new.html "$folder/alias.html"
same="are the same file"
refuse "$same" bench --models none --json "$folder/x" --csv "$folder/x"
refuse "$same" bench --models none --json "$folder/x" --html "$folder/self/x"
refuse "$same" bench --models none --csv "$folder/new.html" --html "$folder/alias.html"
refuse "stdout is for one of" bench --models none --json "$out" --csv -
[ -e "$folder/x" ] && fail "a file was begun"
# Nor is what is read written over.
cp "$folder/list.json" "$folder/list.before"
for html in "$folder/list.json" "$folder/self/list.json"; do
    refuse "FILE $folder/list.json and --html $html $same" report "$folder/new.html" "$folder/list.json" --html "$html"
    refuse "A $folder/list.json and --html $html $same" compare "$folder/list.json" "$folder/new.html" --html "$html"
    refuse "B $folder/list.json and --html $html $same" compare "$folder/new.html" "$folder/list.json" --html "$html"
    refuse "$same" bench --models none --shapes "$folder/list.json" --json "$html"
done
cmp -s "$folder/list.json" "$folder/list.before" || fail "a document was written over"
expect 0 "" report "$folder/list.json" "$folder/list.json" --html "$folder/new.html"
probe=$program program=$conform
refuse "$same" --ops neg --json "$folder/x" --junit "$folder/self/x"
program=$probe

# ---- a file that may not grow: an error, and nothing half-written ----

(
    ulimit -f 1
    exec "$program" $report "$folder/grown.html"
) >"$out" 2>"$err"
got=$?
[ $got -eq 1 ] || fail "a file that may not grow gave $got, not 1"
grep -qF "$folder/grown.html cannot be written: File too large" "$err" || fail "a file that may not grow: no reason"
[ -e "$folder/grown.html" ] && fail "a page that is cut short was kept"

# ---- a terminal that hangs up: what was found is kept, and nothing half-written ----

signal="HUP 129" begun="^Measuring"
CLTRAIN_PROBE_TEST="only launch;hang launch_waited" interrupt 2 bench --models none --full --seconds 300 --json "$folder/hangup.json"
json "$folder/hangup.json" 'not o["complete"] and o["kind"] == "bench"'
# Unless it is to be outlived.
(
    trap '' HUP
    signal="HUP 0"
    CLTRAIN_PROBE_TEST="only fma|launch" interrupt 1 bench --models none --full --passes 3 --seconds 60 --json "$folder/nohup.json"
    exit "$failures"
)
failures=$?
json "$folder/nohup.json" 'o["complete"]'

no_leftovers
finish
