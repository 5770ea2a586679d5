#!/bin/sh
# Proves that code of a level cannot run before the level was chosen, and that loading the library
# runs none of our code:
#
# - level objects have no initialisers, no writable data, no thread-local data, no addresses that
#   the loader must fill in, and call nothing but memcpy, memset, memmove, fma and each other;
# - no object of the library has an initialiser, an ifunc, or asks the compiler's run-time library
#   about the CPU;
# - the shared library has no text relocation, no executable stack, and needs libc and libm only.
#
# usage: check_objects.sh BUILD_DIRECTORY [PREFIX_OF_BINUTILS]      e.g. aarch64-linux-gnu-
set -eu
build=$1
tools=${2:-}
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
faults=0
fault() {
    echo "check_objects: $*" >&2
    faults=$((faults + 1))
}

# Prints the lines of standard input that match; a pattern that nothing matches is no failure.
lines_like() { grep -E "$1" || true; }

levels=0
for object in "$build"/src/libattnres_*_*.a.p/*.o; do
    levels=$((levels + 1))
    # Section headers are "[ n] name type address offset size ..."; empty sections do not count.
    "${tools}readelf" -SW "$object" | sed 's/^ *\[ *[0-9]*\] *//' |
        awk '$5 ~ /^0*$/ {next} {print $1}' >"$scratch/sections"
    bad=$(lines_like '^\.(init_array|fini_array|preinit_array|ctors|dtors|init|fini|data|bss|tdata|tbss)(\.|$)' \
        <"$scratch/sections")
    [ -z "$bad" ] || fault "$object has" "$bad"
    bad=$(lines_like '^\.rela?\.(data|init_array|tdata)' <"$scratch/sections")
    [ -z "$bad" ] || fault "$object must be relocated at run time:" "$bad"
    bad=$("${tools}nm" --undefined-only "$object" | awk '{print $NF}' |
        grep -vxE 'memcpy|memset|memmove|fma|_GLOBAL_OFFSET_TABLE_|attnres_[a-z0-9_]*' || true)
    [ -z "$bad" ] || fault "$object refers to" "$bad"
done
[ "$levels" -ge 20 ] || fault "only $levels level objects found in $build/src"

for object in "$build"/src/libattnres*.p/*.o; do
    bad=$("${tools}readelf" -SW "$object" | lines_like ' \.(init_array|preinit_array|ctors)')
    [ -z "$bad" ] || fault "$object has an initialiser:" "$bad"
done

library=$build/src/libattnres.so
for file in "$library" "$build/src/libattnres.a"; do
    "${tools}readelf" -sW "$file" 2>/dev/null >"$scratch/symbols"
    bad=$(lines_like ' IFUNC |__cpu_model|__cpu_indicator_init|__aarch64_have_lse|__init_cpu_features' \
        <"$scratch/symbols")
    [ -z "$bad" ] || fault "$file:" "$bad"
done
"${tools}readelf" -dW "$library" >"$scratch/dynamic"
bad=$(lines_like 'TEXTREL' <"$scratch/dynamic")
[ -z "$bad" ] || fault "$library has text relocations"
bad=$(lines_like 'NEEDED' <"$scratch/dynamic" | grep -vE '\[(libc|libm|ld-linux[^]]*|libpthread)\.so' ||
    true)
[ -z "$bad" ] || fault "$library needs more than libc and libm:" "$bad"
bad=$("${tools}readelf" -rW "$library" | awk '$3 ~ /^R_/ {print $3}' | sort -u |
    grep -vE '_(RELATIVE|GLOB_DAT|JUMP_SLOT?|64|ABS64)$' || true)
[ -z "$bad" ] || fault "$library has relocations of type" "$bad"
"${tools}readelf" -lW "$library" | grep -E 'GNU_STACK.* RW +0x' >/dev/null ||
    fault "$library wants an executable stack"

[ "$faults" -eq 0 ] || exit 1
echo "check_objects: $levels level objects, no initialisers, nothing to relocate"
