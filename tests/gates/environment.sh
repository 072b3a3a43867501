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
# What it is not told to expect, it warns of: each variable that is read has to be in one of the lists there.
known=$(sed -n 's/.*{SETTING("\([A-Z_]*\)".*/CLTRAIN_\1/p' runtime/device/settings.c; grep -oE '"CLTRAIN_[A-Z_]+[A-Z]"' runtime/device/settings.c | tr -d '"')
read=$(grep -rhoE '"CLTRAIN_[A-Z_]+[A-Z]"' runtime comm backends tools --include='*.c' --include='*.cc' | tr -d '"'
    grep -ohE 'TEXT\("[A-Z_]+"' comm/settings.c | sed 's/TEXT("\([A-Z_]*\)"/CLTRAIN_COMM_\1/')
counted=0
for name in $(echo "$read" | sort -u); do
    counted=$((counted + 1))
    echo "$known" | grep -qx "$name" || { echo "FAILED: $name is read, but not in the list of runtime/device/settings.c"; bad=1; }
done
[ $counted -ge 30 ] || { echo "FAILED: only $counted variables were found in $root"; exit 1; }
echo "$files files read the environment, $counted variables"
exit $bad
