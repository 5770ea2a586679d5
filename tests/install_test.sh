#!/bin/sh
# Proves that the library can be used from outside its tree: installs it with DESTDIR under an odd
# prefix and libdir, moves that away from where it was built for, and builds tests/consumer from
# the pkg-config file alone: against the shared library, fully static, as C++ if there is a C++
# compiler, and with the tree as a Meson subproject.
#
# usage: install_test.sh BUILD_DIRECTORY      a directory of its own, kept to be quick next time
set -eu
build=$1
source=$(CDPATH='' cd -- "$(dirname -- "$0")/.." && pwd)
consumer=$source/tests/consumer
prefix=/opt/odd.prefix
libdir=odd/lib64x
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

step=setting-up
fail() {
    [ ! -s "$scratch/log" ] || tail -n 30 "$scratch/log" >&2
    echo "install test: $step: ${*:-failed}" >&2
    exit 1
}
quietly() { "$@" >"$scratch/log" 2>&1 || fail; }
# expect FILE...: all are there.
expect() {
    for file; do
        [ -e "$file" ] || fail "$file is not there"
    done
}
# consume COMMAND...: the consumer finds the right answer.
consume() {
    quietly "$@"
    grep -q '^attnres [0-9.]*, level ' "$scratch/log" || fail
}

[ -f "$build/build.ninja" ] ||
    quietly meson setup "$build" "$source" -Dprefix=$prefix -Dlibdir=$libdir -Dtests=disabled
quietly meson compile -C "$build"

step=install
quietly env DESTDIR="$scratch/first" meson install -C "$build" --no-rebuild
mv "$scratch/first$prefix" "$scratch/moved"
root=$scratch/moved
lib=$root/$libdir
expect "$root/include/attnres.h" "$lib/libattnres.a" "$lib/libattnres.so" "$lib/libattnres.so.0" \
    "$lib/pkgconfig/attnres.pc"
# Nothing else: no test, no object of a level.
[ "$(find "$root" -type f | wc -l)" -le 5 ] || fail "more installed than" "$(find "$root" -type f)"

package() {
    PKG_CONFIG_LIBDIR="$lib/pkgconfig" pkg-config --define-variable=prefix="$root" "$@" attnres
}
[ "$(package --modversion)" = "$("$build/attnres" version | cut -d' ' -f2)" ] ||
    fail "the versions of the pkg-config file and the program differ"

strict="-Wall -Wextra -pedantic -Werror"
step=shared
# shellcheck disable=SC2046,SC2086 # flags are words; libraries follow the source
quietly ${CC:-cc} -std=c99 $strict -o "$scratch/shared" "$consumer/consumer.c" \
    $(package --cflags --libs)
consume env LD_LIBRARY_PATH="$lib" "$scratch/shared"
step=soname
LD_LIBRARY_PATH=$lib ldd "$scratch/shared" >"$scratch/log"
grep -q 'libattnres\.so\.0 => ' "$scratch/log" || fail "not linked to libattnres.so.0"

step=static
# shellcheck disable=SC2046,SC2086
quietly ${CC:-cc} -std=c99 $strict -static -o "$scratch/static" "$consumer/consumer.c" \
    $(package --static --cflags --libs)
consume "$scratch/static"

step=C++
cplusplus=skipped
if command -v "${CXX:-c++}" >/dev/null; then
    for standard in c++11 c++20; do
        # shellcheck disable=SC2046,SC2086
        quietly ${CXX:-c++} -std=$standard $strict -x c++ "$consumer/consumer.c" -x none \
            -o "$scratch/cplusplus" $(package --cflags --libs)
        consume env LD_LIBRARY_PATH="$lib" "$scratch/cplusplus"
    done
    cplusplus=ok
fi

step=program
expect "$root/bin/attnres"
quietly "$root/bin/attnres" info

# Into a project with -Werror and a target called check; nothing but the library comes along. One
# level is enough here.
step=subproject
parent=$build/parent
mkdir -p "$parent/subprojects"
ln -sf "$consumer/consumer.c" "$consumer/meson.build" "$parent"
ln -sfn "$source" "$parent/subprojects/attnres"
[ -f "$parent/build/build.ninja" ] ||
    quietly meson setup "$parent/build" "$parent" -Dprefix=$prefix \
        -Dattnres:avx2=disabled -Dattnres:avx512=disabled -Dattnres:neon=disabled
quietly meson compile -C "$parent/build"
consume "$parent/build/check"
[ "$(meson introspect --tests "$parent/build" | grep -o '"name"' | wc -l)" -eq 1 ] ||
    fail "the library's tests have become the parent's"
[ ! -e "$parent/build/subprojects/attnres/attnres" ] ||
    fail "the library's program was built for the parent"

echo "install test: shared, static, program, subproject ok; C++ $cplusplus"
