#!/bin/sh
# cltrain-train beside drivers that crash, hang or end the process: it trains on the good ones, and says which are left out.
#
#     test_drivers.sh PROGRAM BUILD OFFLINE
program=$1
build=$2
offline=$3
name=drivers
. "$(dirname "$0")/common.sh"

vendors=$folder/vendors
mkdir "$vendors" "$folder/tmp"
cp /etc/OpenCL/vendors/*.icd "$vendors" 2>/dev/null
export OCL_ICD_VENDORS="$vendors"
"$program" --list-devices >"$folder/plain" 2>"$err" || exit 77 # no device here

warns() {
    grep -qF -- "$1" "$err" || fail "stderr does not say '$1'"
}

for fault in crash load leave hang; do
    echo "$build/libfake_icd_$fault.so" >"$vendors/z$fault.icd"
    TMPDIR="$folder/tmp" "$program" --list-devices >"$out" 2>"$err" || fail "beside a driver that does $fault it gave $?"
    warns "the OpenCL driver z$fault.icd is left out: "
    grep -v "not for stdout" "$out" | cmp -s - "$folder/plain" || fail "other devices are listed beside one that does $fault"
    [ -z "$(ls "$folder/tmp")" ] || fail "a folder is left behind"
    rm "$vendors/z$fault.icd"
done
for fault in crash load leave; do echo "$build/libfake_icd_$fault.so" >"$vendors/z$fault.icd"; done
expect 0 "zcrash.icd is left out: crashed: while it was loaded and asked for devices: ended by signal 11" mlp --data digits --epochs 1
warns "zload.icd is left out: crashed"
warns "zleave.icd is left out: crashed"
says "accuracy"
CLTRAIN_DRIVERS=ask expect 0 "zcrash.icd is left out" --list-devices
"$offline" compile --output "$folder/bundle" mlp:16 --data digits >"$out" 2>"$err" || fail "cltrain-offline compile beside drivers that crash gave $?"
warns "zcrash.icd is left out"
says "$folder/bundle"

# A device that is taken first, and whose driver fails when it is opened: not in silence, and another can be chosen.
for fault in exit wrong; do
    rm -f "$vendors"/z*.icd
    echo "$build/libfake_icd_$fault.so" >"$vendors/z$fault.icd"
    "$program" mlp --data digits --epochs 1 >"$out" 2>"$err" && fail "it gave 0 with a driver that does $fault"
    warns "cltrain-train: "
done
rm "$vendors/zwrong.icd"
echo "$build/libfake_icd_exit.so" >"$vendors/zexit.icd"
expect 1 "the device's driver ended the process while it was opened" mlp --data digits --epochs 1
warns "--device chooses another device"
rm "$vendors"/z*.icd

# None is left.
rm "$vendors"/*.icd
for fault in crash empty; do echo "$build/libfake_icd_$fault.so" >"$vendors/z$fault.icd"; done
expect 1 "zcrash.icd: crashed: while it was loaded" --list-devices
warns "no OpenCL device: none of the 2 drivers in $vendors has one"

# A cache that cannot be written.
if ls /etc/OpenCL/vendors/pocl*.icd >/dev/null 2>&1; then
    rm "$vendors"/*.icd
    cp /etc/OpenCL/vendors/pocl*.icd "$vendors"
    : >"$folder/file"
    POCL_CACHE_DIR="$folder/file/a/b" expect 1 "PoCL cannot write its cache" mlp --data digits --epochs 1
    if ls /etc/OpenCL/vendors/rusticl*.icd >/dev/null 2>&1; then # also where another driver has a device
        cp /etc/OpenCL/vendors/rusticl*.icd "$vendors"
        POCL_CACHE_DIR="$folder/file/a/b" RUSTICL_ENABLE=llvmpipe expect 0 "PoCL cannot write its cache" --list-devices
        CLTRAIN_DRIVERS=ask POCL_CACHE_DIR="$folder/file/a/b" RUSTICL_ENABLE=llvmpipe expect 0 "PoCL cannot write its cache" --list-devices
    fi
fi
[ $failures -eq 0 ]
