#!/bin/sh
# cltrain-probe list and verify: drivers that crash, hang or talk nonsense are rows, and the others stand.
. "$(dirname "$0")/probe_common.sh"

vendors=$folder/vendors
mkdir "$vendors" "$folder/empty"
cp /etc/OpenCL/vendors/*.icd "$vendors" 2>/dev/null

# ---- the drivers that are installed ----

export OCL_ICD_VENDORS="$vendors"
expect 0 "" list --json
cp "$out" "$folder/plain.json"
valid "$folder/plain.json"
json "$folder/plain.json" 'o["kind"] == "list" and any(d["status"] == "ok" for d in o["devices"])'
json "$folder/plain.json" 'all(d["capabilities"]["bf16_storage"] for d in o["devices"] if d["status"] == "ok")'
json "$folder/plain.json" 'all(set(d["lacks"]) == {c for c, has in d["capabilities"].items() if not has} for d in o["devices"] if d["status"] == "ok")'
json "$folder/plain.json" 'all("trial kernel" in why or "not tried" in why for d in o["devices"] for why in d.get("lacks", {}).values())'
expect 0 "" list --device cpu --json
valid "$out"
json "$out" 'len(o["devices"]) == 1 and o["devices"][0]["status"] == "ok"'
expect 1 "device \"no such device\" matches none" list --device "no such device"
CLTRAIN_CAPS_OFF=groups expect 0 "" list -v
says "  cannot         groups: masked by CLTRAIN_CAPS_OFF"
expect 0 "" --json
valid "$out"
json "$out" 'o["kind"] == "list" and any(d["status"] == "ok" for d in o["devices"])'
"$program" >"$out" 2>"$err" || fail "without a command it gave $?"
says ": ok"
says "largest buffer"
[ -s "$err" ] && fail "list says something on stderr"
grep -q "sub-groups of 0\|cache  *0 bytes" "$out" && fail "sizes that are not known are told as nothing"
ok=$(grep -c '^[^ ].*: ok$' "$out")

# ---- started without what every program has open ----

for closed in "<&-" "<&- 2>&-" "<&- >&-" "<&- >&- 2>&-"; do
    eval 'CLTRAIN_PROBE_TEST="only launch" "$program" bench --models none --passes 1 --seconds 0.2 --json "$folder/closed.json" >"$out" 2>"$err"' "$closed"
    json "$folder/closed.json" 'o["devices"][0]["status"] == "ok" and not any(r["status"] == "crashed" for r in o["results"])'
    rm -f "$folder/closed.json"
done
"$program" list --json <&- >"$out" 2>&- || fail "list without stdin and stderr gave $?"
json "$out" 'any(d["status"] == "ok" for d in o["devices"])'
"$program" list "--json=$folder/listed.json" >"$out" 2>"$err" || fail "list --json=FILE gave $?: $(cat "$err")"
[ ! -s "$out" ] || fail "list --json=FILE writes to stdout, too"
json "$folder/listed.json" 'any(d["status"] == "ok" for d in o["devices"])'
"$program" list >&- 2>"$err" && fail "what cannot be written was written"
grep -q "stdout cannot be written" "$err" || fail "no word of a closed stdout"

# ---- and those that misbehave ----

for fault in crash load hang nonsense late wrong; do
    echo "$build/libfake_icd_$fault.so" >"$vendors/$fault.icd"
done
echo "$build/libfake_icd_empty.so" >"$vendors/empty.icd"
echo "/nonexistent/libOpenCL.so" >"$vendors/missing.icd"
mkfifo "$vendors/fifo.icd" # nobody writes: who reads it waits for ever
limit=$(patience 8)
expect 0 "" list --json --timeout $limit
cp "$out" "$folder/faults.json"
valid "$folder/faults.json"
json "$folder/faults.json" 'drivers["crash.icd"]["status"] == "crashed" and "signal 11" in drivers["crash.icd"]["reason"]'
json "$folder/faults.json" '"about to dereference nothing" in drivers["crash.icd"]["reason"]'
json "$folder/faults.json" 'drivers["load.icd"]["status"] == "crashed" and "signal 6" in drivers["load.icd"]["reason"]'
json "$folder/faults.json" 'drivers["hang.icd"]["status"] == "timeout" and "'$limit' s" in drivers["hang.icd"]["reason"]'
json "$folder/faults.json" 'drivers["missing.icd"]["status"] == "unsupported"'
json "$folder/faults.json" '"its library cannot be loaded: /nonexistent/libOpenCL.so" in drivers["missing.icd"]["reason"]'
json "$folder/faults.json" 'drivers["fifo.icd"]["status"] == "unsupported" and drivers["fifo.icd"]["reason"] == "it is not a regular file"'
json "$folder/faults.json" 'drivers["empty.icd"]["reason"] == "1 OpenCL platform is installed, but it has no device"'
# Each driver's own time, not that of the one that hangs.
json "$folder/faults.json" 'drivers["hang.icd"]["seconds"] >= '$limit' and all(0 < drivers[n + ".icd"]["seconds"] < '$limit' for n in ("missing", "empty", "load"))'
json "$folder/faults.json" 'devices["absurd"]["status"] == "suspect" and "bytes of memory" in devices["absurd"]["reason"]'
json "$folder/faults.json" '[d for d in o["devices"] if d["name"].startswith("garb")][0]["status"] == "suspect"'
json "$folder/faults.json" 'devices["second"]["status"] == "crashed" and "signal 6" in devices["second"]["reason"]'
json "$folder/faults.json" '[d["status"] for d in o["devices"] if d["icd"] == "late.icd"] == ["unsupported", "crashed", "unsupported"]'
json "$folder/faults.json" '[d["status"] for d in o["devices"] if d["icd"] == "wrong.icd"] == ["wrong"]'
json "$folder/faults.json" '"no kernel runs on the device at present" in [d for d in o["devices"] if d["icd"] == "wrong.icd"][0]["lacks"].values()'
json "$folder/faults.json" 'len({d["id"] for d in o["devices"]}) == len(o["devices"])'
"$program" list --timeout $limit >"$out" 2>"$err" || fail "list gave $?"
[ "$(grep -c '^[^ ].*: ok$' "$out")" -eq "$ok" ] || fail "a driver that misbehaves hides others"
says "hang.icd: timeout"
grep -q "^  vendor  *v\{200,252\}\.\.\.$" "$out" || fail "an endless name is not cut"
grep -q "not for stdout" "$out" && ! grep "not for stdout" "$out" | grep -q reason && fail "what a driver prints is on stdout"
LC_ALL=C grep -q "$(printf '\033')" "$out" && fail "a driver's escape sequences reach the terminal"

# One that ends the process as if all were well, before all was told, is no better than one that crashes.
mkdir "$folder/ends"
export OCL_ICD_VENDORS="$folder/ends"
silent="exit code 0, before it had told all"
echo "$build/libfake_icd_leave.so" >"$folder/ends/leave.icd"
expect 1 "no OpenCL device" list --json
valid "$out"
json "$out" "drivers['leave.icd']['status'] == 'crashed' and '$silent' in drivers['leave.icd']['reason']"
expect 1 "leave.icd: crashed" verify --memory 4
rm "$folder/ends/leave.icd"
echo "$build/libfake_icd_exit.so" >"$folder/ends/exit.icd"
expect 1 "no OpenCL device can be used" list --json
valid "$out"
json "$out" "devices['first']['status'] == 'crashed' and 'opening it' in devices['first']['reason'] and '$silent' in devices['first']['reason']"
for command in "verify --memory 4" "model mlp:24 --sample 40" "bench --models none" "tune --model mlp:24 --sample 40" \
               "backends --model mlp:24 --sample 40" "shapes --model mlp:24 --sample 40"; do
    # shellcheck disable=SC2086
    expect 1 "$silent" $command
done
expect 1 "no device can train" recommend mlp:24 --sample 40 --json
json "$out" "all(c['status'] == 'crashed' and '$silent' in str(c['reasons']) for c in o['ranking'])"

# Devices that claim to be nothing are not opened.
echo "$build/libfake_icd_hollow.so" >"$folder/ends/exit.icd"
expect 1 "no OpenCL device can be used" list --json
json "$out" '[d["status"] for d in o["devices"]] == ["unsupported"] * 3'
json "$out" 'devices["first"]["reason"] == "it claims 0 compute units and work-groups of 256" and "work-groups of 0" in devices["second"]["reason"]'
json "$out" 'devices["third"]["reason"].endswith("of memory, 0 in a buffer")'
expect 1 "it claims 4 compute units and work-groups of 0" tune --model mlp:24 --sample 40 --device 1

# One that leaves a process behind, which holds the pipe open, has told all.
rm "$folder/ends/exit.icd"
echo "$build/libfake_icd_helper.so" >"$folder/ends/helper.icd"
expect 1 "no OpenCL device can be used" list --timeout $limit --json
json "$out" 'drivers["helper.icd"]["status"] == "ok" and drivers["helper.icd"]["seconds"] < '$limit' and devices["first"]["status"] == "unsupported"'
# One that cannot be killed is given up, and the others stand. It ends with the program at the latest.
mkdir "$folder/stuck"
cp /etc/OpenCL/vendors/*.icd "$folder/stuck" 2>/dev/null
echo "$build/libfake_icd_hang.so" >"$folder/stuck/hang.icd"
timeout -k 5 120 env LD_PRELOAD="$build/libunkillable.so" ASAN_OPTIONS="${ASAN_OPTIONS:+$ASAN_OPTIONS:}verify_asan_link_order=0" \
    OCL_ICD_VENDORS="$folder/stuck" "$program" list --timeout $limit --json >"$out" 2>"$err" </dev/null || fail "list gave $?"
valid "$out"
json "$out" 'drivers["hang.icd"]["status"] == "timeout" and "'$limit' s" in drivers["hang.icd"]["reason"]'
json "$out" '"cannot be killed" in drivers["hang.icd"]["reason"] and '$limit' <= drivers["hang.icd"]["seconds"]'
json "$out" 'any(d["status"] == "ok" for d in o["devices"])'
pid=$(sed -n 's/.*process \([0-9]*\) cannot be killed.*/\1/p' "$out" | head -n 1)
[ -n "$pid" ] || fail "the process that cannot be killed is not named"
await gone "$pid" || fail "process $pid is left"

