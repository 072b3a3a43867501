#!/bin/sh
# headers.sh STANDARD COMPILER FOLDER...: each public header compiles alone, twice in a row, without
# a warning.
set -eu
standard=$1 compiler=$2
shift 2
case $standard in c++*) language=c++ ;; *) language=c ;; esac
includes=
for folder; do includes="$includes -I$folder"; done

count=0 bad=0
for folder; do
    for header in "$folder"/cltrain/*.h "$folder"/cltrain/*/*.h; do
        [ -e "$header" ] || continue
        name=${header#"$folder"/}
        # shellcheck disable=SC2086
        printf '#include <%s>\n#include <%s>\nextern int not_empty;\n' "$name" "$name" |
            "$compiler" -x $language -std="$standard" -Wall -Wextra -Wpedantic -Wshadow -Werror $includes \
                -fsyntax-only - || { echo "FAILED: $name as $standard"; bad=1; }
        count=$((count + 1))
    done
done
[ $count -ge 10 ] || { echo "FAILED: only $count headers found"; exit 1; }
echo "$count headers compiled alone as $standard"
exit $bad
