"""What all peers share: check against the library, then time both in turns and write rows."""

from __future__ import annotations

import argparse
import gc
import importlib
import json
import os
import statistics
import sys
import time
from pathlib import Path
from typing import Callable, Protocol


class Absent(Exception):
    """This peer cannot run here; the text says why."""


class Peer(Protocol):
    name: str  # takes the level's place in row names
    needs: tuple[str, ...]  # modules
    dtypes: tuple[str, ...]

    def version(self) -> str: ...

    def prepare(self, problem, threads: int) -> tuple[Callable[[], object], Callable[[], object]]:
        """A call to be timed, and one that gives its result as f32 numpy array. Raises Absent
        for a dtype that the framework cannot do."""
        ...


REPETITIONS = 9
MIN_SECONDS = 0.1
NOISY = 0.05
ABSENT_STATUS = 3  # of a script whose peer cannot run here
ATTEMPTS = 3  # a shape whose two measurements of the library differ by more is measured again


def seconds_of(call: Callable[[], object], iterations: int) -> tuple[float, float]:
    cpu = time.process_time()
    begin = time.perf_counter()
    for _ in range(iterations):
        call()
    end = time.perf_counter()
    return (end - begin) / iterations, (time.process_time() - cpu) / iterations


def iterations_for(call: Callable[[], object]) -> int:
    call()
    once, _ = seconds_of(call, 1)
    if once < MIN_SECONDS / 10:
        once, _ = seconds_of(call, 10)
    return max(1, int(MIN_SECONDS / once))


def interleaved(calls: list[Callable[[], object]]) -> list[tuple[int, list[tuple[float, float]]]]:
    """For each call its iterations and its repetitions' (real, CPU) seconds. Every round runs
    all of them, the next one in the opposite order."""
    counts = [iterations_for(call) for call in calls]
    times: list[list[tuple[float, float]]] = [[] for _ in calls]
    gc.collect()
    gc.disable()
    for repetition in range(REPETITIONS):
        order = range(len(calls)) if repetition % 2 == 0 else reversed(range(len(calls)))
        for i in order:
            calls[i]()  # the others had the caches in between
            times[i].append(seconds_of(calls[i], counts[i]))
    gc.enable()
    return list(zip(counts, times))


def rows_of(name: str, label: str, counters: dict[str, float],
            iterations: int, times: list[tuple[float, float]]) -> list[dict]:
    """The repetitions and aggregates as Google Benchmark writes them."""
    common = {"run_name": name, "repetitions": len(times), "threads": 1, "time_unit": "ns"}
    rows: list[dict] = []
    for index, (real, cpu) in enumerate(times):
        rows.append({"name": name, **common, "run_type": "iteration", "repetition_index": index,
                     "iterations": iterations, "real_time": real * 1e9, "cpu_time": cpu * 1e9,
                     "label": label})
    for aggregate, function in (("mean", statistics.mean), ("median", statistics.median),
                                ("stddev", statistics.stdev)):
        row = {"name": f"{name}_{aggregate}", **common, "run_type": "aggregate",
               "aggregate_name": aggregate, "aggregate_unit": "time", "iterations": len(times),
               "real_time": function([real for real, _ in times]) * 1e9,
               "cpu_time": function([cpu for _, cpu in times]) * 1e9, "label": label}
        rows.append(row | counters if aggregate == "median" else row)
    return rows


def median_seconds(times: list[tuple[float, float]]) -> float:
    return statistics.median(real for real, _ in times)


def spread(times: list[tuple[float, float]]) -> float:
    """(third quartile - first) / median."""
    low, middle, high = statistics.quantiles([real for real, _ in times], n=4, method="inclusive")
    return (high - low) / middle


def measured(ours: Callable[[], object], theirs: Callable[[], object]) -> tuple:
    """The library's (iterations, times), the peer's, and the noise: how far the library's two
    medians are apart."""
    for _ in range(ATTEMPTS):
        mine, peer, again = interleaved([ours, theirs, ours])
        medians = median_seconds(mine[1]), median_seconds(again[1])
        noise = max(medians) / min(medians) - 1
        if noise <= NOISY:
            break
    return mine, peer, noise