# Mesa's driver has devices for who asks for them.
rm "$folder/ends/helper.icd"
echo "$build/libfake_icd_empty.so" >"$folder/ends/rusticl.icd"
RUSTICL_ENABLE="" expect 1 "no OpenCL device" list
says "it has no device; Mesa's rusticl shows devices only with RUSTICL_ENABLE="
RUSTICL_ENABLE=llvmpipe expect 1 "no OpenCL device" list
grep -q "RUSTICL_ENABLE" "$out" && fail "what is set already is asked for"
# PoCL has none where it cannot make its cache.
mv "$folder/ends/rusticl.icd" "$folder/ends/pocl.icd"
: >"$folder/file"
cannot="it has no device; PoCL cannot write its cache, $(printf '%.20s' "$folder")"
POCL_CACHE_DIR="$folder/file/a/b" expect 1 "$cannot" bench --models none
POCL_CACHE_DIR="" XDG_CACHE_HOME="$folder/file" expect 1 "$cannot" bench --models none
POCL_CACHE_DIR="" XDG_CACHE_HOME="" HOME="$folder/file" expect 1 "no OpenCL device" list
says "$cannot"
POCL_CACHE_DIR="$folder/not/yet" HOME="$folder/file" expect 1 "no OpenCL device" list
grep -q "PoCL" "$out" && fail "a cache that PoCL can make is taken for one that it cannot"
# As such a user meets it: there is no folder, or it is another user's.
if [ "$(id -u)" -eq 0 ] && [ -e "$vendors/pocl.icd" ] && setpriv --reuid=65534 --clear-groups test -x "$program" 2>/dev/null; then
    cp "$vendors/pocl.icd" "$folder/ends"
    chmod 755 "$folder" "$folder/ends"
    mkdir -m 755 "$folder/home"
    for cache in none "$folder/home"; do
        env -u XDG_CACHE_HOME -u POCL_CACHE_DIR HOME="$folder/home" $([ $cache = none ] || echo POCL_CACHE_DIR="$cache") \
            setpriv --reuid=65534 --clear-groups "$program" list >"$out" 2>"$err" && fail "PoCL without a cache has a device that works"
        says "PoCL cannot write its cache, $(printf '%.20s' "$folder")"
        says "(Permission denied)"
    done
