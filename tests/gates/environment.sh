#!/bin/sh
# environment.sh ROOT: the library reads the environment in two files: for a device's settings, and for a communicator's.
set -eu
root=$1
allowed='runtime/device/settings.c comm/rendezvous/environment.c'
bad=0 files=0
cd "$root"
for file in $(grep -rlE '\b(secure_)?(getenv|environ)\b *[(;[]' runtime backends comm --include='*.c' --include='*.cc' --include='*.h'); do
    files=$((files + 1))
    case " $allowed " in
    *" $file "*) ;;
    *)
        grep -nE '\b(secure_)?(getenv|environ)\b *[(;[]' "$file" | sed "s,^,$file:,"
        echo "FAILED: $file reads the environment: add a row to the table of runtime/device/settings.c, and ask clt_device_settings"
        bad=1
        ;;
    esac
done
[ $files -eq 2 ] || [ $bad = 1 ] || { echo "FAILED: only $files files that read the environment were found in $root"; exit 1; }
echo "$files files read the environment"
exit $bad
