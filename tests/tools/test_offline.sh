#!/bin/sh
# test_offline.sh PROGRAM TRAIN NO_COMPILER PYTHON: kernels that are compiled ahead: a run that compiles nothing is the run that compiles all, and what is damaged is refused.
program=$1 train=$2 no_compiler=$3 python=$4 name=offline
. "$(dirname "$0")/common.sh"
cd "$folder" || exit 1

# trained NAME VARIABLE=VALUE...: a run of cltrain-train.
trained() {
    into=$1
    shift
    env "$@" "$train" mlp:16 --data digits --batch 64 --steps 3 --json="$into.json" >"$out" 2>"$err" || return 1
}
# same A B: but for seconds and memory.
same() {
    "$python" - "$1" "$2" <<'END'
import json, re, sys
a, b = (json.load(open(f"{name}.json")) for name in sys.argv[1:])
assert a.keys() == b.keys()
for key in a:
    assert re.search("second|bytes", key) or a[key] == b[key], (key, a[key], b[key])
END
}

expect 0 "" compile mlp:16 --data digits --batch 64 --output bundle
says "bundle: "
says " kernels"
trained compiled CLTRAIN_TUNE=off || fail "a plain run"
without_compiler="LD_PRELOAD=$no_compiler ASAN_OPTIONS=${ASAN_OPTIONS:+$ASAN_OPTIONS:}verify_asan_link_order=0"
# shellcheck disable=SC2086
trained bundled CLTRAIN_BUNDLE=bundle CLTRAIN_COMPILER=never $without_compiler || fail "a run from the bundle"
# shellcheck disable=SC2086
trained none CLTRAIN_TUNE=off CLTRAIN_PROGRAM_CACHE=off $without_compiler && fail "something is compiled where there is no compiler"
same compiled bundled || fail "a run from the bundle came to something else"

expect 0 "" verify bundle
says "and are what they should be"
expect 0 "" inspect bundle
says "native"
says "driver "
says "clt_image_check, 1 arguments"
expect 0 "" inspect bundle --json
"$python" -c 'import json, sys; assert json.load(sys.stdin)["format"] == "cltrain bundle 1"' <"$out" || fail "inspect --json"
(cd bundle && sha256sum --check --quiet manifest.json.sha256) || fail "sha256sum does not take the checksum"

# Portable images: with the compilers that are there, or with one that is named.
expect 1 "a source was not compiled" add bundle --command 'exit 3'
expect 0 "" verify bundle
# shellcheck disable=SC2016
expect 0 "" add bundle --command 'cp "$INPUT" "$OUTPUT"'
says "all have SPIR-V now"
expect 0 "" verify bundle
expect 0 "" inspect bundle
says ".spv, SPIR-V"
if command -v clang-15 >/dev/null && command -v llvm-spirv-15 >/dev/null; then
    expect 0 "" add bundle
    "$python" - <<'END' || fail "what was added is no SPIR-V"
import json
manifest = json.load(open("bundle/manifest.json"))
for one in manifest["images"] + manifest["experiments"]:
    with open(f"bundle/{one['il']['file']}", "rb") as file: assert file.read(4) == b"\x03\x02\x23\x07", one["il"]
END
fi
expect 1 "manifest.json" add nowhere
trained again CLTRAIN_BUNDLE=bundle CLTRAIN_COMPILER=never || fail "a run from the bundle with portable images"
same compiled again || fail "a run from the bundle with portable images came to something else"

# Another model wants other kernels, which are named; with a compiler they are compiled.
env CLTRAIN_BUNDLE=bundle CLTRAIN_COMPILER=never "$train" convnet --data digits --steps 1 >"$out" 2>"$err" && fail "a convnet was trained from the bundle of an mlp"
grep -q "missing in the bundle bundle: .*conv2d" "$err" || fail "the kernels that are missing are not named"
env CLTRAIN_BUNDLE=bundle "$train" convnet --data digits --steps 1 >"$out" 2>"$err" || fail "what is missing is not compiled"
env CLTRAIN_COMPILER=never "$train" mlp:16 --data digits --steps 1 >"$out" 2>"$err" && fail "a run without compiler and bundle"
grep -q "CLTRAIN_BUNDLE names no bundle" "$err" || fail "no word of the bundle that is not there"
env CLTRAIN_COMPILER=maybe "$train" mlp:16 --data digits --steps 1 >"$out" 2>"$err" && fail "CLTRAIN_COMPILER=maybe"
grep -q "auto" "$err" || fail "what CLTRAIN_COMPILER may be is not told"

# Damage is refused, or, with a compiler, told and made good.
image=$("$python" -c 'import json; print(json.load(open("bundle/manifest.json"))["images"][0]["file"])')
printf 'x' | dd of="bundle/$image" bs=1 seek=100 conv=notrunc 2>/dev/null
expect 1 "$image: its SHA-256 is" verify bundle
env CLTRAIN_BUNDLE=bundle "$train" mlp:16 --data digits --batch 64 --steps 3 --json=mended.json >"$out" 2>"$err" || fail "a damaged bundle ends a run that has a compiler"
grep -q "$image.*kernels that are missing are compiled" "$err" || fail "a damaged bundle is not told of"
same compiled mended || fail "a run beside a damaged bundle came to something else"
rm bundle/manifest.json
expect 1 "manifest.json" verify bundle
expect 1 "manifest.json" inspect bundle
mkdir empty
expect 1 "manifest.json" verify empty
expect 1 "" verify nowhere

# Usage.
refuse "--output FOLDER" compile mlp:16 --data digits
refuse "--output is given twice" compile mlp:16 --data digits --output x --output=y
refuse "nothing is reported" compile mlp:16 --data digits --output x --json
expect 0 "" compile mlp:16 --data digits -o sgd --output sgd.bundle
[ -e sgd ] && fail "the optimizer was taken as the folder"
env CLTRAIN_BUNDLE=sgd.bundle CLTRAIN_COMPILER=never "$train" mlp:16 --data digits -o sgd --steps 2 >"$out" 2>"$err" || fail "sgd is not in the bundle"
mkdir pipe && mkfifo pipe/manifest.json
expect 1 "regular file" inspect pipe
printf '{"images": [{"file": "\\u001b[2J"}], "library": "x"}' >empty/manifest.json
expect 0 "" inspect empty
grep -q "$(printf '\033')" "$out" && fail "a manifest's control characters reach the terminal"
refuse "one for each" compile mlp:16 --data digits --output x --devices a,b
refuse "expected a training" compile mlp:16 --data digits --output x --summary
refuse "no FOLDER" verify
refuse "one FOLDER" inspect a b
refuse "unknown command 'link'" link
: >file
expect 1 "" compile mlp:16 --data digits --output file/x
expect 0 "" --help
says "compile"
for command in compile add inspect verify; do
    expect 0 "" $command --help
    says "Usage: cltrain-offline $command"
done
expect 0 "" --version
[ $failures -eq 0 ]