fi
export OCL_ICD_VENDORS="$vendors"

# A device that is no good is not chosen, and says why.
expect 1 "cannot be used" bench --device absurd --models none --timeout 4
expect 1 "not c9e85737" verify --device 'fake/first#2' --memory 4 --timeout 4

# ---- nothing there ----

export OCL_ICD_VENDORS="$folder/empty"
for command in list "bench --models none" verify; do
    # shellcheck disable=SC2086
    expect 1 "no OpenCL driver: $folder/empty holds no .icd file" $command
done
expect 1 "no OpenCL driver" list --json
valid "$out"
export OCL_ICD_VENDORS="$folder/nowhere"
expect 1 "no OpenCL device" list
cp "$vendors/crash.icd" "$folder/empty/"
export OCL_ICD_VENDORS="$folder/empty"
expect 1 "no OpenCL device" list
says "crash.icd: crashed"
expect 1 "no OpenCL device" bench --models none
unset OCL_ICD_VENDORS

# ---- the command line ----

refuse "unknown option '--frobnicate'" list --frobnicate
refuse "unexpected word 'gpu'" list gpu
refuse "--timeout '0'" list --timeout 0
refuse "--minutes 'x'" verify --minutes x
refuse "--memory '0'" verify --memory 0
expect 1 "matches none" verify --device no-such-device

# ---- verify ----

expect 0 "" verify --memory 32 --json
cp "$out" "$folder/verify.json"
valid "$folder/verify.json"
json "$folder/verify.json" 'o["verify"]["errors"] == 0 and o["verify"]["rounds"] == 1 and o["devices"][0]["status"] == "ok"'
json "$folder/verify.json" '0 < o["verify"]["held_bytes"] <= 32 << 20 and o["verify"]["checked_bytes"] == 2 * o["verify"]["held_bytes"]'
for minutes in 0.02 0.2 2; do # longer where one round takes so long
    expect 0 "" verify --memory 4 --minutes $minutes --json
    grep -q '"rounds": 1,' "$out" || break
done
json "$out" 'o["verify"]["rounds"] > 1'
expect 0 "" verify --memory 4
says "errors          0"

finish
