#!/usr/bin/env python3
"""Proves, from compile_commands.json: no file is compiled for the machine at hand or with relaxed
arithmetic, every file of the library is compiled with -ffp-contract=off, and flags for a CPU
feature are given to the objects of a level that names the feature, and to no other.

usage: check_build_flags.py BUILD_DIRECTORY
"""
import json
import re
import shlex
import sys

# Peers in the benchmark are allowed what the library is not.
NEVER = re.compile(r"-(march|mtune|mcpu)=native|-Ofast|-ffast-math|-funsafe-math-optimizations"
                   r"|-ffinite-math-only|-fassociative-math|-ffp-contract=(fast|on)")
FEATURE = re.compile(r"-m(avx|fma|f16c|bmi|sse[34]|ssse|popcnt|xsave|arch=)")
ALLOWED = {"avx2": {"-mavx2", "-mfma", "-mf16c"},
           "avx512": {"-mavx2", "-mfma", "-mf16c", "-mavx512f", "-mavx512bw", "-mavx512dq",
                      "-mavx512vl"}}


def check(entry):
    arguments = shlex.split(entry["command"])
    output = entry.get("output", "")
    level = re.match(r"src/libattnres_([a-z0-9]+)_(f32|f64|f16|bf16)\.a\.p/", output)
    allowed = ALLOWED.get(level.group(1), set()) if level else set()
    in_library = output.startswith("src/")
    if in_library and "-ffp-contract=off" not in arguments:
        yield "no -ffp-contract=off"
    if in_library and "-fno-math-errno" not in arguments:
        yield "no -fno-math-errno"
    for argument in arguments:
        if not output.startswith("bench/") and NEVER.search(argument):
            yield argument
        # Tests compile another architecture's lanes, for whatever CPU that takes.
        if (not output.startswith(("bench/", "tests/")) and FEATURE.match(argument)
                and argument not in allowed):
            yield argument + " outside its level"
    if level and "-flto" in " ".join(arguments):
        yield "link-time optimisation of a level"
    for needed in allowed - set(arguments):
        yield "without " + needed


def main():
    with open(sys.argv[1] + "/compile_commands.json", encoding="utf-8") as file:
        entries = json.load(file)
    library = sum(entry.get("output", "").startswith("src/") for entry in entries)
    faults = [f"{entry['output']}: {fault}" for entry in entries for fault in check(entry)]
    if library < 20:
        faults.append(f"only {library} files of the library found")
    for fault in faults:
        print("check_build_flags:", fault, file=sys.stderr)
    print(f"check_build_flags: {len(entries)} compilations, {library} of the library, "
          f"{len(faults)} faults")
    return 1 if faults else 0


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    sys.exit(main())
