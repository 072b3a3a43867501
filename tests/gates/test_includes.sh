#!/bin/sh
# test_includes.sh FOLDER: the check of includes finds what it is there to find.
set -eu
gate=$(dirname "$0")/includes.sh

# try WANTED FILE LINE: a tree of that one line passes ("passes") or is refused ("refused").
try() {
    rm -rf "$folder"
    mkdir -p "$folder/$(dirname "$2")"
    printf '%s\n' '#include <stdio.h>' "$3" >"$folder/$2"
    if message=$(sh "$gate" "$folder" 2>&1); then got=passes; else got=refused; fi
    if [ "$got" = refused ]; then
        case $message in *"$2:2:"*) ;; *) got="refused without the place ($message)" ;; esac
    fi
    [ "$got" = "$1" ] || { echo "FAILED: $3 in $2: $got, not $1"; exit 1; }
}

folder=$1
try passes runtime/base/a.c '#include "runtime/base/base.h"'
try passes runtime/base/a.c '#include <cltrain/status.h>'
try refused runtime/base/a.c '#include "runtime/device/device.h"'
try refused runtime/base/a.c '#include <cltrain/graph.h>'
try refused runtime/graph/a.c '#include "runtime/device/device.h"'
try refused runtime/graph/a.h '  #  include "runtime/exec/plan.h"'
try passes runtime/ops/a.c '#include "runtime/graph/graph.h"'
try refused runtime/graph/a.c '#include "runtime/ops/ops.h"'
try passes runtime/device/a.c '#include <CL/cl.h>'
try passes backends/native/a.c '#include <CL/cl.h>'
try refused runtime/exec/a.c '#include <CL/cl.h>'
try passes runtime/exec/a.c '#include "backends/table.h"'
try refused backends/reference/a.c '#include "runtime/exec/plan.h"'
try passes backends/reference/a.c '#include "runtime/ops/ops.h"'
try refused runtime/data/a.c '#include "runtime/train/trainer.h"'
try passes runtime/measure/a.c '#include "runtime/train/trainer.h"'
try refused runtime/train/a.c '#include "runtime/measure/times.h"'
try refused runtime/exec/a.c '#include "runtime/trial/tune.h"'
try passes runtime/measure/a.c '#include <CL/cl.h>'
try refused comm/a.c '#include "runtime/device/device.h"'
try refused runtime/base/a.c '#include "tests/support.h"'
try refused runtime/base/a.c '#include "../device/device.h"'
try refused runtime/base/a.c '#include "device/device.h"'
try refused runtime/base/a.c '#include <cltrain/cltrain.h>'
try passes tools/x/a.c '#include <cltrain/cltrain.h>'
try passes tools/x/a.c '#include "tools/x/b.h"'
try passes tools/x/a.c '#include "b.h"'
try refused tools/x/a.c '#include "tools/y/b.h"'
try passes tools/cltrain-predict/a.c '#include "tools/cltrain-train/b.h"'
try passes tools/cltrain-offline/a.c '#include "tools/cltrain-train/b.h"'
try refused tools/cltrain-train/a.c '#include "tools/cltrain-predict/b.h"'
try passes tools/x/a.c '#include "tools/common/b.h"'
try refused tools/common/a.c '#include "tools/x/b.h"'
try refused tools/x/a.c '#include "runtime/base/base.h"'
try refused tools/x/a.c '#include <CL/cl.h>'
try passes tools/cltrain-compile/a.c '#include <CL/cl.h>'
rm -rf "$folder"
mkdir -p "$folder/runtime/newroom"
echo '#include <stdio.h>' >"$folder/runtime/newroom/a.c"
if sh "$gate" "$folder" >/dev/null; then echo "FAILED: an unknown room passes"; exit 1; fi
rm -rf "$folder"
echo "all well"
