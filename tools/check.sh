#!/bin/sh
# Installs what is missing, builds, and runs the whole test suite; then once more under
# AddressSanitizer and UndefinedBehaviorSanitizer, without the tests labelled `long`.
#
#   sh tools/check.sh [--quick]     --quick leaves the sanitizers out
set -eu
root=$(cd "$(dirname "$0")/.." && pwd)
. "$root/tools/packages.sh"

sanitizers=yes
for argument; do
    case $argument in
    --quick) sanitizers=no ;;
    *)
        echo "usage: sh tools/check.sh [--quick]" >&2
        exit 2
        ;;
    esac
done

result=0
summary=
# suite NAME FOLDER LABEL ARGUMENT...: builds and tests with these arguments of CMake, leaving out the
# tests of that label. A failed test fails the script, but not before the end.
suite() {
    name=$1 build=$2 label=$3
    shift 3
    echo "== $name: build"
    configure "$build" -DCMAKE_BUILD_TYPE=RelWithDebInfo -DCLTRAIN_TESTS=ON -DCLTRAIN_TOOLS=ON "$@"
    cmake --build "$build"
    echo "== $name: tests"
    ctest --test-dir "$build" --output-on-failure -j2 -LE "^$label\$" </dev/null | tee "$build/check.log"
    line=$(grep 'tests passed' "$build/check.log" || echo "ctest did not finish")
    case $line in "100% tests passed"*) ;; *) result=1 ;; esac
    summary="$summary$name: $line
"
}

# shellcheck disable=SC2086
need_packages $check_packages
suite "tests" "$root/build" none -DCLTRAIN_SANITIZE=
if [ $sanitizers = yes ]; then
    suite "tests under ASan and UBSan" "$root/build-asan" long -DCLTRAIN_SANITIZE=address,undefined
fi
printf '\n%s' "$summary"
exit $result
