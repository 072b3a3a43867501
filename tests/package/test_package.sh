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
test -n "$SANITIZE" || objdump -T "$lib/libcltrain.so" | grep -q "CLTRAIN_$SOVERSION *clt_device_open\$" || fail "symbols without a version"
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

# example NAME: built against what is installed.
example() {
    echo "== the example $1"
    cp -R "$SOURCE/examples/$1" "$1"
    "$CMAKE" -S "$1" -B "$1/build" -G "$GENERATOR" -DCMAKE_MAKE_PROGRAM="$MAKE_PROGRAM" -DCMAKE_C_COMPILER="$CC" \
        -DCMAKE_C_FLAGS="-Wall -Wextra -Wno-missing-field-initializers $SANITIZE" -DCMAKE_PREFIX_PATH="$prefix"
    "$CMAKE" --build "$1/build"
}
# ends_with STATUS COMMAND...
ends_with() {
    wanted=$1 status=0
    shift
    "$@" 2>output || status=$?
    test "$status" = "$wanted" || fail "$* ends with $status"
}

example gpt
gpt/build/gpt "$SOURCE/README.md" 100 >output || fail "gpt fails"
awk '/^step/ { loss[$2 + 0] = $4 + 0 } END { exit !(loss[50] > 0 && loss[100] < loss[50]) }' output || fail "gpt does not learn: $(head -2 output)"
ends_with 2 gpt/build/gpt gpt/none

example predict
if test -x "$prefix/bin/cltrain-train"; then
    LD_LIBRARY_PATH=$lib "$prefix/bin/cltrain-train" convnet --data digits --epochs 5 --export digits.safetensors -q >predict.log
    predict/build/predict digits.safetensors >output || fail "predict fails"
    right=$(awk '/read as/ { sub(",", "", $2); if ($2 == $5) n++ } END { print n + 0 }' output)
    test "$right" -ge 7 || fail "predict reads $right of 8 digits right"
fi
ends_with 1 predict/build/predict none

example kernel
kernel/build/kernel >output || fail "kernel fails"
awk '/^epoch 5/ { exit !($6 > 0.9) }' output || fail "kernel does not learn: $(tail -1 output)"

example dataset
dataset/build/dataset >output || fail "dataset does not learn: $(tail -1 output)"
grep -q '^epoch 20' output || fail "dataset ends early"

example series
series/build/series >output || fail "series fails"
awk '/^epoch/ { n++; last = $NF } END { exit !(n == 3 && last < 0.1) }' output || fail "series does not learn: $(tail -1 output)"
ends_with 2 series/build/series series/none

example finetune
if "$PYTHON" -c 'import numpy' 2>/dev/null; then
    "$PYTHON" - <<'END'
import numpy as np
rng = np.random.default_rng(0)
y = (np.arange(96) % 3).astype("i4")
x = rng.normal(size=(96, 3, 32, 32)).astype("f4") + np.eye(3, dtype="f4")[y][:, :, None, None]
np.save("images.npy", x)
np.save("kinds.npy", y)
END
    finetune/build/finetune images.npy kinds.npy >output || fail "finetune fails"
    awk '/^epoch 5/ { exit !($7 > 0.9) }' output || fail "finetune does not learn: $(tail -1 output)"
    if test -x "$prefix/bin/cltrain-train"; then
        LD_LIBRARY_PATH=$lib "$prefix/bin/cltrain-train" resnet18 --data synthetic:3x32x32,classes=5,n=40 --epochs 0 --export base.safetensors -q >finetune.log
        finetune/build/finetune images.npy kinds.npy base.safetensors moved.safetensors >output || fail "finetune from weights fails"
        grep -q "fc.weight keeps its first values" output || fail "finetune does not tell which weights it leaves"
        test -s moved.safetensors || fail "finetune writes no weights"
    fi
fi
ends_with 2 finetune/build/finetune

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
