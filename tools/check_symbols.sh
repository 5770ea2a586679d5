#!/bin/sh
# Proves: the shared library exports exactly the functions that the public header declares, under
# the soname libattnres.so.0; and every global symbol of the static archive starts with attnres_,
# so that the archive cannot collide with, or be bent by, another library in the same program.
#
# usage: check_symbols.sh BUILD_DIRECTORY [PREFIX_OF_BINUTILS]      e.g. aarch64-linux-gnu-
set -eu
build=$1
tools=${2:-}
header=$(dirname "$0")/../include/attnres.h
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

# A declaration is `ATTNRES_API type name(`, on one line.
sed -n 's/^ATTNRES_API .*[ *]\(attnres_[a-z0-9_]*\)(.*/\1/p' "$header" | sort >"$scratch/declared"
lines=$(grep -c '^ATTNRES_API ' "$header")
if [ "$(wc -l <"$scratch/declared")" -ne "$lines" ]; then
    echo "check_symbols: not every ATTNRES_API line of the header is understood" >&2
    exit 1
fi

"${tools}nm" -D --defined-only "$build/src/libattnres.so" | awk '{print $NF}' | sort \
    >"$scratch/exported"
if ! diff "$scratch/declared" "$scratch/exported" >"$scratch/difference"; then
    echo "check_symbols: header (<) and exports (>) differ:" >&2
    cat "$scratch/difference" >&2
    exit 1
fi
"${tools}readelf" -d "$build/src/libattnres.so" | grep -q 'soname: \[libattnres\.so\.0\]' || {
    echo "check_symbols: the soname is not libattnres.so.0" >&2
    exit 1
}

"${tools}nm" -g --defined-only "$build/src/libattnres.a" | awk 'NF == 3 {print $3}' \
    >"$scratch/archive"
if [ ! -s "$scratch/archive" ] || grep -v '^attnres_' "$scratch/archive" >&2; then
    echo "check_symbols: the archive has no symbols, or the ones above lack the prefix" >&2
    exit 1
fi
echo "check_symbols: $lines functions exported; $(wc -l <"$scratch/archive") global symbols in" \
    "the archive, all attnres_"
