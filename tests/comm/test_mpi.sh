#!/bin/sh
# Jobs that mpirun starts, without an option of the library: MPI carries them, with the bits of the library's own engine.
#
#     test_mpi.sh COLLECTIVES FAULTS CLTRAIN_TRAIN CLTRAIN_RUN PLUGIN
set -u
collectives=$1 faults=$2 train=$3 run=$4
export LD_LIBRARY_PATH="$(dirname "$5")${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}" # of tests, which are linked with the static library
command -v mpirun >/dev/null || exit 77
folder=$(mktemp -d "${TMPDIR:-/tmp}/cltrain-mpi-XXXXXX") || exit 1
trap 'rm -rf "$folder"' EXIT
failures=0

fail() {
    failures=$((failures + 1))
    echo "FAILED: $1"
    tail -n 20 "$folder/out"
}

# Ranks that wait give way to those that work: there may be more of them than cores.
start() {
    ranks=$1
    shift
    mpirun -n "$ranks" --allow-run-as-root --oversubscribe --mca mpi_yield_when_idle 1 "$@" >"$folder/out" 2>&1 </dev/null
}

# What the tests of the own engine do with so many ranks.
for n in 1 3 4; do
    start $n env CLTRAIN_TEST_MPI=1 "$collectives" || fail "collectives of $n ranks"
    grep -q "FAILED" "$folder/out" && fail "collectives of $n ranks"
done
# After an operation that was given up MPI is not ended, which mpirun takes for a failure, and ends the others.
for n in 2 4; do
    start $n env CLTRAIN_TEST_MPI=1 "$faults"
    grep -q "\[  PASSED  \] 13 test" "$folder/out" || fail "faults of $n ranks"
    grep -qE "FAILED|test_faults.c:|jobs.c:" "$folder/out" && fail "faults of $n ranks"
done

# A training: where sums are made in the order of ranks, who carries them changes no bit.
start 4 "$train" mlp --data digits --epochs 2 --batch 16 --json --export "$folder/mpi.safetensors" || fail "training by MPI"
grep -q '"engine": "mpi"' "$folder/out" || fail "the JSON does not name MPI"
grep -q "what they send is not encrypted" "$folder/out" || fail "no word of what is sent in the clear"
grep '_loss"' "$folder/out" >"$folder/mpi.losses"
CLTRAIN_COMM_ALGORITHMS=direct,shards "$run" -n 4 "$train" mlp --data digits --epochs 2 --batch 16 --json --export "$folder/own.safetensors" >"$folder/out" 2>&1 </dev/null || fail "training by the own engine"
grep -q '"engine": "cltrain"' "$folder/out" || fail "the JSON does not name the own engine"
grep '_loss"' "$folder/out" | sed 's/^\[rank 0\] //' | cmp -s - "$folder/mpi.losses" || fail "losses differ"
[ -s "$folder/mpi.losses" ] || fail "no losses"
cmp "$folder/mpi.safetensors" "$folder/own.safetensors" >"$folder/out" 2>&1 || fail "weights differ"

# What is MPI's and what is not.
CLTRAIN_COMM_TOKEN=0123456789abcdef CLTRAIN_COMM_ENGINE=mpi start 2 "$train" mlp --data digits --epochs 1 && fail "a token was taken"
grep -q "engine mpi takes no token" "$folder/out" || fail "no word of the token"
CLTRAIN_COMM_ENGINE=smoke "$train" mlp --data digits --epochs 1 >"$folder/out" 2>&1 && fail "an unknown engine was taken"
grep -q "engine is 'smoke': expected auto, cltrain, gloo or mpi" "$folder/out" || fail "no word of the engines"
[ $failures -eq 0 ]
