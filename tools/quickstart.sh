#!/bin/sh
# Installs what is missing, builds, and trains a convolutional network on hand-written digits.
#
#   sh tools/quickstart.sh [options of cltrain-train, such as --device cpu]
set -eu
root=$(cd "$(dirname "$0")/.." && pwd)
. "$root/tools/packages.sh"

# shellcheck disable=SC2086
need_packages $build_packages
configure "$root/build" -DCMAKE_BUILD_TYPE=RelWithDebInfo -DCLTRAIN_TESTS=OFF
cmake --build "$root/build"
exec "$root/build/bin/cltrain-train" convnet --data digits --epochs 30 "$@"
