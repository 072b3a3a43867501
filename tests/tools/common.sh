# Read by the tests of the command line tools, which say `program` and `name` before. What a test keeps is in $folder, removed at its end.
set -u

folder=$(mktemp -d "${TMPDIR:-/tmp}/cltrain-$name-XXXXXX") || exit 1
trap 'chmod -R u+w "$folder"; rm -rf "$folder"' EXIT
failures=0
out=$folder/out
err=$folder/err

fail() {
    failures=$((failures + 1))
    echo "FAILED: $1"
    sed 's/^/    stdout: /' "$out" | head -n 20
    sed 's/^/    stderr: /' "$err" | head -n 20
}

# expect CODE WORDS ARGUMENT...: that exit code, and the words on stderr ("": whatever is there).
expect() {
    code=$1 words=$2
    shift 2
    "$program" "$@" >"$out" 2>"$err" </dev/null
    got=$?
    [ "$got" -eq "$code" ] || fail "'$*' gave exit code $got, not $code"
    [ -z "$words" ] || grep -qF -- "$words" "$err" || fail "'$*' does not say '$words'"
}

# refuse WORDS ARGUMENT...: exit code 2, nothing on stdout.
refuse() {
    words=$1
    shift
    expect 2 "$words" "$@"
    [ -s "$out" ] && fail "'$*' printed on stdout"
}

# interrupt SECONDS ARGUMENT...: Ctrl-C after so long, or another signal by its name and exit code in $signal. The seconds begin
# where stderr says $begun, where that is not empty.
signal="INT 130"
begun=
interrupt() {
    seconds=$1
    shift
    "$program" "$@" >"$out" 2>"$err" </dev/null &
    child=$!
    [ -z "$begun" ] || await grep -q "$begun" "$err" || fail "'$*' does not say '$begun'"
    sleep "$seconds"
    kill -s "${signal% *}" "$child"
    wait "$child"
    got=$?
    [ "$got" -eq "${signal#* }" ] || fail "'$*' gave exit code $got after SIG$signal"
}

# says WORDS: in what was printed last.
says() {
    grep -qF -- "$1" "$out" || fail "stdout does not say '$1'"
}

# await WORDS...: until the command holds, five minutes at most.
await() {
    tries=0
    until "$@"; do
        tries=$((tries + 1))
        [ $tries -gt 3000 ] && return 1
        sleep 0.1
    done
}

# patience SECONDS: so many on a quiet machine, and more on a busy one, where all take longer: until silence means that something hangs. 30 at most, as
# long as the tools wait for a driver to tell its devices.
patience() {
    awk -v seconds="$1" -v cores="$(nproc)" '{ split($4, running, "/"); busy = ($1 > running[1] ? $1 : running[1]) / cores
        limit = int(seconds * (busy > 1 ? busy : 1)); print limit < 30 ? limit : 30 }' /proc/loadavg
}

# gone PID...: none of them lives, but for the wait for its end.
gone() {
    for process in "$@"; do
        if kill -0 "$process" 2>/dev/null && ! grep -q '^State:.Z' "/proc/$process/status" 2>/dev/null; then return 1; fi
    done
}

# json FILE EXPRESSION: the whole of FILE is one object o for which the expression holds.
json() {
    if [ -n "$python" ]; then
        "$python" - "$1" "$2" >"$folder/json" 2>&1 <<'END' || { cat "$folder/json"; fail "JSON: $2"; }
import json, math, sys

def no_constant(name):
    raise ValueError(name + " is not JSON")

with open(sys.argv[1], encoding="utf-8") as file:
    o = json.load(file, parse_constant=no_constant)
assert isinstance(o, dict), "no object"
assert eval(sys.argv[2]), o
END
    else
        grep -q '"test_loss"' "$1" || fail "no test_loss in the JSON" # without Python by its keys alone
    fi
}
