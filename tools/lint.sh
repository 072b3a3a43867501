#!/bin/sh
# lint.sh [--all] [BUILD]: cppcheck and clang-tidy over the sources of the library and the tools, without a finding. clang-tidy leaves
# out what it has found clean before; with --all it looks at all. .clang-tidy says what is asked; BUILD (default build) has been configured with -DCMAKE_EXPORT_COMPILE_COMMANDS=ON.
set -eu
root=$(cd "$(dirname "$0")/.." && pwd)
. "$root/tools/packages.sh"
cd "$root"
all=
if [ "${1-}" = --all ]; then all=--all; shift; fi
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
# The files of C++ are built where Gloo is.
gloo=
if grep -q comm/plugins/gloo_mover.cc "$build/compile_commands.json"; then gloo="comm/plugins/gloo_collectives.cc comm/plugins/gloo_mover.cc"; fi
# shellcheck disable=SC2046,SC2086
python3 tools/tidy.py $all "$build" $(find runtime backends comm tools -name '*.c' | sort) $gloo
echo "no findings"
