#!/bin/sh
# devices.sh [--brief | --quick | --full] [--intel] FOLDER    runs cltrain-conform on the drivers that are here, a JSON file each into FOLDER
# devices.sh --page FILE.json...                              prints docs/devices.md from such files, of whichever machines
#
# --brief, for each commit: of the quick cases of each op a sample; the reference row has all of them on rusticl. As many drivers run side by side as there are cores.
# Drivers: PoCL with each of its work-group methods, Mesa's rusticl on llvmpipe, Oclgrind, and whatever else is installed;
# with --intel also Intel's runtime for CPUs and its emulator of FPGAs, which are fetched from PyPI into FOLDER (1.5 GB).
# Beside them one checkpoint of all of them: what one device leaves, the others take up. CLTRAIN_CONFORM is the program (default:
# build/bin/cltrain-conform). What is there already is not run again.
set -eu
root=$(cd "$(dirname "$0")/.." && pwd)
conform=${CLTRAIN_CONFORM:-$root/build/bin/cltrain-conform}

page() {
    python3 - "$@" <<'END'
import json, sys

STATUSES = ("passed", "skipped", "failed", "crashed", "timeout")
rows = []
drivers = []
for path in sys.argv[1:]:
    o = json.load(open(path, encoding="utf-8"))
    if o.get("schema") != "cltrain-conform/1":
        sys.exit(f"{path} is not a document of cltrain-conform/1")
    if o.get("complete") is False:
        sys.exit(f"{path}: the run was stopped before its end")
    variables = {k: v for k, v in o["environment"].items() if k in ("POCL_WORK_GROUP_METHOD", "OCLGRIND_DATA_RACES", "CLTRAIN_CONFORM_SMALL")}
    drivers += [(r, o) for r in o.get("drivers", []) if o.get("all") and r["status"] not in ("ok", "unsupported")]
    for i, d in enumerate(o["devices"]):
        results = [r for c in o["cases"] for r in c["results"] if r["device"] == i]
        ops = sorted({c["op"] for c in o["cases"]})
        run = o["effort"] if len(ops) > 4 else ", ".join(ops) + ", beside the others"
        rows.append((d, o, variables, results, run))
print("# Devices that the portability suite has run on\n")
print("Made by `sh tools/devices.sh` from the JSON of `cltrain-conform`. Each case runs in several rows: the reference kernels, what")
print("serves by default, the kernels of the other class of devices, and in full runs each backend for itself. Cases that are skipped say why.")
print("Passed, skipped and failed are results of cases; the last column has the library's ops: launched by some case, not asked for, without a case.")
if any(not d["coverage"] for d, *_ in rows if d["status"] == "ok"):
    print("A dash there: runs of some ops alone, and those of before ops were counted apart.")
methods = sorted({v["POCL_WORK_GROUP_METHOD"] for _, _, v, _, _ in rows if "POCL_WORK_GROUP_METHOD" in v})
if "workitemloops" in methods and "cbs" not in methods:
    print("PoCL makes work-groups of work-items by one of several methods. `cbs` is there only in builds of PoCL that were made with it, which")
    print("Debian's PoCL 3.1 is not; a method that is unknown is taken for `auto`, with a warning alone. `workitemloops` stands in its place here.")
small = any("CLTRAIN_CONFORM_SMALL" in v for _, _, v, _, _ in rows)
if small:
    print("With `CLTRAIN_CONFORM_SMALL` cases that take a simulator minutes are skipped, and say so.")
print()
print("| Platform and device | Driver | Date | Commit | Run | Settings | Passed | Skipped | Failed | Ops |")
print("|---|---|---|---|---|---|---|---|---|---|")
for d, o, variables, results, run in rows:
    # Counted here: files of before counted ops and cases together.
    c = {s: sum(r["status"] == s for r in results) for s in STATUSES}
    ops = ", ".join(str(sum(r["status"] == s for r in d["coverage"])) for s in STATUSES[:3]) if d["coverage"] else "-"
    bad = c["failed"] + c["crashed"] + c["timeout"]
    settings = ", ".join(f"`{k}={v}`" for k, v in sorted(variables.items())) or "-"
    if d["status"] != "ok":
        print(f"| {d['platform']}: {d['name']} | {d['driver']} | {o['time_utc'][:10]} | {o['tool']['commit']} | - | {settings} | {d['status']}: {d['reason']} | | {bad or ''} | |")
        continue
    print(f"| {d['platform']}: {d['name']} | {d['driver']} | {o['time_utc'][:10]} | {o['tool']['commit']} | {run} | {settings} | {c['passed']} | {c['skipped']} | {bad} | {ops} |")
for r, o in drivers:
    print(f"| {r['icd']} | - | {o['time_utc'][:10]} | {o['tool']['commit']} | - | - | {r['status']}: {r['reason']} | | | |")
print("\n## Why cases were skipped\n")
for d, o, variables, results, run in rows:
    if d["status"] != "ok" or not any(r["status"] == "skipped" for r in results):
        continue
    reasons = {}
    for r in results:
        if r["status"] == "skipped":
            reasons[r["reason"]] = reasons.get(r["reason"], 0) + 1
    for r in d["coverage"]:
        if r["status"] == "skipped":
            reason = "ops of the library that no case launches: " + r["reason"]
            reasons[reason] = reasons.get(reason, 0) + 1
    settings = ", ".join(f"{k}={v}" for k, v in sorted(variables.items()))
    print(f"**{d['platform']}{' (' + settings + ')' if settings else ''}**: rows {', '.join(d['rows'])}.\n")
    for reason, count in sorted(reasons.items(), key=lambda x: (-x[1], x[0])):
        print(f"* {count}: {reason}")
    for left in d["rows_left_out"]:
        print(f"* row {left['row']} is left out: {left['reason']}")
    print()
END
}

