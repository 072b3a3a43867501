#!/bin/sh
# test_symbols.sh FOLDER: the check of symbols finds what it is there to find. What nm prints is made up.
set -eu
gates=$(dirname "$0")
mkdir -p "$1"
printf '#!/bin/sh\nshift 2; cat "$@"\n' >"$1/nm"
chmod +x "$1/nm"

# Uses enough for the check to believe that it looked at a library.
plenty() {
    i=0
    while [ $i -lt 100 ]; do
        echo "x.dir/exec/plan.c.o:                 U clt_alloc"
        i=$((i + 1))
    done
    echo "x.dir/base/alloc.c.o:0000000000000000 T clt_alloc"
}

# try WANTED CALLER SYMBOL OBJECT
try() {
    { plenty; echo "$2:                 U $3"; echo "$4:0000000000000010 T $3"; } >"$1_$$.txt"
    echo "$PWD/$1_$$.txt" >list.txt
    if message=$(sh "$gates/symbols.sh" ./nm list.txt 2>&1); then got=passes; else got=refused; fi
    rm "$1_$$.txt"
    [ "$got" = "$1" ] || { echo "FAILED: $2 uses $3 of $4: $got, not $1 ($message)"; exit 1; }
}

gates=$(cd "$gates" && pwd)
cd "$1"
try passes x.dir/__/comm/comm.c.o clt_fail x.dir/base/error.c.o
try refused x.dir/__/comm/comm.c.o clt_shape_elements x.dir/graph/graph.c.o
try refused x.dir/data/csv.c.o clt_graph_create x.dir/graph/graph.c.o
try passes x.dir/__/backends/native/rows.c.o clt_node x.dir/graph/graph.c.o
try refused x.dir/graph/graph.c.o clt_backend_choose x.dir/__/backends/table.c.o
try refused x.dir/exec/plan.c.o clt_tune_problems x.dir/trial/tune.c.o
try refused x.dir/newroom/a.c.o clt_alloc x.dir/base/alloc.c.o
if sh "$gates/symbols.sh" ./nm /dev/null >/dev/null 2>&1; then echo "FAILED: an empty list passes"; exit 1; fi
echo "all well"
