#!/bin/sh
# cltrain-probe comm: rows of ranks on this host, and that nothing is left behind, however it ends.
. "$(dirname "$0")/probe_common.sh"
quick="comm -n 2 --sizes 4,64K --seconds 0.02"

# empty FOLDER: nothing is left in it.
empty() {
    [ -z "$(ls -A "$1")" ] || fail "left behind: $(ls -A "$1" | head -n 3)"
}

# ---- folders whose names a shell or an address would take for more ----

for temporary in "it's here" "a'; touch stained; '" 'percent %41 and %' 'two  words $(touch stained)'; do
    mkdir -p "$folder/tmp/$temporary"
    # shellcheck disable=SC2086
    (cd "$folder" && TMPDIR="$folder/tmp/$temporary" "$program" $quick >"$out" 2>"$err") || fail "in '$temporary' it gave $?"
    says "samples"
    grep -q ' 0\.0*\( \|$\)' "$out" && fail "a bandwidth is printed as nothing"
    [ -s "$err" ] && fail "it says something on stderr"
    empty "$folder/tmp/$temporary"
    [ -e "$folder/stained" ] && fail "a name of a folder was run as a command"
done
[ "$(ls "$folder/tmp" | wc -l)" -eq 4 ] || fail "another folder was made: $(ls "$folder/tmp")"
# shellcheck disable=SC2086
TMPDIR="$folder/nowhere" expect 1 "no temporary folder $folder/nowhere" $quick

# ---- JSON ----

# shellcheck disable=SC2086
for security in tls none; do
    expect 0 "" $quick --json --security $security --algorithms direct,ring
    cp "$out" "$folder/$security.json"
    if [ -n "$python" ]; then
        "$python" "$sources/tests/tools/validate.py" "$sources/docs/cltrain-comm.schema.json" "$folder/$security.json" >"$err" 2>&1 ||
            fail "not of the schema"
    fi
    json "$folder/$security.json" 'o["ranks"] == 2 and o["security"] == "'"$security"'" and len(o["rows"]) == 4'
    json "$folder/$security.json" 'o["kind"] == "comm" and o["schema"] == "cltrain-comm/1" and o["tool"]["name"] == "cltrain-probe"'
    json "$folder/$security.json" '[r["bytes"] for r in o["rows"]] == [4, 4, 65536, 65536]'
    json "$folder/$security.json" 'all(abs(r["busbw_gbs"] - r["algbw_gbs"]) < 1e-9 for r in o["rows"])'
done

# ---- engines side by side ----

engines=cltrain,local
[ ! -e "$(dirname "$program")/../lib/libcltrain-gloo.so" ] || engines=cltrain,gloo,local
[ ! -e "$(dirname "$program")/../lib/libcltrain-mpi.so" ] || ! command -v mpirun >/dev/null || engines=$engines,mpi
# shellcheck disable=SC2086
TMPDIR="$folder/tmp" expect 0 "" $quick --json --security none --engines $engines
cp "$out" "$folder/engines.json"
if [ -n "$python" ]; then
    "$python" "$sources/tests/tools/validate.py" "$sources/docs/cltrain-comm.schema.json" "$folder/engines.json" >"$err" 2>&1 || fail "engines: not of the schema"
fi
json "$folder/engines.json" '[r["engine"] for r in o["rows"]] == 2 * "'"$engines"'".split(",") and o["ranks"] == 2'
# shellcheck disable=SC2086
expect 2 "--engines 'smoke': expected some of cltrain, gloo, local and mpi, or all" $quick --engines smoke
# shellcheck disable=SC2086
expect 2 "--engines and --algorithms: one of them" $quick --engines local --algorithms ring

# ---- nobody takes what it says ----

mkdir "$folder/unread"
# shellcheck disable=SC2086
for format in "" --json; do
    TMPDIR="$folder/unread" "$program" $quick $format >&- 2>"$err" && fail "a closed stdout is no error"
    [ "$(cat "$err")" = "cltrain-probe: stdout cannot be written" ] || fail "a closed stdout: what it says"
    [ -w /dev/full ] || continue
    TMPDIR="$folder/unread" "$program" $quick $format >/dev/full 2>"$err"
    [ $? -eq 1 ] || fail "a full disk is no error"
    [ "$(cat "$err")" = "cltrain-probe: stdout cannot be written" ] || fail "a full disk: what it says"
done
# A reader that has seen enough ends it, as it ends other programs: at once, all of it, and without a word.
{
    TMPDIR="$folder/unread" timeout 60 "$program" comm -n 3 --sizes "4,$(printf '64K,%.0s' $(seq 60))4" --seconds 1 2>"$err"
    echo $? >"$folder/status"
} | head -n 1 >"$out"
says "3 ranks"
[ "$(cat "$folder/status")" -eq 141 ] || fail "a reader that leaves gives $(cat "$folder/status"), not 141"
[ -s "$err" ] && fail "a reader that leaves: it says something"
empty "$folder/unread"

# ---- told to stop, or killed: neither ranks nor folders stay ----

# begin: $pid measures for a minute, with $children.
begin() {
    : >"$out"
    TMPDIR="$folder/stopped" "$program" comm -n 2 --sizes "$sizes" --seconds 60 >"$out" 2>"$err" </dev/null &
    pid=$!
    await grep -q samples "$out"
    children=$(cat "/proc/$pid/task/$pid/children")
    # shellcheck disable=SC2086
    set -- $children
    [ $# -ge 2 ] || fail "it has no ranks"
}

# all_gone: neither processes nor what they wrote.
all_gone() {
    # shellcheck disable=SC2086
    gone $pid $children && [ -z "$(ls -A "$folder/stopped")" ]
}

# ended WHEN: in time.
ended() {
    await all_gone || fail "$1: some of the processes $pid $children still run, or their files stay"
    # shellcheck disable=SC2086
    gone $pid $children || kill -KILL $pid $children
    empty "$folder/stopped"
    rm -rf "$folder/stopped"/*
}

mkdir "$folder/stopped"
sizes=4$(printf ",16M%.0s" $(seq 60))
if [ -r "/proc/self/task/$$/children" ] || [ -r "/proc/$$/task/$$/children" ]; then
    for signal in TERM:143 KILL:137; do
        begin
        kill "-${signal%:*}" "$pid"
        ended "SIG${signal%:*}"
        wait "$pid" 2>"$folder/shell"
        got=$?
        [ "$got" -eq "${signal#*:}" ] || fail "SIG${signal%:*} gave $got"
        [ -s "$err" ] && fail "SIG${signal%:*}: it says something"
    done
    # A rank that does not listen.
    begin
    # shellcheck disable=SC2086
    set -- $children
    shift $(($# - 2))
    kill -STOP "$1" "$2"
    kill -TERM "$pid"
    ended "SIGTERM with ranks that stand still"
    # Shells start what runs in the background deaf for SIGINT.
    if [ -n "$python" ]; then
        TMPDIR="$folder/stopped" "$python" -c '
import signal, subprocess, sys, time
signal.signal(signal.SIGINT, signal.default_int_handler)
p = subprocess.Popen(sys.argv[1:], stdout=subprocess.PIPE)
while b"samples" not in p.stdout.readline(): pass
p.send_signal(signal.SIGINT)
sys.exit(p.wait(20) != 130)' "$program" comm -n 2 --sizes "$sizes" --seconds 60 >"$out" 2>"$err" || fail "SIGINT does not give 130"
        empty "$folder/stopped"
    fi
else
    echo "no /proc/PID/task/PID/children here: stopping is not tried"
fi

finish
