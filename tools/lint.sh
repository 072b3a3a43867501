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
# It counts what it suppresses on stderr: that is shown where something is wrong. The one file of C++ is built where Gloo is.
words=$(mktemp)
trap 'rm -f "$words"' EXIT
shim=
if grep -q comm/gloo_shim.cc "$build/compile_commands.json"; then shim=comm/gloo_shim.cc; fi
{ find runtime backends comm tools -name '*.c'; echo "$shim"; } | sort | xargs -P2 -n8 clang-tidy -p "$build" --quiet 2>"$words" || {
    cat "$words" >&2
    exit 1
}
echo "no findings"
