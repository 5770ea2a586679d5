#!/usr/bin/env python3
"""Runs every Python peer that can run here, names the others, and writes one JSON file for each
number of threads: their noise is not the same.

A peer runs in the first interpreter that can import what it needs: build-peers (filled by
--install), the one that runs this script, Debian's. Each is checked against the library before it
is timed, and timed in turns with the library in the same process; ratios are made of those pairs.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path

from measure import ABSENT_STATUS, NOISY

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
VENV = ROOT / "build-peers"  # not in build/, which ./run makes anew now and then
SCRIPTS = ("torch_eager.py", "torch_compile.py", "onnxruntime_peer.py", "jax_peer.py")
PACKAGES = ("numpy", "onnx", "onnxruntime", "jax")


def fail(text: str) -> None:
    print(f"attnres: {text}", file=sys.stderr)
    sys.exit(2)


def interpreters() -> list[str]:
    found = [str(VENV / "bin" / "python"), sys.executable, "/usr/bin/python3"]
    return [path for path in dict.fromkeys(found) if os.access(path, os.X_OK)]


def install(packages: list[str]) -> None:
    if not (VENV / "bin" / "python").exists():
        made = subprocess.run([sys.executable, "-m", "venv", str(VENV)], check=False)
        if made.returncode != 0:
            fail(f"cannot make {VENV.relative_to(ROOT)}; on Debian this needs python3-venv")
    pip = [str(VENV / "bin" / "python"), "-m", "pip", "install", "--quiet"]
    for package in packages:  # one by one: not every machine has wheels of all of them
        if subprocess.run([*pip, package], check=False).returncode != 0:
            print(f"attnres: {package} cannot be installed; its peer will be absent",
                  file=sys.stderr)


@dataclass
class Outcome:
    context: dict = field(default_factory=dict)  # of the first run
    rows: dict[str, dict] = field(default_factory=dict)  # by name
    versions: dict[str, str] = field(default_factory=dict)
    absent: dict[str, str] = field(default_factory=dict)
    skipped: list[str] = field(default_factory=list)
    noise: float = 0.0
    failed: bool = False

    def add(self, path: Path) -> None:
        document = json.loads(path.read_text())
        context = document["context"]
        self.context = self.context or context
        peer, _, version = context["peer_versions"].partition(": ")
        self.versions[peer] = version
        self.noise = max(self.noise, float(context["noise"]))
        if context["rows_skipped"] != "none":
            self.skipped += context["rows_skipped"].split("; ")
        for index, row in enumerate(document["benchmarks"]):
            # The library's rows are in every file. The first stays, with the ratios of all.
            name = f"{row['name']} {index if row['run_type'] == 'iteration' else ''}"
            kept = self.rows.setdefault(name, row)
            kept.update({key: value for key, value in row.items() if key.startswith("ratio_to_")})

    def document(self) -> dict:
        context = self.context | {
            "peers": ", ".join(self.versions),
            "peer_versions": "; ".join(f"{peer}: {text}" for peer, text in self.versions.items()),
            "peers_absent": "; ".join(f"{n}: {why}" for n, why in self.absent.items()) or "none",
            "rows_skipped": "; ".join(dict.fromkeys(self.skipped)) or "none",
            "pinned_core": "one core for one thread, none for more",
            "noise": f"{self.noise:.4f}",
            "noisy": "yes" if self.noise > NOISY else "no",
        }
        return {"context": context, "benchmarks": list(self.rows.values())}


class Runner:
    def __init__(self, library: Path, seconds: float) -> None:
        self.library = library
        self.ends_at = time.monotonic() + seconds

    def call(self, command: list[str]) -> tuple[int, str]:
        left = self.ends_at - time.monotonic()
        if left <= 0:
            return ABSENT_STATUS, "no time was left for it"
        try:
            done = subprocess.run(command, stdout=subprocess.PIPE, text=True, timeout=left,
                                  check=False)
        except subprocess.TimeoutExpired:
            return ABSENT_STATUS, "no time was left for it"
        return done.returncode, done.stdout.strip()

    def find(self, script: str) -> tuple[str, str]:
        """An interpreter that can run the script, or "" and why there is none."""
        reasons: dict[str, None] = {}
        for interpreter in interpreters():
            status, text = self.call([interpreter, str(HERE / script), "--probe"])
            if status == 0:
                return interpreter, ""
            reasons[(text.splitlines() or ["it does not start"])[-1]] = None
        return "", ", ".join(reasons)

    def measure(self, script: str, interpreter: str, threads: int, outcome: Outcome) -> str:
        """"" or why there are no rows."""
        with tempfile.TemporaryDirectory() as directory:
            out = Path(directory) / "rows.json"
            status, text = self.call([
                interpreter, str(HERE / script), "--library", str(self.library),
                "--out", str(out), "--threads", str(threads)])
            if status == 0:
                outcome.add(out)
                return ""
            if status == ABSENT_STATUS:
                return text.splitlines()[-1] if text else "no rows"
            return f"failed with status {status}"


def peer_name(script: str) -> str:
    return "peer-" + script.removesuffix(".py").removesuffix("_peer").replace("_", "-")


def run(runner: Runner, found: dict[str, tuple[str, str]], threads: int) -> Outcome:
    """What Runner.find gave for each script."""
    outcome = Outcome()
    for script, (interpreter, why) in found.items():
        why = why or runner.measure(script, interpreter, threads, outcome)
        if why:
            outcome.absent[peer_name(script)] = why
            outcome.failed = outcome.failed or why.startswith("failed")
    return outcome


def report(outcome: Outcome, threads: int) -> None:
    for name, why in outcome.absent.items():
        print(f"absent: {name} ({why})")
    for text in dict.fromkeys(outcome.skipped):
        print(f"skipped: {text}")
    print(f"{threads} thread{'s' if threads > 1 else ''}: A/A noise {100 * outcome.noise:.1f} %"
          + (". NOISY: do not compare these numbers" if outcome.noise > NOISY else ""))


def write(outcome: Outcome, path: Path) -> None:
    unfinished = path.with_name(path.name + ".unfinished")
    unfinished.write_text(json.dumps(outcome.document(), indent=1) + "\n")
    unfinished.replace(path)
    print(path)


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="./run peers", description=__doc__)
    parser.add_argument("--out", type=Path, help="default: bench-results/<host>-<date>-peers.json; "
                        "the number of threads is added to further ones")
    parser.add_argument("--library", type=Path, default=ROOT / "build" / "src" / "libattnres.so")
    parser.add_argument("--install", action="store_true",
                        help=f"put {', '.join(PACKAGES)} into build-peers first")
    parser.add_argument("--install-torch", action="store_true",
                        help="also PyTorch 2, for torch.compile: several GB on x86-64")
    parser.add_argument("--only", nargs="+", choices=[peer_name(script) for script in SCRIPTS])
    parser.add_argument("--threads", type=int, nargs="+", help="default: 1 and all cores")
    parser.add_argument("--seconds", type=float, default=240, help="for everything; 240")
    return parser.parse_args()


def main() -> None:
    options = parse()
    if not options.library.exists():
        fail(f"{options.library} is not there; build it first (./run info does)")
    if options.install or options.install_torch:
        install([*PACKAGES, *(["torch"] if options.install_torch else [])])
    stamp = time.strftime("%Y%m%d-%H%M%S", time.gmtime())
    out = options.out or ROOT / "bench-results" / f"{platform.node()}-{stamp}-peers.json"
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=out.parent):
            pass  # now rather than after minutes of measuring
    except OSError as error:
        fail(f"cannot write {out}: {error.strerror}")
    scripts = [s for s in SCRIPTS if not options.only or peer_name(s) in options.only]
    runner = Runner(options.library.resolve(), options.seconds)
    counts = options.threads or sorted({1, len(os.sched_getaffinity(0))})
    found = {script: runner.find(script) for script in scripts}
    outcomes = {threads: run(runner, found, threads) for threads in counts}
    for threads, outcome in outcomes.items():
        report(outcome, threads)
    if not any(outcome.rows for outcome in outcomes.values()):
        fail("no peer can run here; try --install")
    for threads, outcome in outcomes.items():
        if outcome.rows:
            extra = "" if threads == counts[0] else f"-{threads}-threads"
            write(outcome, out.with_stem(out.stem + extra))
    sys.exit(1 if any(outcome.failed for outcome in outcomes.values()) else 0)


if __name__ == "__main__":
    main()
