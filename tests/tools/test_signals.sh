#!/bin/sh
# test_signals.sh PROGRAM [PYTHON3]: cltrain-train where it is interrupted; its devices, its profile, and the bar on a terminal.
program=$1
python=${2-}
name=signals
. "$(dirname "$0")/common.sh"

# ---- signals: the step is finished, and saved ----

# interrupt SIGNAL CODE
interrupt() {
    rm -f "$folder/stopped" "$err" # an older file must not look like this run's
    "$program" mlp:16 --data digits --epochs 1000000 --save "$folder/stopped" --json >"$out" 2>"$err" &
    child=$!
    waited=0
    while ! grep -qs "^epoch 1/" "$err" && [ $waited -lt 600 ]; do
        sleep 0.1
        waited=$((waited + 1))
    done
    kill -s "$1" "$child"
    wait "$child"
    got=$?
    [ $got -eq "$2" ] || fail "SIG$1 gave exit code $got, not $2"
    json "$out" 'o["interrupted"] and o["steps"] > 0'
    [ -s "$folder/stopped" ] || fail "SIG$1 left no checkpoint"
}
# A shell starts background jobs with SIGINT ignored; the program catches it all the same.
interrupt INT 130
interrupt TERM 143
# Under nohup it stays ignored: the first bit of these.
case $(awk '/^SigIgn/ { print $2 }' /proc/$$/status 2>/dev/null) in
*[02468ace]) interrupt HUP 129 ;;
esac
expect 0 "Resumed" mlp:16 --data digits --epochs 0 --resume "$folder/stopped"
# Whatever handlers the driver has set meanwhile.
(
    trap '' HUP
    "$program" mlp:16 --data digits --epochs 200 >"$out" 2>"$err" </dev/null &
    await grep -q "^First step" "$err" || fail "no first step"
    kill -s HUP $!
    wait $! || fail "SIGHUP that is ignored ends the run: $?"
    exit "$failures"
)
failures=$?

# ---- devices ----

"$program" --list-devices --json >"$out" 2>"$err" || fail "--list-devices gave $?"
[ -z "$python" ] || json "$out" 'len(o["devices"]) > 0 and all(d["name"] for d in o["devices"])'

# ---- the profile ----

refuse "--profile ''" mlp --data digits --profile=
expect 0 "$folder/trace" mlp --data digits --epochs 1 --profile="$folder/trace"
grep -q '^matmul .*%' "$out" && grep -q '^between launches' "$out" && grep -q '^adam ' "$out" ||
    fail "--profile prints no table by op"
if [ -n "$python" ]; then
    json "$folder/trace" 'sum(e["name"] == "adam" for e in o["traceEvents"]) == 32'
    json "$folder/trace" 'all(e["dur"] >= 0 and e["ts"] >= 0 for e in o["traceEvents"] if e["ph"] == "X")'
    expect 0 "between launches" mlp --data digits --steps 9 --json --profile="$folder/trace"
    json "$out" 'o["steps"] == 9'
    json "$folder/trace" 'sum(e["name"].startswith("run ") for e in o["traceEvents"]) == 8'
fi
expect 0 "no step after the first" mlp --data digits --steps 1 --profile="$folder/none"
[ ! -e "$folder/none" ] || fail "a trace of nothing was written"
expect 1 "nowhere" mlp --data digits --steps 3 --profile="$folder/nowhere/trace"

# ---- the terminal's bar ----

if [ -n "$python" ]; then
    "$python" - "$program" >"$out" 2>"$err" <<'END' || fail "no progress bar on a terminal"
import os, pty, sys

pid, fd = pty.fork()
if pid == 0:
    os.environ["TERM"] = "xterm"
    os.execv(sys.argv[1], [sys.argv[1], "mlp", "--data", "digits", "--epochs", "1000000"])
text = b""
while b" left" not in text:
    part = os.read(fd, 4096)
    text += part
    assert part, text
os.write(fd, b"\x03")
try:
    while part := os.read(fd, 4096):
        text += part
except OSError:
    pass
status = os.waitpid(pid, 0)[1]
assert os.waitstatus_to_exitcode(status) == 130, status
assert b"\r\x1b[K" in text and b"samples/s" in text and b"%" in text, text
END
fi

[ $failures -eq 0 ] || { echo "$failures failed"; exit 1; }
echo "all passed"
