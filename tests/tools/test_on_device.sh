#!/bin/sh
# cltrain-probe tune, backends and shapes with drivers that crash, hang, print or compute nothing: a reason and exit code 1, and
# nothing on stdout but what the program writes. And the JSON of these commands is of the schema.
. "$(dirname "$0")/probe_common.sh"
export XDG_CACHE_HOME="$folder/cache"
export POCL_CACHE_DIR="${POCL_CACHE_DIR:-$folder/pocl}"
mkdir -p "$POCL_CACHE_DIR" "$folder/vendors"
small="--model mlp:96 --sample 80 --batch 64"

# with FAULT: that driver is the only one.
with() {
    rm -f "$folder/vendors"/*
    echo "$build/libfake_icd_$1.so" >"$folder/vendors/$1.icd"
}

# silent: nothing of a driver on stdout.
silent() {
    grep -q "not for stdout" "$out" && fail "what a driver prints is on stdout"
}

# ---- drivers that misbehave ----

own=${OCL_ICD_VENDORS-}
export OCL_ICD_VENDORS="$folder/vendors"
# shellcheck disable=SC2086
for command in tune backends shapes; do
    with crash
    expect 1 "crash.icd: crashed: while it was loaded and asked for devices: ended by signal 11" $command $small
    [ -s "$out" ] && fail "$command prints for a driver that crashes"
    with hang
    limit=$(patience 2)
    expect 1 "it said nothing for $limit s" $command $small --timeout $limit
    with late
    expect 1 "second: crashed: opening the device: ended by signal 6" $command $small --device second
    silent
    with stall
    expect 1 "first: timeout: opening the device: it said nothing for $limit s" $command $small --timeout $limit
    silent
    refuse "--timeout '0'" $command --timeout 0
done
# shellcheck disable=SC2086
{
    with late
    expect 1 "second: crashed" tune $small --device second --json
    cp "$out" "$folder/crashed.json"
    valid "$folder/crashed.json"
    json "$folder/crashed.json" 'not o["complete"] and devices["second"]["status"] == "crashed" and "signal 6" in devices["second"]["reason"]'
    expect 1 "second: crashed" backends $small --device second --json
    [ -s "$out" ] && fail "half a document"

    # It builds and runs everything, and computes nothing.
    with wrong
    expect 1 "first: wrong" tune $small --budget 2
    silent
    expect 1 "first: wrong" tune $small --budget 2 --json
    valid "$out"
    json "$out" 'devices["first"]["status"] == "wrong" and o["measured"] == 0'
    expect 0 "" backends $small --json
    valid "$out"
    json "$out" 'o["kind"] == "backends" and devices["first"]["icd"] == "wrong.icd"'
    expect 0 "" shapes $small
    head -n 1 "$out" | grep -q '^# Problems' || fail "shapes begins with something else"
    silent
}

# ---- and one that works ----

if [ -n "$own" ]; then export OCL_ICD_VENDORS="$own"; else unset OCL_ICD_VENDORS; fi
# shellcheck disable=SC2086
{
    expect 0 "" backends $small --json
    cp "$out" "$folder/backends.json"
    valid "$folder/backends.json"
    json "$folder/backends.json" 'o["kind"] == "backends" and o["model"] == "mlp:96 64x80" and o["rows"] and o["problems"] and "kernels" not in o'
    expect 0 "" backends $small --sources "$folder/sources" --json="$folder/sources.json"
    valid "$folder/sources.json"
    json "$folder/sources.json" 'len({k["file"] for k in o["kernels"]}) == len(o["kernels"]) > 5 and "ref_adam" in str(o["kernels"])'
    json "$folder/sources.json" "sorted(k['file'] for k in o['kernels']) == sorted(__import__('os').listdir('$folder/sources'))"
    expect 0 "" backends $small --sources "$folder/sources" --op matmul
    says " kernels in $folder/sources"
    expect 1 "$folder/no/sources cannot be made: No such file or directory" backends $small --sources "$folder/no/sources"
    expect 0 "Tuning mlp:96 64x80" tune $small --budget 2 --json
    cp "$out" "$folder/tune.json"
    valid "$folder/tune.json"
    json "$folder/tune.json" 'o["kind"] == "tune" and o["complete"] and o["seconds"] > 0'
    json "$folder/tune.json" 'len(o["problems"]) == o["measured"] + o["known"] + o["no_time_left"] + o["not_measurable"]'

    # Where nothing can be kept the device is not at fault.
    : >"$folder/file"
    XDG_CACHE_HOME="$folder/file" expect 1 "not tuned, since nothing could be kept: $folder/file/cltrain: the folder cannot be made" tune $small --budget 2 --json
    valid "$out"
    json "$out" 'not o["complete"] and o["devices"][0]["status"] == "ok" and o["problems"] == []'
    XDG_CACHE_HOME="" HOME="" expect 1 "nothing could be kept: neither XDG_CACHE_HOME nor HOME names a folder" tune $small --budget 2

    # Told to stop: what is known is told.
    if [ -n "$python" ]; then
        "$python" -c '
import signal, subprocess, sys
p = subprocess.Popen(sys.argv[1:], stdout=open("'"$out"'", "w"), stderr=subprocess.PIPE)
while not p.stderr.readline().startswith(b"Tuning"): pass
p.send_signal(signal.SIGTERM)
sys.exit(p.wait(20) != 143)' "$program" tune --json --model convnet --budget 100 2>"$err" || fail "tune: SIGTERM does not give 143"
        valid "$out"
        json "$out" 'not o["complete"] and o["devices"][0]["status"] == "timeout" and "told to stop" in o["devices"][0]["reason"]'
    fi
}

finish
