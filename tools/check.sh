#!/bin/sh
# Installs what is missing, builds, and runs the test suite; then once more under AddressSanitizer
# and UndefinedBehaviorSanitizer, without what compares numbers with PyTorch.
#
#   sh tools/check.sh [--quick] [--long]
#       --quick leaves the sanitizers out
#       --long  runs the tests labelled `long` too
set -eu
root=$(cd "$(dirname "$0")/.." && pwd)
. "$root/tools/packages.sh"

sanitizers=yes left_out='^long$'
for argument; do
    case $argument in
    --quick) sanitizers=no ;;
    --long) left_out='^none$' ;;
    *)
        echo "usage: sh tools/check.sh [--quick] [--long]" >&2
        exit 2
        ;;
    esac
done

result=0
summary=
# suite NAME FOLDER LABELS ARGUMENT...: builds and tests with these arguments of CMake, leaving out the
# tests whose labels match. A failed test fails the script, but not before the end.
suite() {
    name=$1 build=$2 label=$3
    shift 3
    echo "== $name: build"
    configure "$build" -DCMAKE_BUILD_TYPE=RelWithDebInfo -DCLTRAIN_TESTS=ON -DCLTRAIN_TOOLS=ON "$@"
    cmake --build "$build"
    echo "== $name: tests"
    ctest --test-dir "$build" --output-on-failure -j2 -LE "$label" </dev/null | tee "$build/check.log"
    line=$(grep 'tests passed' "$build/check.log" || echo "ctest did not finish")
    case $line in "100% tests passed"*) ;; *) result=1 ;; esac
    summary="$summary$name: $line
"
}

# shellcheck disable=SC2086
need_packages $check_packages
suite "tests" "$root/build" "$left_out" -DCLTRAIN_SANITIZE=
if [ $sanitizers = yes ]; then
    suite "tests under ASan and UBSan" "$root/build-asan" '^(long|parity)$' -DCLTRAIN_SANITIZE=address,undefined
fi
printf '\n%s' "$summary"
exit $result
