#!/usr/bin/env python3
"""Proves, from the disassembly of libraries, archives and programs (x86-64):

- outside the kernels of a level (attnres_<name>_<dtype>_avx2 and ..._avx512, with the endings
  compilers give to split-off parts) there is no instruction above the baseline: no ymm, zmm or
  mask register, no VEX or EVEX encoding, nothing of SSE3 or later;
- avx2 kernels use no zmm, no mask register, no register above 15;
- no kernel gathers, scatters, compresses or expands in memory, or uses bf16 or f16 arithmetic;
- a kernel that has used ymm or zmm runs vzeroupper on every way to a return, a call, or a jump
  out of itself.

usage: check_instructions.py FILE...
"""
import re
import subprocess
import sys

LEVEL = re.compile(r"^attnres_[a-z_]+_(?:f32|f64|f16|bf16)_(avx2|avx512)(?:\.[a-z0-9.]+)?$")
WIDE = re.compile(r"%[yz]mm(\d+)")
MASK = re.compile(r"%k[0-7]")
# The first alternative is VEX and EVEX; the lists after it are VEX without a v, then the legacy
# encodings of SSE3, SSSE3 and SSE4.
ABOVE = re.compile(
    r"^(v(?!err|erw|m[a-z]+$)|k[a-z]+[bwdq]$"
    r"|(andn|bextr|blsi|blsmsk|blsr|bzhi|mulx|pdep|pext|rorx|sarx|shlx|shrx)[lq]?$"
    r"|(lddqu|movddup|movs[hl]dup|addsubp[sd]|h(add|sub)p[sd]|ph(add|sub)|pabs|pshufb|palignr"
    r"|psign|pmulhrsw|pmaddubsw|pmulld|pmuldq|pmovsx|pmovzx|p(min|max)(sb|sd|uw|ud)|pblend"
    r"|blendv?p|roundp|rounds|dpp[sd]|ptest|pextr[bdq]|pinsr[bdq]|extractps|insertps|popcnt"
    r"|crc32|movbe|lzcnt))")  # tzcnt is rep bsf, which any CPU runs
FORBIDDEN = re.compile(r"gather|scatter|compress|v?p?expand|bf16|^v(add|sub|mul|div|fn?m[a-z]+\d*)[ps]h$")
ENDS = re.compile(r"^(ret|jmp|ud2|hlt)")
BRANCH = re.compile(r"^(j[a-z]+)")


def functions(path):
    """Name -> [(address, mnemonic, operands)], all same-named parts of one file apart."""
    text = subprocess.run(["objdump", "-d", "--no-show-raw-insn", path], check=True,
                          stdout=subprocess.PIPE, text=True).stdout
    found, code = [], None
    for line in text.splitlines():
        head = re.match(r"^[0-9a-f]+ <(.+)>:$", line)
        row = re.match(r"^\s+([0-9a-f]+):\s+(.*)$", line)
        if head:
            code = []
            found.append((head.group(1), code))
        elif row and code is not None:
            words = re.sub(r"^((notrack|bnd|lock|repz?|repnz|data16|cs|ds|\{evex\}) )+", "",
                           row.group(2).split("#")[0].strip()).split(None, 1)
            if words:
                code.append((int(row.group(1), 16), words[0], words[1] if words[1:] else ""))
    return found


def check_baseline(code):
    for _, name, operands in code:
        if ABOVE.match(name) or WIDE.search(operands) or MASK.search(operands):
            yield f"{name} {operands} in a function without a level"


def check_level(code, level):
    for _, name, operands in code:
        if FORBIDDEN.search(name):
            yield f"{name} is slow or changes bits"
        if level == "avx2" and ("%zmm" in operands or MASK.search(operands)
                                or re.search(r"mm(1[6-9]|2\d|3[01])\b", operands)):
            yield f"{name} {operands} does not exist below avx512"


def check_upper_halves(code):
    """Follows each path with one bit of state: are upper halves of registers 0-15 in use?"""
    place = {address: i for i, (address, _, _) in enumerate(code)}
    after = set()  # (instruction, in use) that has been looked at
    ways = [(0, False)]
    while ways:
        i, used = ways.pop()
        if (i, used) in after or i >= len(code):
            continue
        after.add((i, used))
        _, name, operands = code[i]
        if name in ("vzeroupper", "vzeroall"):
            used = False
        elif any(int(n) < 16 for n in WIDE.findall(operands)):
            used = True
        target = None
        if BRANCH.match(name):
            if operands.startswith("*"):
                yield f"{name} {operands}: an indirect jump is not understood"
                return
            target = place.get(int(operands.split()[0], 16))
        leaves = name.startswith(("ret", "call")) or (BRANCH.match(name) and target is None)
        if leaves and used:
            yield f"{name} {operands} at {code[i][0]:x} without vzeroupper"
        if target is not None:
            ways.append((target, used))
        if not ENDS.match(name):
            ways.append((i + 1, used))


def check(path):
    """Prints what is wrong; returns the counts of kernels and of instructions, and of faults."""
    kernels, instructions, faults = {}, 0, []
    is_archive = path.endswith((".a", ".o"))
    for symbol, code in functions(path):
        instructions += len(code)
        level = LEVEL.match(symbol)
        if not level:
            faults += [f"{symbol}: {fault}" for fault in check_baseline(code)]
            continue
        faults += [f"{symbol}: {fault}" for fault in check_level(code, level.group(1))]
        kernels.setdefault(symbol.split(".")[0], []).append((symbol, code))
    for symbol, parts in kernels.items():
        # The entry first; parts are reached by jumps. In an archive addresses start anew in each
        # section, so there a kernel in several parts is left to the shared library's check.
        parts.sort(key=lambda part: part[0] != symbol)
        if len(parts) == 1 or not is_archive:
            code = [row for _, part in parts for row in part]
            faults += [f"{symbol}: {fault}" for fault in check_upper_halves(code)]
    if instructions < 1000 or not kernels:
        faults.append("nothing to look at")
    for fault in faults[:20]:
        print(f"check_instructions: {path}: {fault}", file=sys.stderr)
    print(f"check_instructions: {path}: {instructions} instructions, {len(kernels)} kernels above "
          f"the baseline, {len(faults)} faults")
    return len(faults)


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    sys.exit(1 if sum([check(path) for path in sys.argv[1:]]) else 0)
