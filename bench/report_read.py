"""Google Benchmark's JSON, as the benchmark and its peers write it, read into rows."""

from __future__ import annotations

import json
import math
import statistics
from dataclasses import dataclass, field
from pathlib import Path

LEVELS = ("scalar", "avx2", "avx512", "neon")  # of one architecture: lowest first
REPETITIONS_MIN = 9
SECONDS = {"ns": 1e-9, "us": 1e-6, "ms": 1e-3, "s": 1.0}


class BadInput(Exception):
    """This file, or this wish, cannot be served; the text says why."""


@dataclass
class Row:
    """One row's median. `contender` is a level of the library, a peer, or a roof's level."""

    kernel: str
    dtype: str
    contender: str
    shape: str
    regime: str
    seconds: float
    repetitions: int
    counters: dict[str, float]

    @property
    def what(self) -> tuple[str, str, str]:
        """What rows must have in common to be compared."""
        return (self.kernel, self.dtype, self.shape)

    @property
    def is_roof(self) -> bool:
        return self.kernel.startswith("roof_")

    @property
    def is_ours(self) -> bool:
        return self.contender in LEVELS and not self.is_roof and not self.kernel.startswith("aa_")

    @property
    def is_peer(self) -> bool:
        return self.contender not in LEVELS

    def counter(self, name: str) -> float:
        """0 if there is none."""
        return self.counters.get(name, 0.0)

    def ratios(self) -> dict[str, float]:
        """Peer to its time / this time, from the same run."""
        start = "ratio_to_"
        return {
            name.removeprefix(start): value
            for name, value in self.counters.items()
            if name.startswith(start) and name != start + "scalar" and value > 0
        }


@dataclass
class Run:
    """One file."""

    name: str
    context: dict[str, str]
    rows: list[Row]
    trouble: list[str] = field(default_factory=list)  # rows that were not taken, and why

    def text(self, key: str) -> str:
        return self.context.get(key) or "unknown"

    @property
    def machine(self) -> tuple[str, str, str, bool]:
        return (self.text("host_name"), self.text("cpu"), self.text("num_cpus"), self.emulated)

    @property
    def emulated(self) -> bool:
        return self.text("emulated").startswith("yes") or "qemu" in self.text("cpu").lower()

    @property
    def meaningless(self) -> str:
        """Why its timings mean nothing, or ""."""
        if self.emulated:
            return "emulated, timings meaningless"
        if self.text("smoke").startswith("yes"):
            return "a smoke run, timings meaningless"
        return ""

    @property
    def of_peers(self) -> bool:
        """Written by bench/peers: the library's rows in it only serve the ratios."""
        return self.text("kind") == "peers"

    @property
    def noisy(self) -> bool:
        return self.text("noisy") != "no"

    def noise_text(self) -> str:
        """"A/A noise 2.0 %, 99 % of the core was ours"."""
        try:
            parts = [f"A/A noise {100 * float(self.text('noise')):.1f} %"]
        except ValueError:
            parts = ["A/A noise not measured"]
        try:
            parts.append(f"{100 * float(self.text('cpu_share')):.0f} % of the core was ours")
        except ValueError:
            pass  # older files, and those of peers
        return ", ".join(parts)


def _number(value: object) -> float | None:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value):
        return None
    return float(value)


def _seconds(entry: dict) -> float | None:
    time = _number(entry.get("real_time"))
    unit = SECONDS.get(entry.get("time_unit", "ns"))
    return time * unit if time is not None and unit is not None and time > 0 else None


COMMON_NUMBERS = {"family_index", "per_family_instance_index", "repetitions", "repetition_index",
                  "threads", "iterations", "real_time", "cpu_time"}


def _row(name: str, entries: list[dict]) -> Row | str:
    """The row, or why there is none."""
    parts = name.split("/", 3)
    if len(parts) < 4 or not all(parts):
        return "not a name of this benchmark: <kernel>/<dtype>/<level>/<shape>"
    if any(entry.get("error_occurred") for entry in entries):
        return "it failed: " + str(entries[0].get("error_message", "no reason given"))
    repeated = [entry for entry in entries if entry.get("run_type", "iteration") == "iteration"]
    medians = [entry for entry in entries if entry.get("aggregate_name") == "median"]
    times = [time for time in map(_seconds, repeated) if time is not None]
    chosen = (medians or repeated or entries)[0]
    time = _seconds(chosen) if medians else statistics.median(times) if times else None
    if time is None:
        return "no usable time"
    counters = {key: number for key, value in chosen.items()
                if key not in COMMON_NUMBERS and (number := _number(value)) is not None}
    count = len(times) or int(_number(chosen.get("iterations")) or 0)
    return Row(*parts, str(chosen.get("label", "")) or "", time, count, counters)


def _context(found: dict) -> dict[str, str]:
    texts: dict[str, str] = {}
    for key, value in found.items():
        if isinstance(value, list):
            value = ", ".join(str(item) for item in value if not isinstance(item, (dict, list)))
        if value != "" and not isinstance(value, dict):
            texts[str(key)] = str(value)
    return texts


def read_run(path: Path) -> Run:
    try:
        # A context may hold whatever the system said; one bad byte is no reason to refuse it.
        document = json.loads(path.read_bytes().decode("utf-8", "replace"))
    except OSError as error:
        raise BadInput(f"cannot read {path}: {error.strerror}") from error
    except (ValueError, RecursionError) as error:
        raise BadInput(f"{path} is not JSON: {error}") from error
    if not isinstance(document, dict) or not isinstance(document.get("context"), dict) or \
            not isinstance(document.get("benchmarks"), list):
        raise BadInput(f"{path} is not Google Benchmark's JSON: it has no context and benchmarks")

    entries: dict[str, list[dict]] = {}
    for entry in document["benchmarks"]:
        if not isinstance(entry, dict) or not isinstance(entry.get("name"), str):
            raise BadInput(f"{path} is not Google Benchmark's JSON: a row has no name")
        entries.setdefault(str(entry.get("run_name", entry["name"])), []).append(entry)
    run = Run(path.name, _context(document["context"]), [])
    for name, parts in entries.items():
        row = _row(name, parts)
        if isinstance(row, Row):
            run.rows.append(row)
        else:
            run.trouble.append(f"{name}: {row}")
    if not any(row.is_ours or row.is_peer for row in run.rows):
        first = f" ({run.trouble[0]})" if run.trouble else ""
        raise BadInput(f"{path} has no rows of this benchmark{first}")
    return run
