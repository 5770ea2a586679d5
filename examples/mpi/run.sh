#!/bin/sh
# Builds sharded_width.c and runs it on 2, 3 and 4 ranks. Needs an MPI (Debian: libopenmpi-dev
# openmpi-bin).
#
#   examples/mpi/run.sh [BUILD]    against the library in that build directory (default: build, if
#                                  there is one), else against the installed one (pkg-config)
set -eu
here=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd)
root=$here/../..
build=${1:-$root/build}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

if [ -e "$build/src/libattnres.a" ]; then
    build=$(CDPATH='' cd -- "$build" && pwd)
    flags="-I$root/include -L$build/src -Wl,-rpath,$build/src -lattnres"
elif [ $# -eq 0 ] && pkg-config --exists attnres; then
    flags=$(pkg-config --cflags --libs attnres)
else
    echo "run.sh: no library in $build, and none installed" >&2
    exit 2
fi
# shellcheck disable=SC2086 # flags are words
mpicc -std=c11 -Wall -Wextra -O2 "$here/sharded_width.c" $flags -lm -o "$work/sharded_width"

options=--oversubscribe
if [ "$(id -u)" -eq 0 ]; then
    options="$options --allow-run-as-root"
fi
for ranks in 2 3 4; do
    # shellcheck disable=SC2086 # options are words
    mpirun $options -n "$ranks" "$work/sharded_width"
done
