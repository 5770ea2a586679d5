#!/bin/sh
# Executes the avx512 level on a machine that has no AVX-512: `attnres check` inside an emulated PC.
#
# usage: tools/check_avx512_emulated.sh [--tests]
#
# Builds the project, runs `attnres check` here, then boots a small Linux under the Bochs emulator
# (a Skylake-X processor, which has AVX-512 F, BW, DQ and VL) and runs the very same files there.
# Prints the table from the emulated machine. The exit status is 0 only if the avx512 level really
# ran there for every dtype without a difference and the digest is the one this machine gives.
# With --tests the test program follows on the same emulated machine; it must pass and must have
# tested the avx512 level.
#
# Optional, because slow: about 15 minutes on one core that nothing else uses, with --tests longer.
# It shows that the instructions compute the right bits, not how fast they are, and it trusts Bochs'
# arithmetic, but for one instruction (below); a processor that has AVX-512 is better and needs no
# more than `attnres check`.
#
# Needs a Debian x86-64 system, its package mirror and what the build needs. The packages bochs,
# bochs-term and xorriso are installed if they are missing (by root; otherwise the script says so
# and stops); kernel, boot loader and busybox are only unpacked in a temporary directory, which goes
# away at the end. CC, CFLAGS and LDFLAGS reach the build; ATTNRES_EMULATION_MINUTES is the limit
# (default 60, with --tests 240).
set -eu

fail()
{
    echo "check_avx512_emulated: $*" >&2
    exit 1
}

with_tests=
case "$*" in
'') ;;
--tests) with_tests=yes ;;
*) fail "usage: $0 [--tests]" ;;
esac
[ "$(uname -m)" = x86_64 ] || fail "needs an x86-64 machine"
minutes=${ATTNRES_EMULATION_MINUTES:-$([ "$with_tests" ] && echo 240 || echo 60)}

source=$(cd "$(dirname "$0")/.." && pwd)
work=$(mktemp -d)
emulator=
clean_up()
{
    [ -z "$emulator" ] || kill "$emulator" 2>/dev/null || :
    rm -rf "$work"
}
trap clean_up EXIT
trap 'exit 1' HUP INT TERM

# ---- Packages ------------------------------------------------------------------------------

missing=
for package in bochs bochs-term xorriso; do
    dpkg-query -W -f '${Status}\n' "$package" 2>/dev/null | grep -q ' installed$' ||
        missing="$missing $package"
done
if [ -n "$missing" ]; then
    [ "$(id -u)" = 0 ] || fail "please install:$missing"
    apt-get update -q >"$work/apt.log" 2>&1 || :
    # shellcheck disable=SC2086 # words
    DEBIAN_FRONTEND=noninteractive apt-get install -q -y --no-install-recommends $missing \
        >>"$work/apt.log" 2>&1 || { cat "$work/apt.log" >&2; fail "cannot install:$missing"; }
fi
kernel=$(apt-cache depends linux-image-cloud-amd64 | awk '$1 == "Depends:" { print $2; exit }')
[ -n "$kernel" ] || fail "no package linux-image-cloud-amd64 (apt-get update?)"
mkdir "$work/packages" "$work/unpacked"
(cd "$work/packages" &&
    apt-get -q -o APT::Sandbox::User="$(id -un)" download "$kernel" busybox-static isolinux \
        syslinux-common >"$work/apt.log" 2>&1) ||
    { cat "$work/apt.log" >&2; fail "cannot download (apt-get update?)"; }