class Session:
    def __init__(self, peer: Peer, library, threads: int) -> None:
        self.peer, self.library, self.threads = peer, library, threads
        self.rows: list[dict] = []
        self.skipped: list[str] = []
        self.noise = 0.0

    def check(self, problem, ours, result: Callable[[], object]) -> None:
        import problem as problems

        first = min(problem.tokens, 4)
        ours.run()
        mine = problem.widened(ours.out)
        tolerance = problems.TOLERANCE[problem.dtype]
        pairs = (
            ("attnres and the formula in double", mine[:first], problems.reference(problem, first)),
            (f"{self.peer.name} and attnres", result(), mine),
        )
        for what, got, expected in pairs:
            difference = problems.relative_difference(got, expected)
            if not difference <= tolerance:
                raise RuntimeError(f"{what} differ by {difference:g} ({problem.dtype}, "
                                   f"{problem.tokens} tokens; {tolerance:g} is allowed)")

    def shape(self, dtype: str, tokens: int) -> None:
        import library
        import machine
        import problem as problems

        problem = problems.make_problem(dtype, tokens)
        call, result = self.peer.prepare(problem, self.threads)
        ours = library.Read(self.library, dtype, problem.x, problem.query, problem.eps,
                            self.threads)
        self.check(problem, ours, result)
        mine, theirs, noise = measured(ours.run, call)
        self.noise = max(self.noise, noise)
        ours.close()

        text = f"tokens:{tokens}/width:{problems.WIDTH}/sources:{problems.SOURCES}"
        text += f"/threads:{self.threads}" if self.threads > 1 else ""
        moved = problem.bytes_read + problem.bytes_written
        label = machine.regime(moved)
        mine_median, their_median = median_seconds(mine[1]), median_seconds(theirs[1])
        for level, (iterations, times), used in (
            (self.library.level, mine, ours.threads), (self.peer.name, theirs, self.threads)
        ):
            counters = {"bytes_per_second": moved / median_seconds(times),
                        "bytes_read": problem.bytes_read, "bytes_written": problem.bytes_written,
                        "working_set_bytes": moved, "quartile_spread": spread(times)}
            if self.threads > 1:
                counters["host_threads"] = used
            if level == self.library.level:
                counters[f"ratio_to_{self.peer.name}"] = their_median / mine_median
            self.rows += rows_of(f"read/{dtype}/{level}/{text}", label, counters, iterations, times)
        print(f"{self.peer.name}: {dtype} {text}: {their_median * 1e6:.1f} us, "
              f"attnres {mine_median * 1e6:.1f} us, A/A {noise:.1%}", file=sys.stderr)

    def run(self, tokens: tuple[int, ...]) -> None:
        for dtype in ("f32", "bf16"):
            if dtype not in self.peer.dtypes:
                self.skipped.append(f"{self.peer.name}/{dtype}: the framework has no such read")
                continue
            try:
                for count in tokens:
                    self.shape(dtype, count)
            except Absent as reason:
                self.skipped.append(f"{self.peer.name}/{dtype}: {reason}")

    def context(self, core: int | None) -> dict[str, object]:
        import machine

        return machine.context() | {
            "kind": "peers",  # our rows here only serve the ratios
            "library_version": self.library.version,
            "level": self.library.level,
            "level_reason": self.library.level_reason,
            "levels": self.library.level,
            "peers": self.peer.name,
            "peer_versions": f"{self.peer.name}: {self.peer.version()}",
            "rows_skipped": "; ".join(self.skipped) or "none",
            "pinned_core": "none" if core is None else str(core),
            "repetitions": str(REPETITIONS),
            "min_time": f"{MIN_SECONDS:.3f}",
            "interleaved": "yes",
            "noise": f"{self.noise:.4f}",
            "noisy": "yes" if self.noise > NOISY else "no",
            "emulated": "no",
            "smoke": "no",
        }


def write_json(path: Path, context: dict[str, object], rows: list[dict]) -> None:
    unfinished = path.with_name(path.name + ".unfinished")
    unfinished.write_text(json.dumps({"context": context, "benchmarks": rows}, indent=1) + "\n")
    unfinished.replace(path)


def limit_threads(threads: int) -> int | None:
    """Before the framework is imported. One thread is one core, whatever pools it makes."""
    os.environ["OMP_NUM_THREADS"] = str(threads)
    if threads > 1:
        return None
    core = max(os.sched_getaffinity(0))
    os.sched_setaffinity(0, {core})
    return core


def missing(peer: Peer) -> str:
    for module in (*peer.needs, "numpy"):
        try:
            importlib.import_module(module)
        except Exception as error:  # a broken installation counts as an absent one
            return f"{module} cannot be imported: {str(error).splitlines()[0][:120]}"
    return ""


def main(peer: Peer) -> None:
    parser = argparse.ArgumentParser(description=f"times {peer.name} against attnres")
    parser.add_argument("--library", help="libattnres.so")
    parser.add_argument("--out", type=Path, help="Google-Benchmark-shaped JSON")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--tokens", type=int, nargs="+", help="instead of the default row counts")
    parser.add_argument("--probe", action="store_true", help="print the version, or why not")
    options = parser.parse_args()
    core = limit_threads(options.threads)
    try:
        if reason := missing(peer):
            raise Absent(reason)
        version = peer.version()
    except Absent as reason:
        print(reason)
        sys.exit(ABSENT_STATUS)
    if options.probe:
        print(version)
        return
    if options.library is None or options.out is None:
        parser.error("--library and --out are needed")

    import library
    import problem as problems

    session = Session(peer, library.Library(options.library), options.threads)
    session.run(tuple(options.tokens or problems.TOKENS))
    if not session.rows:
        print("; ".join(session.skipped))
        sys.exit(ABSENT_STATUS)
    write_json(options.out, session.context(core), session.rows)
