#!/bin/sh
# Installs what is missing, builds, and runs the tests: those that take seconds and fail most often first; under AddressSanitizer and
# UndefinedBehaviorSanitizer where files, the network, drivers and faults are what it is about, and as users build it else; then cppcheck and clang-tidy, and the
# portability suite on the drivers that are here. A stage that fails does not keep the others from running. At the end: the
# seconds of each, the longest tests, and of what failed its last lines and the command that runs it alone.
#
#   sh tools/check.sh [--quick | --gates | --long | --busy]
#       --quick  all tests as users build it, and no more
#       --gates  what looks at the code instead: cppcheck and clang-tidy, GPU vendors' compilers, ThreadSanitizer, valgrind, coverage
#       --long   all tests in both builds, those labelled `long` too, all cases on the drivers, and the gates
#       --busy   the default, beside six loops that keep the machine busy
set -eu
root=$(cd "$(dirname "$0")/.." && pwd)
. "$root/tools/packages.sh"

stages="build first tests build-asan sanitized lint drivers"
busy=
case ${1-} in
'') ;;
--quick) stages="build first all" ;;
--gates) stages="build lint-all kernels build-tsan threads memory build-coverage coverage parsers" ;;
--long) stages="build first all-long build-asan-all sanitized-long lint-all kernels drivers-all build-tsan threads memory build-coverage coverage parsers" ;;
--busy) busy=6 ;;
*)
    echo "usage: sh tools/check.sh [--quick | --gates | --long | --busy]" >&2
    exit 2
    ;;
esac

# Folders of tests/, which are their labels, too. The first ones take seconds, and fail most often.
first='gates|base|graph|ops|first'
sanitized='base;comm;data;device;faults;files;fuzz;observe;text'
threads='base;comm;data;observe;text'

# build FOLDER TARGET ARGUMENT...: with these arguments of CMake. All builds share the kernels that drivers have compiled. Where no
# tool is run, what tests are made of is enough: tests/all. Of what a debugger reads they have lines alone, and what checks itself is optimized less, which compile
# in two thirds of the time.
build() {
    folder=$root/$1 target=$2
    shift 2
    flags="-O2 -g1 -DNDEBUG"
    case $folder in *-asan | *-tsan) flags="-O1 -g1 -DNDEBUG" ;; esac
    configure "$folder" -DCMAKE_BUILD_TYPE=RelWithDebInfo -DCMAKE_C_FLAGS_RELWITHDEBINFO="$flags" -DCMAKE_CXX_FLAGS_RELWITHDEBINFO="$flags" -DCLTRAIN_TESTS=ON -DCLTRAIN_TOOLS=ON \
        -DCMAKE_EXPORT_COMPILE_COMMANDS=ON -DCLTRAIN_TEST_CACHE="$root/build/tests/cache" "$@" &&
        cmake --build "$folder" --target "$target"
}

# labels ROOMS: a regular expression.
labels() {
    echo "$1" | tr ';' '|'
}

# run FOLDER ARGUMENT...: tests chosen by these arguments of ctest.
run() {
    folder=$root/$1
    shift
    ctest --test-dir "$folder" --output-on-failure -j4 --output-junit "$results/$stage.xml" "$@"
}

