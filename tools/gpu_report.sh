#!/bin/sh
# gpu_report.sh [--check PAGE] BUILD ["MODEL OPTION…"]…: what the compilers of GPU vendors make of the kernels of these models' training steps (default: those
# of docs/gpu-kernels.md), on stdout; with --check whether that is no worse than the page. Nothing runs on a GPU. The compilers: see tools/gpu_report.py.
#
#     sh tools/gpu_report.sh build >docs/gpu-kernels.md
#     sh tools/gpu_report.sh --check docs/gpu-kernels.md build
#     sh tools/gpu_report.sh build "gpt2:small --sample 1024 --classes 50257 --batch 8"
set -eu
check=
[ "${1-}" != --check ] || { check="--check $2"; shift 2; }
[ $# -ge 1 ] || { sed -n '2,7s/^# \{0,1\}//p' "$0" >&2; exit 2; }
probe=$1/bin/cltrain-probe
shift
[ $# -gt 0 ] || set -- "convnet" "resnet50 --sample 3x224x224 --classes 1000 --batch 32" "gpt2:nano --sample 256 --classes 65 --batch 16"
folder=$(mktemp -d "${TMPDIR:-/tmp}/cltrain-gpu.XXXXXX")
trap 'rm -rf "$folder"' EXIT
n=0
mkdir "$folder/gpu" "$folder/intel-gpu"
for model; do
    n=$((n + 1))
    for class in gpu intel-gpu; do
        # shellcheck disable=SC2086
        CLTRAIN_CLASS=$class CLTRAIN_TUNE=off "$probe" backends $model --sources "$folder/$class/$n" --json="$folder/backends.json"
        mv "$folder/backends.json" "$folder/$class/$n"
    done
done
# shellcheck disable=SC2086
python3 "$(dirname "$0")/gpu_report.py" $check "$folder"/gpu/* --intel "$folder"/intel-gpu/*
