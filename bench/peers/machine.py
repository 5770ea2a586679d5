"""The machine, in the words of the benchmark's own context, so that the report joins the files."""

from __future__ import annotations

import datetime
import os
import socket
import subprocess
from pathlib import Path

CACHES = Path("/sys/devices/system/cpu/cpu0/cache")


def _text(path: Path) -> str:
    try:
        return path.read_text().strip()
    except OSError:
        return ""


def cpu_name() -> str:
    values: dict[str, str] = {}
    for line in _text(Path("/proc/cpuinfo")).splitlines():
        key, _, value = line.partition(":")
        values.setdefault(key.strip(), " ".join(value.split()))
    if values.get("model name"):
        return values["model name"]
    if "CPU implementer" in values and "CPU part" in values:
        return f"implementer {values['CPU implementer']}, part {values['CPU part']}"
    return "unknown"


def cache_bytes() -> dict[int, int]:
    """Level to bytes of one core's data cache."""
    sizes: dict[int, int] = {}
    for index in sorted(CACHES.glob("index*")):
        size = _text(index / "size")
        if _text(index / "type") != "Instruction" and size.endswith("K"):
            sizes[int(_text(index / "level"))] = int(size[:-1]) << 10
    return sizes


def regime(working_set: int) -> str:
    sizes = sorted(cache_bytes().items())
    if not sizes:
        return "unknown"
    return next((f"L{level}" for level, size in sizes if working_set <= size), "DRAM")


def virtualised() -> str:
    for line in _text(Path("/proc/cpuinfo")).splitlines():
        if line.startswith("flags"):
            return "yes" if "hypervisor" in line.split() else "no"
    return "unknown"


def commit() -> str:
    here = Path(__file__).resolve().parent
    command = ["git", "-C", str(here), "describe", "--always", "--abbrev=12", "--dirty"]
    try:
        answer = subprocess.run(command, capture_output=True, text=True, check=False)
    except OSError:
        return "unknown"
    return answer.stdout.strip() or "unknown"


def context() -> dict[str, object]:
    caches = cache_bytes()
    governor = _text(Path("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"))
    found: dict[str, object] = {
        "date": datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds"),
        "host_name": socket.gethostname(),
        "executable": "bench/peers",
        "num_cpus": os.cpu_count(),
        "cpu": cpu_name(),
        "cores": str(os.cpu_count()),
        "memory_bytes": str(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")),
        "governor": governor or "unknown",
        "virtualised": virtualised(),
        "kernel": f"{os.uname().sysname} {os.uname().release}",
        "commit": commit(),
        "load_avg": list(os.getloadavg()),
    }
    for level in (1, 2, 3):
        found[f"cache_l{level}_bytes"] = str(caches.get(level, "unknown"))
    return found
