#!/bin/sh
# Runs cltrain and PyTorch by turns on this machine, with the same threads, shapes, data and optimizer;
# writes a JSON file and prints a table. Progress is on stderr.
#
#   sh tools/bench.sh [--quick] [--cases a,b] [--output bench.json] [--rounds N] [--threads N]
#       --quick    fewer cases and rounds: under 3 minutes instead of 15
#       --cases    names, or beginnings of names up to a slash: gemm, conv/resnet18, mlp; --help lists groups
#       --rounds   turns of each side in a case (7, quick 3)
#       --threads  of each side (all processors)
#       --torch-device cuda: PyTorch's side on the GPU, without tf32 (cpu)
#       --build    a folder where all is built already: nothing is installed or built
#
# $PYTHON names the Python whose PyTorch it is; else that of the first that has one. The device is
# CLTRAIN_DEVICE's.
set -eu
root=$(cd "$(dirname "$0")/.." && pwd)
. "$root/tools/packages.sh"

# find_python: sets `python` to one that imports PyTorch.
find_python() {
    for python in ${PYTHON:-python3 /usr/bin/python3}; do
        if "$python" -c 'import numpy, torch' 2>/dev/null; then return 0; fi
    done
    return 1
}

build=
argument_count=$#
while [ "$argument_count" -gt 0 ]; do
    argument=$1
    shift
    argument_count=$((argument_count - 1))
    case $argument in
    --build)
        [ "$argument_count" -gt 0 ] || { echo "--build needs a folder" >&2; exit 2; }
        build=$1
        shift
        argument_count=$((argument_count - 1))
        ;;
    --build=*) build=${argument#--build=} ;;
    *) set -- "$@" "$argument" ;;
    esac
done

if [ -z "$build" ]; then
    build=$root/build
    # shellcheck disable=SC2086
    need_packages $bench_packages >&2
    # A PyTorch of the user's own is taken as it is.
    # shellcheck disable=SC2086
    if ! find_python || [ "$("$python" -c 'import torch; print(torch.__file__)')" = \
        /usr/lib/python3/dist-packages/torch/__init__.py ]; then need_packages $bench_torch_packages >&2; fi
    configure "$build" -DCMAKE_BUILD_TYPE=RelWithDebInfo -DCLTRAIN_TESTS=ON -DCLTRAIN_TOOLS=ON >&2
    cmake --build "$build" --target cltrain_bench_worker >&2
fi
find_python || { echo "no Python here imports numpy and torch; PYTHON names another" >&2; exit 1; }
PYTHONDONTWRITEBYTECODE=1 exec "$python" "$root/tests/bench/bench.py" "$build/tests/bench/worker" "$python" "$@"