for package in "$work"/packages/*.deb; do
    dpkg -x "$package" "$work/unpacked"
done
busybox=$work/unpacked/bin/busybox

# ---- The build, and the answer of this machine -----------------------------------------------

# Bochs 2.7 rounds float to half wrongly where, and only where, the float lies half-way between two
# halves and the lower one is even: it takes the upper one (all half-way values and their neighbours
# were tried). This build moves such a float to the next one towards zero before the instruction,
# which a correct processor turns into the same half.
cat >"$work/half_way.h" <<'END'
#if defined(__F16C__)
#include <immintrin.h>
#include <stdint.h>

static inline void half_way_down(uint32_t *bits, int count)
{
    for (int i = 0; i < count; i++) {
        const uint32_t exponent = bits[i] >> 23 & 255;
        const uint32_t dropped = exponent >= 113 ? 13 : 126 - exponent; /* bits of the significand */
        const uint32_t significand = (bits[i] & 0x7fffff) | 0x800000;
        if (dropped <= 24 &&
            (significand & (((uint32_t)2 << dropped) - 1)) == (uint32_t)1 << (dropped - 1)) {
            bits[i]--;
        }
    }
}

static inline __m128i half_way_256(__m256 v)
{
    uint32_t bits[8];
    _mm256_storeu_si256((__m256i *)bits, _mm256_castps_si256(v));
    half_way_down(bits, 8);
    v = _mm256_castsi256_ps(_mm256_loadu_si256((const __m256i *)bits));
    return _mm256_cvtps_ph(v, _MM_FROUND_TO_NEAREST_INT);
}
#undef _mm256_cvtps_ph
#define _mm256_cvtps_ph(v, rounding) half_way_256(v)

#if defined(__AVX512F__)
static inline __m256i half_way_512(__m512 v)
{
    uint32_t bits[16];
    _mm512_storeu_si512(bits, _mm512_castps_si512(v));
    half_way_down(bits, 16);
    v = _mm512_castsi512_ps(_mm512_loadu_si512(bits));
    return _mm512_cvtps_ph(v, _MM_FROUND_TO_NEAREST_INT);
}
#undef _mm512_cvtps_ph
#define _mm512_cvtps_ph(v, rounding) half_way_512(v)
#endif
#endif
END
build=$work/build
export CFLAGS="${CFLAGS:-} -include $work/half_way.h"
if ! { meson setup "$build" "$source" -Davx512=enabled -Dprogram=enabled \
    -Dtests="$([ "$with_tests" ] && echo enabled || echo disabled)" &&
    meson compile -C "$build"; } >"$work/build.log" 2>&1; then
    tail -n 40 "$work/build.log" >&2
    fail "the build failed"
fi
status=0
"$build/attnres" check >"$work/native" || status=$?
digest=$(grep '^digest ' "$work/native") || fail "no digest from this machine"
echo "this machine: $digest, exit status $status"
[ "$status" = 0 ] || fail "attnres check fails on this machine already"

# ---- The emulated machine's files -------------------------------------------------------------
# Everything has the path it has here, so that run paths and test data are found.

root=$work/root
mkdir -p "$root/bin" "$root/proc" "$root/dev" "$root/tmp"
cp "$busybox" "$root/bin/busybox"
put()
{
    mkdir -p "$root$(dirname "$1")"
    cp -RL "$1" "$root$1"
}
put_program() # and the shared libraries that it loads
{
    put "$1"
    for library in $(ldd "$1" | grep -o '/[^ ]*'); do
        [ -e "$root$library" ] || put "$library"
    done
}
put_program "$build/attnres"
tests_command=:
if [ -n "$with_tests" ]; then
    put_program "$build/tests/attnres-tests"
    put "$source/tests"
    tests_command="told tests '$build/tests/attnres-tests'"
fi
cat >"$root/init" <<END
#!/bin/busybox sh
busybox=/bin/busybox
\$busybox mount -t proc proc /proc
\$busybox mount -t devtmpfs devtmpfs /dev
exec </dev/null >/dev/ttyS0 2>&1
told()
{
    what=\$1
    shift
    "\$@" 2>&1
    echo "status of \$what: \$?"
}
cd /tmp
export ATTNRES_TEST_DATA='$source/tests' ATTNRES_PROGRAM='$build/attnres'
export ATTNRES_TEST_QUICK=1 CK_TIMEOUT_MULTIPLIER=1000
# The pipes make the output plain text: a terminal would be shown progress.
told info '$build/attnres' info | \$busybox tee info
if \$busybox grep -q '^  *avx512  *built, usable' info; then
    told check '$build/attnres' check | \$busybox cat
    $tests_command | \$busybox cat
