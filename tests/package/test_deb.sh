#!/bin/sh
# Packages for Debian: nothing is left out, lintian finds nothing, and a program compiles and runs against their content alone. What is built is
# packaged where it goes to Debian's folder of libraries (-DCMAKE_INSTALL_LIBDIR=lib/TRIPLET); else it is built anew. Variables come from CMakeLists.txt beside this file.
set -eu

fail() {
    echo "FAILED: $*" >&2
    exit 1
}

for tool in dh dpkg-buildpackage fakeroot; do
    command -v $tool >/dev/null || { echo "skipped: there is no $tool (packages debhelper, dpkg-dev, fakeroot)"; exit 77; }
done
rm -rf "$WORK"
mkdir -p "$WORK/source"
(cd "$SOURCE" && tar -cf - --exclude=./build --exclude='./build-*' --exclude=./.git .) | tar -xf - -C "$WORK/source"
test "$(dpkg-parsechangelog -l "$SOURCE/debian/changelog" -S Version)" = "$VERSION" || fail "debian/changelog is not about version $VERSION"
grep -q "^## $VERSION" "$SOURCE/CHANGELOG.md" || fail "CHANGELOG.md does not have $VERSION"

cd "$WORK/source"
# -d: what the build needs was there when it was made, by these names or others.
case $LIBDIR in
lib/*-linux-*) CLTRAIN_BUILD=$BUILD && export CLTRAIN_BUILD ;;
esac
dpkg-buildpackage -b -d -us -uc >../build.log 2>&1 || { tail -30 ../build.log; fail "dpkg-buildpackage"; }
cd ..
ls *.deb
for package in libcltrain$SOVERSION libcltrain-dev cltrain-tools; do
    test -n "$(ls ${package}_*.deb)" || fail "there is no package $package"
done
if command -v lintian >/dev/null; then
    lintian --fail-on error,warning --suppress-tags initial-upload-closes-no-bugs cltrain_*.changes || fail "lintian"
fi

for package in *.deb; do
    case $package in *-dbgsym_*) continue ;; esac
    dpkg-deb -x "$package" root
done
for file in usr/share/man/man1/cltrain-train.1.gz usr/share/bash-completion/completions/cltrain-train usr/share/zsh/vendor-completions/_cltrain \
    usr/share/doc/libcltrain-dev/examples/embed/embed.c usr/share/doc/libcltrain$SOVERSION/copyright; do
    test -s "root/$file" || fail "$file is in no package"
done
lib=$(dirname "$(find "$PWD/root/usr/lib" -name 'libcltrain.so')")
cp -R root/usr/share/doc/libcltrain-dev/examples/embed embed
PKG_CONFIG_PATH=$lib/pkgconfig make -C embed CC="$CC" CFLAGS="-O2 -Wall" PKG_CONFIG="$PKG_CONFIG" >make.log || { cat make.log; fail "embed does not compile"; }
LD_LIBRARY_PATH=$lib embed/embed >output || fail "embed gave $?"
grep -q "read as" output || fail "embed does not read digits: $(tail -1 output)"
LD_LIBRARY_PATH=$lib root/usr/bin/cltrain-train --version | grep -q "$VERSION" || fail "cltrain-train --version"
echo "all well"