# run NAME REFERENCE SAMPLE VARIABLE=VALUE...: one driver, alone; with --brief every REFERENCEth case of each op in the reference row, and every
# SAMPLEth in the others. Several together are one checkpoint that all of them continue: train, resume and handover.
run() {
    name=$1 reference=$2 sample=$3
    shift 3
    ops=
    [ "$name" != together ] || ops="[hrt][aer][ans][diu]*"
    [ -f "$folder/$name.json" ] && return
    case $effort in --brief) set -- "$@" "$conform" --quick --sample-reference "$reference" --sample "$sample" ;; *) set -- "$@" "$conform" "$effort" ;; esac
    echo "$name" >&2
    # Binaries are made with the driver's settings, and do not tell which: each run has caches of its own.
    mkdir -p "$folder/cache/$name/pocl"
    env XDG_CACHE_HOME="$folder/cache/$name" POCL_CACHE_DIR="$folder/cache/$name/pocl" "$@" \
        --all --timeout 600 ${ops:+--ops "$ops"} --json "$folder/$name.json" >"$folder/$name.txt" || {
        code=$?
        [ -f "$folder/$name.json" ] || exit $code
        cat "$folder/$name.txt"
        return 1
    }
    grep ', driver .* passed,' "$folder/$name.txt" >&2
}

# add NAME REFERENCE SAMPLE VARIABLE=VALUE...: a run for later, one of those that go side by side.
add() {
    (IFS=$(printf '\t') && echo "$*") >>"$folder/runs"
}

# intel NAME LIBRARY PACKAGE...: a driver from PyPI.
intel() {
    name=$1 library=$2
    shift 2
    [ -f "$folder/$name.json" ] && return
    python3 -m venv "$folder/$name"
    "$folder/$name/bin/pip" install --quiet "$@"
    mkdir -p "$folder/$name/vendors"
    echo "$folder/$name/lib/$library" >"$folder/$name/vendors/$name.icd"
    add "$name" 1 4 OCL_ICD_VENDORS="$folder/$name/vendors"
}

usage() {
    sed -n '2,12s/^# //p' "$0" >&2
    exit 2
}

[ $# -gt 0 ] || usage
if [ "$1" = --page ]; then
    shift
    page "$@"
    exit
fi
if [ "$1" = --run ]; then # one line of the runs below
    effort=$2 folder=$3
    IFS=$(printf '\t')
    # shellcheck disable=SC2086
    set -- $4
    unset IFS
    run "$@"
    exit
fi
effort=--quick with_intel=
case $1 in --brief | --quick | --full) effort=$1; shift ;; esac
case ${1-} in --intel) with_intel=1; shift ;; esac
case ${1:--} in -*) usage ;; esac
mkdir -p "$1"
folder=$(cd "$1" && pwd)
: >"$folder/runs"
library=/usr/lib/oclgrind/liboclgrind-rt-icd.so
if [ -f "$library" ]; then
    mkdir -p "$folder/oclgrind"
    echo "$library" >"$folder/oclgrind/oclgrind.icd"
    add oclgrind 8 32 OCL_ICD_VENDORS="$folder/oclgrind/oclgrind.icd" CLTRAIN_CONFORM_SMALL=1
fi
for icd in "${OCL_ICD_VENDORS:-/etc/OpenCL/vendors}"/*.icd; do
    name=$(basename "$icd" .icd)
    case $name in
    pocl)
        add pocl-loopvec 16 16 OCL_ICD_VENDORS="$icd" POCL_WORK_GROUP_METHOD=loopvec
        # By the same loops, and vectorized less. Others are cbs, where PoCL was built with it, and repl: one that is unknown is taken for
        # auto, with a warning alone.
        [ "$effort" = --brief ] || add pocl-workitemloops 1 1 OCL_ICD_VENDORS="$icd" POCL_WORK_GROUP_METHOD=workitemloops
        ;;
    rusticl) add rusticl 1 16 OCL_ICD_VENDORS="$icd" RUSTICL_ENABLE=llvmpipe ;;
    mesa) ;; # clover has no device that is not rusticl's too
    *) add "$name" 1 4 OCL_ICD_VENDORS="$icd" ;;
    esac
done
if [ "$with_intel" ]; then
    intel intel-cpu libintelocl.so intel-opencl-rt intel-cmplr-lib-rt
    # The last version that has the emulator.
    intel intel-fpga-emulator libintelocl_emu.so intel-opencl-rt==2023.2.4 intel-cmplr-lib-rt==2023.2.4 tbb==2021.10.0
fi
# All of them at once.
mkdir -p "$folder/together"
for icd in "${OCL_ICD_VENDORS:-/etc/OpenCL/vendors}"/*.icd "$folder"/intel-*/vendors/*.icd; do
    case $icd in */mesa.icd | */\**) ;; *) cp "$icd" "$folder/together" ;; esac
done
add together 1 1 OCL_ICD_VENDORS="$folder/together" RUSTICL_ENABLE=llvmpipe
export CLTRAIN_CONFORM="$conform"
xargs -d '\n' -P "$(nproc)" -I '{}' sh "$0" --run "$effort" "$folder" '{}' <"$folder/runs"
