#!/bin/sh
# silent.sh NM STATIC ROOT: the library calls nothing that prints to the program's streams or ends
# the program, and has no assert.
set -eu
nm=$1 static=$2 root=$3

# What each object file asks of others: "path/file.c.o: name".
bad=0
forbidden='printf|vprintf|puts|putchar|putc_unlocked|perror|psignal|dprintf|vdprintf|stdout|stderr|stdin|warn|warnx|err|errx|syslog|error|abort|exit|_exit|_Exit|quick_exit|atexit|__assert_fail|__assert|__printf_chk|__vprintf_chk|__dprintf_chk|system|raise|longjmp'
found=$("$nm" -A -u "$static" | sed 's/@.*//' | awk -v forbidden="^($forbidden)\$" '$NF ~ forbidden')
# The decoders of libjpeg and libpng leave by a longjmp back into the function that called them.
found=$(printf '%s' "$found" | grep -vE ':(jpeg|png)\.c\.o: +U longjmp$' || true)
if [ -n "$found" ]; then
    echo "$found"
    echo "FAILED: the library prints or ends the program through the calls above"
    bad=1
fi

# An assert vanishes from an optimized build, so the sources are asked too.
if grep -rnE '#[ \t]*include[ \t]*<(assert|err|error)\.h>' "$root/runtime" "$root/backends" "$root/comm" \
    --include='*.[ch]'; then
    echo "FAILED: input is checked with if"
    bad=1
fi

objects=$("$nm" -A -u "$static" 2>/dev/null | sed 's/:[^:]*$//' | sort -u | wc -l)
[ "$objects" -ge 5 ] || { echo "FAILED: only $objects object files found in $static"; exit 1; }
echo "$objects object files looked at"
exit $bad