fi
exec >/dev/null 2>&1
\$busybox sleep 2 # of the emulated clock, until the serial line has sent everything
\$busybox poweroff -f
END
chmod +x "$root/init"

disc=$work/disc
mkdir -p "$disc/isolinux"
cp "$work/unpacked/usr/lib/ISOLINUX/isolinux.bin" \
    "$work/unpacked/usr/lib/syslinux/modules/bios/ldlinux.c32" "$disc/isolinux"
cp "$work"/unpacked/boot/vmlinuz-* "$disc/vmlinuz"
(cd "$root" && find . | "$busybox" cpio -o -H newc 2>/dev/null) >"$disc/initrd"
# noxsaves and clearcpuid: the kernel would find Bochs 2.7's sizes of compact XSAVE areas wrong and
# turn all of AVX off.
cat >"$disc/isolinux/isolinux.cfg" <<'END'
default attnres
prompt 0
label attnres
 kernel /vmlinuz
 initrd /initrd
 append console=ttyS0,115200 quiet mitigations=off random.trust_cpu=on noxsaves clearcpuid=xsavec
END
xorriso -as mkisofs -quiet -o "$work/disc.iso" -b isolinux/isolinux.bin -c isolinux/boot.cat \
    -no-emul-boot -boot-load-size 4 -boot-info-table "$disc" >"$work/disc.log" 2>&1 ||
    { cat "$work/disc.log" >&2; fail "cannot write the boot disc"; }

# ---- The emulated machine -----------------------------------------------------------------------

cat >"$work/bochsrc" <<END
display_library: term
romimage: file=/usr/share/bochs/BIOS-bochs-latest
vgaromimage: file=/usr/share/bochs/VGABIOS-lgpl-latest
cpu: model=corei7_skylake_x, count=1, ips=50000000
memory: guest=1024, host=1024
clock: sync=none
ata0-master: type=cdrom, path=$work/disc.iso, status=inserted
boot: cdrom
com1: enabled=1, mode=file, dev=$work/serial
log: $work/bochs.log
panic: action=fatal
error: action=ignore
info: action=ignore
END
echo continue >"$work/bochs.rc" # Debian's Bochs starts in its debugger

echo "emulating (no more than $minutes minutes)"
: >"$work/serial"
TERM=vt100 timeout -k 5 "${minutes}m" bochs -q -f "$work/bochsrc" -rc "$work/bochs.rc" \
    </dev/null >"$work/screen" 2>&1 &
emulator=$!
# Powering off ends Bochs; a kernel that stops does not.
while kill -0 "$emulator" 2>/dev/null; do
    ! grep -q 'Kernel panic' "$work/serial" || break
    sleep 2
done
kill "$emulator" 2>/dev/null || :
wait "$emulator" || :
emulator=

# ---- The verdict --------------------------------------------------------------------------------

tr -d '\r' <"$work/serial" | grep -v '^ *$' | tee "$work/output"
said()
{
    grep -q "$1" "$work/output" || fail "$2"
}
said '^status of check: ' "the emulated machine did not finish (limit: $minutes minutes)"
for dtype in f32 f64 f16 bf16; do
    said "^avx512  *$dtype  *[1-9][0-9]* cases, 0 differences, " \
        "the avx512 level differs, or did not run, for $dtype"
done
said '^status of check: 0$' "attnres check fails on the emulated machine"
said "^$digest\$" "the emulated machine's digest is not this machine's"
if [ -n "$with_tests" ]; then
    said '^level avx512  *tested' "the tests did not run the avx512 level"
    said '^status of tests: 0$' "the tests fail on the emulated machine"
fi
echo "avx512 ran, emulated: no difference, and the digest of this machine"
