#!/bin/sh
# includes.sh ROOT: fails on an include that goes against the rooms' order (rooms.txt), names file and line. Public
# headers count as part of their room.
set -eu
gates=$(cd "$(dirname "$0")" && pwd)
cd "$1"
find runtime backends comm tools \( -name '*.[ch]' -o -name '*.cc' \) 2>/dev/null | sort |
    xargs awk -v rooms="$gates/rooms.txt" -f "$gates/rooms.awk" -f "$gates/includes.awk"
