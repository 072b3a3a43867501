#!/bin/sh
# Engines that others brought: jobs that mpirun starts, without an option of the library, and jobs that Gloo carries, have the bits of the library's own engine.
#
#     test_engines.sh COLLECTIVES FAULTS CLTRAIN_TRAIN CLTRAIN_RUN FOLDER_OF_THE_LIBRARY
set -u
collectives=$1 faults=$2 train=$3 run=$4 library=$5
export LD_LIBRARY_PATH="$library${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}" # of tests, which are linked with the static library
folder=$(mktemp -d "${TMPDIR:-/tmp}/cltrain-engines-XXXXXX") || exit 1
trap 'rm -rf "$folder"' EXIT
failures=0

fail() {
    failures=$((failures + 1))
    echo "FAILED: $1"
    tail -n 20 "$folder/out"
}

# says TEXT: of what ran last.
says() {
    grep -q -e "$1" "$folder/out" || fail "no word of: $1"
}

# Ranks that wait give way to those that work: there may be more of them than cores.
start() {
    ranks=$1
    shift
    mpirun -n "$ranks" --allow-run-as-root --oversubscribe --mca mpi_yield_when_idle 1 "$@" >"$folder/out" 2>&1 </dev/null
}

# training ENGINE COMMAND...: its losses and weights are those of the own engine, by its algorithms that add in the order of ranks.
training() {
    engine=$1
    shift
    "$@" "$train" mlp --data digits --epochs 2 --batch 16 --json --export "$folder/$engine.safetensors" >"$folder/out" 2>&1 </dev/null || fail "training by $engine"
    says "\"engine\": \"$engine\""
    sed 's/^\[rank 0\] //' "$folder/out" | grep '_loss"' >"$folder/$engine.losses"
    [ -s "$folder/$engine.losses" ] || fail "$engine: no losses"
    [ "$engine" = cltrain ] && return
    cmp "$folder/$engine.losses" "$folder/cltrain.losses" >"$folder/out" 2>&1 || fail "losses by $engine differ"
    cmp "$folder/$engine.safetensors" "$folder/cltrain.safetensors" >"$folder/out" 2>&1 || fail "weights by $engine differ"
}

training cltrain env CLTRAIN_COMM_ALGORITHMS=direct,shards "$run" -n 4

# ---- Gloo ----

if [ -e "$library/libcltrain-gloo.so" ]; then
    training gloo "$run" -n 4 --engine gloo --security none
    "$run" -n 2 --engine gloo "$train" mlp --data digits >"$folder/out" 2>&1 && fail "Gloo with TLS was taken"
    says "engine gloo needs --security none"
    CLTRAIN_COMM_ENGINE=gloo "$run" -n 2 "$train" mlp --data digits >"$folder/out" 2>&1 && fail "Gloo with TLS was taken by ranks"
    says "engine gloo neither authenticates nor encrypts"
    CLTRAIN_COMM_CHANNELS=2 CLTRAIN_COMM_ALGORITHMS=ring "$run" -n 2 --engine gloo --security none "$train" mlp --data digits >"$folder/out" 2>&1 && fail "an algorithm was taken"
    says "engine gloo takes no algorithms"
fi

# ---- MPI ----

if [ -e "$library/libcltrain-mpi.so" ] && command -v mpirun >/dev/null; then
    # What the tests of the own engine do with so many ranks.
    for n in 1 3 4; do
        start $n env CLTRAIN_TEST_MPI=1 "$collectives" || fail "collectives of $n ranks"
        grep -q "FAILED" "$folder/out" && fail "collectives of $n ranks"
    done
    # After an operation that was given up MPI is not ended, which mpirun takes for a failure, and ends the others.
    for n in 2 4; do
        start $n env CLTRAIN_TEST_MPI=1 "$faults"
        says "\[  PASSED  \] 15 test"
        grep -qE "FAILED|test_faults.c:|jobs.c:" "$folder/out" && fail "faults of $n ranks"
    done
    training mpi mpirun -n 4 --allow-run-as-root --oversubscribe --mca mpi_yield_when_idle 1
    start 2 "$train" mlp --data digits --epochs 1
    says "what they send is not encrypted"
    CLTRAIN_COMM_TOKEN=0123456789abcdef CLTRAIN_COMM_ENGINE=mpi start 2 "$train" mlp --data digits --epochs 1 && fail "a token was taken"
    says "engine mpi takes no token"
fi

# ---- neither ----

CLTRAIN_COMM_ENGINE=smoke "$train" mlp --data digits --epochs 1 >"$folder/out" 2>&1 && fail "an unknown engine was taken"
says "engine is 'smoke': expected auto, cltrain, gloo or mpi"
mkdir "$folder/bare"
cp "$library"/libcltrain.so.* "$folder/bare"
export LD_LIBRARY_PATH="$folder/bare"
CLTRAIN_COMM_ENGINE=mpi "$train" mlp --data digits --epochs 1 >"$folder/out" 2>&1 && fail "MPI without its plugin"
says "It is built where MPI is installed (Debian: libopenmpi-dev or libmpich-dev)"
"$run" -n 2 --engine gloo --security none "$train" mlp --data digits --epochs 1 >"$folder/out" 2>&1 && fail "Gloo without its plugin"
says "It is built where Gloo is installed (Debian: libgloo-dev)"
[ $failures -eq 0 ]