memory() {
    need_packages valgrind
    for program in "$root"/build/tests/base/* "$root"/build/tests/data/* "$root/build/tests/graph/test_errors"; do
        [ -f "$program" ] && [ -x "$program" ] || continue
        echo "${program#"$root"/}"
        valgrind --quiet --leak-check=full --errors-for-leak-kinds=definite --error-exitcode=9 "$program" >"$results/valgrind.log" 2>&1 ||
            { cat "$results/valgrind.log"; return 1; }
    done
}

coverage() {
    need_packages gcovr
    run build-coverage -LE '^(long|parity|bench|package)$' || failed=1
    gcovr --root "$root" --object-directory "$root/build-coverage" --filter "$root/(runtime|backends|comm|tools)/" \
        --exclude-throw-branches --sort-percentage --gcov-ignore-parse-errors --print-summary "$root/build-coverage" \
        >"$root/build-coverage/coverage.txt" && tail -n 4 "$root/build-coverage/coverage.txt" && [ -z "${failed-}" ]
}

# Whether drivers are those of tests/small_pocl.py, with its PoCL: where none were chosen.
small=build/tests/cache/small
takes_small() {
    [ -z "${OCL_ICD_VENDORS-}" ] && [ -d "$root/$small/vendors" ]
}

drivers() {
    ! takes_small || export OCL_ICD_VENDORS="$root/$small/vendors" PATH="$root/$small/bin:$PATH"
    sh "$root/tools/devices.sh" --brief "$results/drivers"
}

perform() {
    case $1 in
    build) build build all -DCLTRAIN_SANITIZE= -DCMAKE_INSTALL_LIBDIR="lib/$(cc -print-multiarch 2>/dev/null)" ;; # as packages want it
    build-asan) build build-asan tests/all -DCLTRAIN_SANITIZE=address,undefined -DCLTRAIN_TEST_ROOMS="$sanitized" ;;
    build-asan-all) build build-asan all -DCLTRAIN_SANITIZE=address,undefined -DCLTRAIN_TEST_ROOMS= ;;
    build-tsan) build build-tsan tests/all -DCLTRAIN_SANITIZE=thread -DCLTRAIN_TEST_ROOMS="$threads" ;;
    build-coverage) build build-coverage all -DCLTRAIN_SANITIZE= -DCMAKE_C_FLAGS=--coverage -DCMAKE_CXX_FLAGS=--coverage ;;
    first) run build -L "^($first)\$" -LE '^long$' ;;
    tests) run build -LE "^(long|$first|$(labels "$sanitized"))\$" ;;
    all) run build -LE "^(long|$first)\$" ;;
    all-long) run build -LE "^($first)\$" ;;
    sanitized) run build-asan -LE '^(long|dear)$' ;;
    sanitized-long) run build-asan -LE '^(long|parity)$' ;;
    threads) run build-tsan -LE '^long$' ;;
    lint) sh "$root/tools/lint.sh" "$root/build" ;;
    lint-all) sh "$root/tools/lint.sh" --all "$root/build" ;;
    kernels) sh "$root/tools/gpu_report.sh" --check "$root/docs/gpu-kernels.md" "$root/build" ;;
    drivers) drivers ;;
    drivers-all) sh "$root/tools/devices.sh" --quick "$results/drivers" ;;
    memory) memory ;;
    coverage) coverage ;;
    parsers) sh "$root/tests/fuzz/coverage.sh" "$root/build-coverage-fuzz" ;;
    esac
}

# What runs a stage alone, as somebody would type it.
command_of() {
    case $1 in
    lint | lint-all) echo "sh tools/lint.sh" ;;
    kernels) echo "sh tools/gpu_report.sh --check docs/gpu-kernels.md build" ;;
    drivers) echo "$(! takes_small || echo "OCL_ICD_VENDORS=\$PWD/$small/vendors PATH=\$PWD/$small/bin:\$PATH ")sh tools/devices.sh --brief FOLDER" ;;
    drivers-all) echo "sh tools/devices.sh --quick FOLDER" ;;
    build*) echo "cmake --build $(echo "$1" | sed 's/-all$//')" ;;
    parsers) echo "sh tests/fuzz/coverage.sh build-coverage-fuzz" ;;
    *) echo "sh tools/check.sh ${mode:-}" ;;
    esac
}

loops=
end_loops() {
    # shellcheck disable=SC2086
    [ -z "$loops" ] || kill $loops 2>/dev/null || true
}
trap end_loops EXIT
trap 'exit 130' INT TERM
mode=${1-}
# shellcheck disable=SC2086
need_packages $check_packages
results=$(mktemp -d "${TMPDIR:-/tmp}/cltrain-check.XXXXXX")
while [ "${busy:-0}" -gt 0 ]; do
    sh -c 'while :; do :; done' &
    loops="$loops $!"
    busy=$((busy - 1))
done

result=0
for stage in $stages; do
    echo "== $stage"
    began=$(date +%s)
    # The shell's own pipe would hide how the stage ended.
    { perform "$stage" </dev/null 2>&1 && : >"$results/$stage.ok" || :; } | tee "$results/$stage.log"
    ended=failed
    [ ! -f "$results/$stage.ok" ] || ended=ok
    printf '%s\t%s\t%s\t%s\n' "$stage" "$(($(date +%s) - began))" "$ended" "$(command_of "$stage")" >>"$results/stages"
    [ $ended = ok ] || {
        result=1
        python3 "$root/tools/check_report.py" "$results" "$stage"
        [ "$stage" != build ] || break # nothing can be run
    }
done
python3 "$root/tools/check_report.py" "$results"
[ $result -ne 0 ] || rm -rf "$results"
exit $result
