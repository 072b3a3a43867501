#!/bin/sh
# symbols.sh NM LIST: fails on a call that goes against the rooms' order (rooms.txt), also where the function's declaration
# came by a public header. LIST: a file with the object files of the library, a line each.
set -eu
gates=$(dirname "$0")
xargs "$1" -A -g <"$2" | awk -v rooms="$gates/rooms.txt" -f "$gates/rooms.awk" -f "$gates/symbols.awk"
