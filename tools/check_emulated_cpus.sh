#!/bin/sh
# Proves, on CPUs that qemu-user imitates: the level is the highest that the CPU can run, no
# instruction is used that it lacks (an illegal one kills the program), and the result is the one
# this machine gives. Each line of the table takes a feature or the operating system's support away.
# (qemu has no AVX-512; tools/check_avx512_emulated.sh is for that.)
#
# usage: check_emulated_cpus.sh BUILD_DIRECTORY
set -eu
attnres=$1/attnres
input=$(dirname "$0")/../tests/data/minilm.safetensors
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

read_with() {
    rm -f "$scratch/out"
    "$@" "$attnres" read "$input" -o "$scratch/out" --block-size 5 >"$scratch/log" 2>&1
}
read_with env
mv "$scratch/out" "$scratch/expected"

count=0
while read -r level cpu; do
    status=0
    read_with qemu-x86_64 -cpu "$cpu" || status=$?
    if [ "$status" -ne 0 ]; then
        cat "$scratch/log" >&2
        echo "check_emulated_cpus: $cpu: exit status $status" >&2
        exit 1
    fi
    cmp "$scratch/out" "$scratch/expected"
    grep -q "level $level\$" "$scratch/log" || {
        echo "check_emulated_cpus: $cpu does not run $level: $(tail -n 1 "$scratch/log")" >&2
        exit 1
    }
    count=$((count + 1))
done <<'END'
scalar Opteron_G1
scalar core2duo
scalar qemu64
scalar Nehalem
scalar SandyBridge
scalar IvyBridge
scalar Opteron_G5
scalar Haswell,-avx
scalar Haswell,-avx2
scalar Haswell,-fma
scalar Haswell,-f16c
scalar Haswell,-xsave
scalar EPYC,-avx
scalar EPYC,-avx2
scalar EPYC,-fma
scalar EPYC,-f16c
scalar EPYC,-xsave
scalar max,-xsave
avx2 Haswell
avx2 Skylake-Client
avx2 EPYC
avx2 max
avx2 max,-bmi1,-bmi2,-abm,-movbe,-popcnt,-sse4a
END
echo "check_emulated_cpus: $count CPUs, each at the level it should, all with this machine's result"
