#!/usr/bin/env python3
"""Makes what fixtures/ holds.

    make_fixtures.py make             the invented machines
    make_fixtures.py record IN OUT    a real result, with the medians alone
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

FIXTURES = Path(__file__).resolve().parent / "fixtures"
SYNTHETIC = "synthetic: numbers made up for tests, measured nowhere"

CACHES = {"L1": 48 << 10, "L2": 2 << 20, "L3": 32 << 20}
ROOFS = {"L1": 180e9, "L2": 90e9, "L3": 45e9, "DRAM": 20e9}  # bytes per second
FMA = {"scalar": 4e9, "avx2": 48e9, "avx512": 90e9, "neon": 20e9}  # f32, per second
EFFICIENCY = {"scalar": 0.2, "avx2": 0.7, "avx512": 0.85, "neon": 0.7}
PEERS = {"peer-c": 8.0, "peer-c-native-fastmath": 3.5, "peer-torch-eager": 30.0, "peer-jax": 6.0}


def regime(size: float) -> str:
    return next((name for name, limit in CACHES.items() if size <= limit), "DRAM")


def median(name: str, seconds: float, label: str = "", **counters: float) -> dict:
    return {"name": f"{name}_median", "run_name": name, "run_type": "aggregate",
            "repetitions": 9, "threads": 1, "aggregate_name": "median", "aggregate_unit": "time",
            "iterations": 9, "real_time": seconds * 1e9, "cpu_time": seconds * 1e9,
            "time_unit": "ns", **({"label": label} if label else {}), **counters}


def fma_rows(levels: tuple[str, ...]) -> list[dict]:
    return [median(f"roof_fma/f32/{level}/registers", 1e-4, operations_per_second=FMA[level])
            for level in levels]


def read_rows(levels: tuple[str, ...], dtype: str, tokens: int, width: int, sources: int,
              factor: float) -> list[dict]:
    element = {"f32": 4, "bf16": 2}[dtype]
    shape = f"tokens:{tokens}/width:{width}/sources:{sources}"
    read, written = tokens * width * sources * element, tokens * width * element
    operations = 3.0 * tokens * width * sources
    place = regime(read + written)
    roof = ROOFS[place]
    rows = [median(f"roof_read/{dtype}/{levels[-1]}/{shape}", read / roof, place,
                   bytes_per_second=roof, bytes_read=read, bytes_written=0)]
    best = 0.0
    for level in levels:
        arithmetic = operations / FMA[level]
        seconds = factor * max((read + written) / roof, arithmetic) / EFFICIENCY[level]
        rate = (read + written) / seconds
        rows.append(median(
            f"read/{dtype}/{level}/{shape}", seconds, place, bytes_per_second=rate,
            bytes_read=read, bytes_written=written, working_set_bytes=read + written,
            quartile_spread=0.01, roof_bytes_per_second=roof, roof_fraction=rate / roof,
            arithmetic_bytes_per_second=(read + written) / arithmetic,
            limit_fraction=rate / min(roof, (read + written) / arithmetic)))
        best = seconds
    rows[-1] |= {f"ratio_to_{peer}": ratio for peer, ratio in PEERS.items()}
    rows += [median(f"read/{dtype}/{peer}/{shape}", best * ratio, place)
             for peer, ratio in PEERS.items()]
    return rows


def rows(levels: tuple[str, ...], factor: float = 1.0) -> list[dict]:
    found = fma_rows(levels)
    for dtype, many in (("f32", 512), ("bf16", 2048)):
        for tokens, width in ((1, 512), (1, 7168), (16, 7168), (many, 7168)):
            found += read_rows(levels, dtype, tokens, width, 9, factor)
    return found


def sweep_rows(levels: tuple[str, ...]) -> list[dict]:
    found = []
    for width in (64, 128, 256, 1024, 2048, 4096, 8192, 16384):
        found += read_rows(levels, "f32", 1, width, 9, 1.0)
    return found


def context(**extra: str) -> dict:
    return {
        "date": "2026-01-10T12:00:00+00:00", "host_name": "fixture", "executable": "attnres-bench",
        "num_cpus": 8, "mhz_per_cpu": 3000, "cpu_scaling_enabled": False, "caches": [],
        "load_avg": [0.1, 0.1, 0.1], "library_build_type": "release",
        "synthetic": SYNTHETIC, "cpu": "Invented CPU 9000 (a fixture)", "cores": "8",
        "cache_l1_bytes": str(CACHES["L1"]), "cache_l2_bytes": str(CACHES["L2"]),
        "cache_l3_bytes": str(CACHES["L3"]), "commit": "aaaaaaaaaaaa", "compiler": "gcc 12.2.0",
        "flags": "buildtype=release", "library_version": "0.1.0", "governor": "performance",
        "page_mode": "the system's choice", "pinned_core": "2", "repetitions": "9",
        "level": "avx512", "level_reason": "avx512 is the highest level that build, CPU and system "
        "support", "levels": "scalar, avx2, avx512", "levels_skipped": "none",
        "peers": ", ".join(PEERS),
        "peers_absent": "ggml: pkg-config found none when this was built",
        "rows_skipped": "none", "noise": "0.0040", "cpu_share": "0.998", "noisy": "no",
        "emulated": "no", "smoke": "no", **extra,
    }


def write(name: str, found: dict, benchmarks: list[dict]) -> None:
    lines = ",\n".join(json.dumps(row) for row in benchmarks)
    text = f'{{"context": {json.dumps(found, indent=1)},\n"benchmarks": [\n{lines}\n]}}\n'
    (FIXTURES / name).write_text(text, encoding="utf-8")


def make() -> None:
    levels = ("scalar", "avx2", "avx512")
    write("invented-old.json", context(), rows(levels, 1.3))
    write("invented-new.json",
          context(date="2026-02-20T12:00:00+00:00", commit="bbbbbbbbbbbb"),
          rows(levels) + sweep_rows(levels))
    write("emulated.json",
          context(host_name="emulator", cpu="implementer 0x41, part 0xd0c", level="neon",
                  level_reason="neon is the highest level that build, CPU and system support",
                  levels="scalar, neon", emulated="yes, timings meaningless"),
          rows(("scalar", "neon"), 50.0))


def record(source: str, target: str) -> None:
    document = json.loads(Path(source).read_text(encoding="utf-8"))
    benchmarks = [row for row in document["benchmarks"] if row.get("aggregate_name") == "median"]
    document["context"]["host_name"] = "recorded"
    write(Path(target).name, document["context"], benchmarks)


if __name__ == "__main__":
    if sys.argv[1:] == ["make"]:
        make()
    elif sys.argv[1:2] == ["record"] and len(sys.argv) == 4:
        record(*sys.argv[2:])
    else:
        sys.exit(__doc__)
