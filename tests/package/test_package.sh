#!/bin/sh
# Variables come from CMakeLists.txt beside this file.
set -eu

fail() {
    echo "FAILED: $*" >&2
    exit 1
}

rm -rf "$WORK"
mkdir -p "$WORK"
cd "$WORK"

# Installed in one place, used in another: nothing may remember the first.
"$CMAKE" --install "$BUILD" --config "$CONFIG" --prefix "$WORK/first" >install.log
mv first prefix
prefix=$WORK/prefix
lib=$prefix/$LIBDIR

echo "== what is installed"
for file in include/cltrain/cltrain.h include/cltrain/version.h "$LIBDIR/libcltrain.a" \
    "$LIBDIR/libcltrain.so" "$LIBDIR/libcltrain.so.$SOVERSION" "$LIBDIR/libcltrain.so.$VERSION" \
    "$LIBDIR/pkgconfig/cltrain.pc" "$LIBDIR/cmake/cltrain/cltrain-config.cmake"; do
    test -e "$prefix/$file" || fail "$file is not installed"
done
for header in "$SOURCE"/include/cltrain/*.h "$SOURCE"/include/cltrain/*/*.h; do
    test -e "$prefix/${header#"$SOURCE"/}" || fail "${header##*/} is not installed"
done
objdump -p "$lib/libcltrain.so" | grep -q "SONAME *libcltrain.so.$SOVERSION\$" || fail "wrong SONAME"
if grep -rlF -e "$WORK/first" -e "$SOURCE" "$lib/pkgconfig" "$lib/cmake" "$prefix/include"; then
    fail "the files above name folders of the build"
fi
PKG_CONFIG_PATH=$lib/pkgconfig
export PKG_CONFIG_PATH
test "$("$PKG_CONFIG" --modversion cltrain)" = "$VERSION" || fail "wrong version in cltrain.pc"

# run PROGRAM: it must train, and read most of the digits right; its output is kept.
run() {
    LD_LIBRARY_PATH=$lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH} "$1" >output || fail "$1 gave $?"
    cat output
    right=$(awk '/read as/ { sub(",", "", $2); if ($2 == $5) n++ } END { print n + 0 }' output)
    test "$right" -ge 7 || fail "$1 read $right of 8 digits right"
    # The same training, however the library is linked: the same numbers.
    if test -e output.first; then cmp output output.first || fail "$1 trains differently"; fi
    cp output output.first
}

linked() { ldd "$1" | grep -q libcltrain; }

echo "== pkg-config, shared"
cp -R "$SOURCE/examples/embed" make-shared
make -C make-shared CC="$CC" CFLAGS="-O2 -Wall -Wextra -Werror -Wno-missing-field-initializers $SANITIZE" \
    PKG_CONFIG="$PKG_CONFIG"
linked make-shared/embed || fail "not linked with the shared library"
run make-shared/embed

echo "== pkg-config, static"
cp -R "$SOURCE/examples/embed" make-static
make -C make-static CC="$CC" CFLAGS="-O2 -Wall $SANITIZE" PKG_CONFIG="$PKG_CONFIG" STATIC=1
if linked make-static/embed; then fail "linked with the shared library"; fi
run make-static/embed

# By CMake alone: pkg-config knows nothing of the folder now.
unset PKG_CONFIG_PATH
for kind in shared static; do
    echo "== CMake, $kind"
    test "$kind" = static && static=ON || static=OFF
    cp -R "$SOURCE/examples/embed" "cmake-$kind"
    "$CMAKE" -S "cmake-$kind" -B "cmake-$kind/build" -G "$GENERATOR" -DCMAKE_MAKE_PROGRAM="$MAKE_PROGRAM" \
        -DCMAKE_C_COMPILER="$CC" -DCMAKE_C_FLAGS="$SANITIZE" -DCMAKE_PREFIX_PATH="$prefix" \
        -DEMBED_STATIC="$static"
    "$CMAKE" --build "cmake-$kind/build"
    if linked "cmake-$kind/build/embed"; then found=OFF; else found=ON; fi
    test "$found" = "$static" || fail "linked with the wrong library"
    run "cmake-$kind/build/embed"
done

echo "== the example gpt"
cp -R "$SOURCE/examples/gpt" gpt
"$CMAKE" -S gpt -B gpt/build -G "$GENERATOR" -DCMAKE_MAKE_PROGRAM="$MAKE_PROGRAM" -DCMAKE_C_COMPILER="$CC" \
    -DCMAKE_C_FLAGS="-Wall -Wextra -Wno-missing-field-initializers $SANITIZE" -DCMAKE_PREFIX_PATH="$prefix"
"$CMAKE" --build gpt/build
gpt/build/gpt "$SOURCE/README.md" 100 >output || fail "gpt fails"
awk '/^step/ { loss[$2 + 0] = $4 + 0 } END { exit !(loss[50] > 0 && loss[100] < loss[50]) }' output || fail "gpt does not learn: $(head -2 output)"
status=0
gpt/build/gpt gpt/none 2>output || status=$?
test "$status" = 2 || fail "gpt without a text ends with $status"

echo "== the example predict"
cp -R "$SOURCE/examples/predict" predict
"$CMAKE" -S predict -B predict/build -G "$GENERATOR" -DCMAKE_MAKE_PROGRAM="$MAKE_PROGRAM" -DCMAKE_C_COMPILER="$CC" \
    -DCMAKE_C_FLAGS="-Wall -Wextra -Wno-missing-field-initializers $SANITIZE" -DCMAKE_PREFIX_PATH="$prefix"
"$CMAKE" --build predict/build
if test -x "$prefix/bin/cltrain-train"; then
    LD_LIBRARY_PATH=$lib "$prefix/bin/cltrain-train" convnet --data digits --epochs 5 --export digits.safetensors -q >predict.log
    predict/build/predict digits.safetensors >output || fail "predict fails"
    right=$(awk '/read as/ { sub(",", "", $2); if ($2 == $5) n++ } END { print n + 0 }' output)
    test "$right" -ge 7 || fail "predict reads $right of 8 digits right"
fi
status=0
predict/build/predict none 2>output || status=$?
test "$status" = 1 || fail "predict without weights ends with $status"

echo "== versions that do not fit are refused"
mkdir refused
cat >refused/CMakeLists.txt <<END
cmake_minimum_required(VERSION 3.20)
project(refused C)
find_package(cltrain 99)
if(cltrain_FOUND)
  message(FATAL_ERROR "cltrain $VERSION passed for 99")
endif()
find_package(cltrain $VERSION EXACT REQUIRED)
find_package(cltrain REQUIRED) # a second time
END
"$CMAKE" -S refused -B refused/build -DCMAKE_C_COMPILER="$CC" -DCMAKE_PREFIX_PATH="$prefix" >refused.log 2>&1 ||
    { cat refused.log; fail "find_package"; }
echo "all well"
