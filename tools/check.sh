#!/bin/sh
# Installs what is missing, builds, and runs the tests: each once, under AddressSanitizer and UndefinedBehaviorSanitizer where
# files, the network, drivers and faults are what it is about, and as users build it else.
#
#   sh tools/check.sh [--quick | --gates | --long]
#       --quick  all of them as users build it, without the sanitizers
#       --gates  what looks at the code instead: cppcheck and clang-tidy, ThreadSanitizer, valgrind, coverage
#       --long   all tests in both builds, those labelled `long` too, and the gates
set -eu
root=$(cd "$(dirname "$0")/.." && pwd)
. "$root/tools/packages.sh"

case ${1-} in
'') stages="plain sanitized" ;;
--quick) stages="all" ;;
--gates) stages="lint threads memory coverage" ;;
--long) stages="all-long sanitized-long lint threads memory coverage" ;;
*)
    echo "usage: sh tools/check.sh [--quick | --gates | --long]" >&2
    exit 2
    ;;
esac

# Folders of tests/, which are their labels, too.
sanitized='base;comm;data;device;faults;files;fuzz;text'
threads='base;comm;data;text'
result=0
summary=

note() {
    summary="$summary$1: $2
"
}

# build FOLDER TARGET ARGUMENT...: with these arguments of CMake. All builds share the kernels that drivers have compiled. Where no
# tool is run, what tests are made of is enough: tests/all.
build() {
    folder=$1 target=$2
    shift 2
    echo "== building in ${folder#"$root"/}"
    configure "$folder" -DCMAKE_BUILD_TYPE=RelWithDebInfo -DCLTRAIN_TESTS=ON -DCLTRAIN_TOOLS=ON \
        -DCMAKE_EXPORT_COMPILE_COMMANDS=ON -DCLTRAIN_TEST_CACHE="$root/build/tests/cache" "$@"
    cmake --build "$folder" --target "$target"
}

# labels ROOMS: a regular expression.
labels() {
    echo "$1" | tr ';' '|'
}

# run NAME FOLDER ARGUMENT...: tests chosen by these arguments of ctest. One that fails fails the script, but not before the end.
run() {
    name=$1 folder=$2
    shift 2
    echo "== $name"
    ctest --test-dir "$folder" --output-on-failure -j4 "$@" </dev/null | tee "$folder/check.log"
    line=$(grep 'tests passed' "$folder/check.log" || echo "ctest did not finish")
    case $line in "100% tests passed"*) ;; *) result=1 ;; esac
    note "$name" "$line"
}

# gate NAME COMMAND...
gate() {
    name=$1
    shift
    echo "== $name"
    if "$@" </dev/null; then note "$name" "clean"; else
        result=1
        note "$name" "FAILED"
    fi
}

memory() {
    for program in "$root"/build/tests/base/* "$root"/build/tests/data/* "$root/build/tests/graph/test_errors"; do
        [ -f "$program" ] && [ -x "$program" ] || continue
        echo "${program#"$root"/}"
        valgrind --quiet --leak-check=full --errors-for-leak-kinds=definite --error-exitcode=9 "$program" >"$root/build/valgrind.log" 2>&1 ||
            { cat "$root/build/valgrind.log"; return 1; }
    done
}

coverage() {
    gcovr --root "$root" --object-directory "$root/build-coverage" --filter "$root/(runtime|backends|comm|tools)/" \
        --exclude-throw-branches --sort-percentage --gcov-ignore-parse-errors --print-summary "$root/build-coverage" \
        >"$root/build-coverage/coverage.txt" && tail -n 4 "$root/build-coverage/coverage.txt"
}

# shellcheck disable=SC2086
need_packages $check_packages
for stage in $stages; do
    case $stage in
    plain | all | all-long | lint | memory) build "$root/build" all -DCLTRAIN_SANITIZE= ;;
    sanitized) build "$root/build-asan" tests/all -DCLTRAIN_SANITIZE=address,undefined -DCLTRAIN_TEST_ROOMS="$sanitized" ;;
    sanitized-long) build "$root/build-asan" all -DCLTRAIN_SANITIZE=address,undefined -DCLTRAIN_TEST_ROOMS= ;;
    threads) build "$root/build-tsan" tests/all -DCLTRAIN_SANITIZE=thread -DCLTRAIN_TEST_ROOMS="$threads" ;;
    coverage) build "$root/build-coverage" all -DCLTRAIN_SANITIZE= -DCMAKE_C_FLAGS=--coverage -DCMAKE_CXX_FLAGS=--coverage ;;
    esac
    case $stage in
    plain) run "tests" "$root/build" -LE "^(long|$(labels "$sanitized"))\$" ;;
    all) run "tests" "$root/build" -LE '^long$' ;;
    all-long) run "tests" "$root/build" ;;
    sanitized) run "tests under ASan and UBSan" "$root/build-asan" -LE '^long$' ;;
    sanitized-long) run "tests under ASan and UBSan" "$root/build-asan" -LE '^(long|parity)$' ;;
    threads) run "tests under TSan" "$root/build-tsan" -LE '^long$' ;;
    lint) gate "cppcheck and clang-tidy" sh "$root/tools/lint.sh" "$root/build" ;;
    memory)
        need_packages valgrind
        gate "valgrind" memory
        ;;
    coverage)
        need_packages gcovr
        run "tests with coverage" "$root/build-coverage" -LE '^(long|parity|bench|package)$'
        gate "coverage" coverage
        gate "coverage of the parsers by kept inputs" sh "$root/tests/fuzz/coverage.sh" "$root/build-coverage-fuzz"
        note "$(tail -n 4 "$root/build-coverage/coverage.txt" | grep lines)" "of the library and the tools"
        ;;
    esac
done
printf '\n%s' "$summary"
exit $result
