#!/bin/sh
# lint.sh [BUILD]: cppcheck and clang-tidy over the sources of the library and the tools, without a finding. .clang-tidy
# says what is asked; BUILD (default build) has been configured with -DCMAKE_EXPORT_COMPILE_COMMANDS=ON.
set -eu
root=$(cd "$(dirname "$0")/.." && pwd)
. "$root/tools/packages.sh"
cd "$root"
build=${1:-build}
# shellcheck disable=SC2086
need_packages $lint_packages

# POSIX has deprecated readdir_r, which cppcheck asks for; options are written where their table says.
echo "== cppcheck"
cppcheck -j2 --quiet --error-exitcode=1 --enable=warning,performance,portability --std=c11 --library=posix \
    --inline-suppr --suppress=missingIncludeSystem --suppress=readdirCalled \
    --suppress=invalidPointerCast:tools/common/option_parser.c -DCL_TARGET_OPENCL_VERSION=120 \
    --include=tests/gates/jansson_macros.h \
    -I. -Iinclude -I"$build/include" -I"$build/tools" runtime backends comm tools || exit 1

echo "== clang-tidy"
find runtime backends comm tools -name '*.c' | sort | xargs -P2 -n8 clang-tidy -p "$build" --quiet 2>/dev/null
echo "no findings"
