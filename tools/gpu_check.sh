#!/bin/sh
# Is cltrain right on a GPU, and how fast is it there? Runs what docs/gpu.md explains, in half an hour, and packs one folder to look at or to send.
#
#   sh tools/gpu_check.sh [--device D] [--output FOLDER] [--minutes N] [--parts a,b] [--build FOLDER]
#       --device   as for cltrain-train (gpu)
#       --output   a new or empty folder (cltrain-gpu-check); FOLDER.tar.gz is made of it
#       --minutes  for all parts (30); a part that takes longer than its share is stopped, and what it had written stays
#       --parts    these alone: host, list, verify, suite, limits, rows, tune, ops, train, torch
#       --build    a folder where all is built already: nothing is installed or built
#
# Exit status: 0 all parts ended well; 1 one failed or was stopped; 2 usage error.
set -u
root=$(cd "$(dirname "$0")/.." && pwd)
. "$root/tools/packages.sh"
device=gpu output=cltrain-gpu-check minutes=30 build='' parts='host list verify suite limits rows tune ops train torch'
models='convnet resnet18 gpt2:nano'

usage() {
    echo "gpu_check.sh: $1" >&2
    exit 2
}

while [ $# -gt 0 ]; do
    case $1 in
    --device | --output | --minutes | --parts | --build) [ $# -gt 1 ] || usage "$1 needs a value" ;;
    -h | --help) sed -n '2,/^set/s/^# \{0,1\}//p' "$0"; exit 0 ;;
    *) usage "unknown option '$1': expected --device, --output, --minutes, --parts or --build" ;;
    esac
    case $1 in
    --device) device=$2 ;;
    --output) output=$2 ;;
    --minutes) minutes=$2 ;;
    --parts) parts=$(echo "$2" | tr , ' ') ;;
    --build) build=$2 ;;
    esac
    shift 2
done
case $minutes in '' | *[!0-9]* | 0) usage "--minutes is '$minutes': expected a whole number above 0" ;; esac
for part in $parts; do
    case $part in host | list | verify | suite | limits | rows | tune | ops | train | torch) ;;
    *) usage "--parts: there is no part '$part'" ;; esac
done
[ ! -e "$output" ] || [ -z "$(ls -A "$output" 2>/dev/null)" ] || usage "--output: $output is not empty"

if [ -z "$build" ]; then
    build=$root/build
    # shellcheck disable=SC2086
    need_packages $build_packages >&2
    configure "$build" -DCMAKE_BUILD_TYPE=RelWithDebInfo -DCLTRAIN_TESTS=ON -DCLTRAIN_TOOLS=ON >&2
    cmake --build "$build" >&2 || exit 1
fi
mkdir -p "$output" || exit 1
output=$(cd "$output" && pwd)
bin=$(cd "$build" && pwd)/bin
# What the driver compiles is kept here, too: binaries tell what its compiler made.
export XDG_CACHE_HOME="$output/cache" CLTRAIN_DEVICE="$device"
failed=0

# keep NAME COMMAND...: within what is left of the part's time; what it prints is in NAME.txt.
keep() {
    name=$1
    shift
    left=$((until - $(date +%s)))
    began=$(date +%s)
    echo "\$ $*" >"$output/$name.txt"
    if [ $left -lt 1 ]; then status=124; else timeout -k 10 $left "$@" >>"$output/$name.txt" 2>&1 </dev/null; status=$?; fi
    case $status in 0) word=ok ;; 124 | 137) word='stopped: no time was left' ;; *) word="failed with status $status" ;; esac
    [ $status -eq 0 ] || failed=1
    printf '%-24s %5d s  %s\n' "$name" $(($(date +%s) - began)) "$word" | tee -a "$output/summary.txt"
}

# part NAME SHARE: whether it is wanted; it may take SHARE 30ths of all time.
part() {
    until=$(($(date +%s) + $2 * minutes * 2))
    case " $parts " in *" $1 "*) return 0 ;; esac
    return 1
}

tell_host() {
    date -u
    uname -a
    lscpu
    cat /etc/os-release
    for command in 'nvidia-smi -q' 'rocm-smi -a' 'xpu-smi discovery' clinfo; do
        echo "== $command"
        command -v "${command%% *}" >/dev/null && $command
    done
    git -C "$root" log -1 --format='cltrain %H %cd' 2>/dev/null
    return 0
}

# What each tool is told of a model's samples: data_of for training, sample_of for the others.
data_of() {
    case $1 in gpt2:*) echo "text:$root/README.md,context=64" ;; *) echo synthetic:3x32x32 ;; esac
}
sample_of() {
    case $1 in gpt2:*) echo 64 ;; *) echo 3x32x32 ;; esac
}

has_torch() {
    for python in ${PYTHON:-python3 /usr/bin/python3}; do
        "$python" -c 'import torch, sys; sys.exit(not torch.cuda.is_available())' 2>/dev/null && return 0
    done
    return 1
}

if part host 1; then tell_host >"$output/host.txt" 2>&1; fi
if part list 1; then keep list "$bin/cltrain-probe" list --json="$output/list.json"; fi
if part verify 2; then keep verify "$bin/cltrain-probe" verify --memory 4096 --json="$output/verify.json"; fi
if part suite 8; then keep suite "$bin/cltrain-conform" --device "$device" --quick --json "$output/suite.json"; fi
if part limits 2; then keep limits "$bin/cltrain-probe" bench --models none --seconds $((minutes * 3)) --json "$output/limits.json"; fi
if part rows 1; then
    for model in $models; do keep "rows-$model" "$bin/cltrain-probe" backends "$model" --sample "$(sample_of "$model")" --json="$output/rows-$model.json"; done
fi
if part tune 5; then
    for model in $models; do keep "tune-$model" "$bin/cltrain-probe" tune "$model" --sample "$(sample_of "$model")" --budget $((minutes * 3)) --json="$output/tune-$model.json"; done
fi
if part ops 4; then keep ops "$bin/cltrain-probe" bench --models convnet,resnet18 --seconds $((minutes * 7)) --json "$output/ops.json"; fi
if part train 4; then
    for model in $models; do
        for precision in f32 bf16 f16; do
            keep "train-$model-$precision" "$bin/cltrain-train" "$model" --data "$(data_of "$model")" --steps 20 --precision $precision --profile="$output/profile-$model-$precision.json" \
                --json
        done
    done
fi
if part torch 3 && has_torch; then
    keep torch sh "$root/tools/bench.sh" --build "$build" --torch-device cuda --quick --cases gemm,conv/resnet18,resnet18 --output "$output/torch.json"
fi

tar -C "$(dirname "$output")" -czf "$output.tar.gz" "$(basename "$output")" || exit 1
echo "$output.tar.gz has all of it; docs/gpu.md tells how to read it"
exit $failed
