"""Which rows belong together: files to machines, rows to their like; what must be said about it."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field, replace

from report_read import LEVELS, REPETITIONS_MIN, Row, Run

# Shapes of the default run. With --full there are many more; those are for tables and sweeps.
READ = re.compile(r"tokens:1/width:512/sources:9|tokens:(1|16|512|2048)/width:7168/sources:9")
READ_F64 = re.compile(r"tokens:1/width:256/sources:9|tokens:(1|16|512)/width:7168/sources:9")
OTHER = re.compile(r"tokens:(1|16|512|2048)/width:(512|2304|7168)"
                   r"/(sources:(1|9)|layers:54/block:6|reads:186/rows:1002)")
CONDITIONS = ("compiler", "flags", "library_version", "page_mode", "governor", "pinned_core")


def is_main(row: Row) -> bool:
    shapes = OTHER if row.kernel != "read" else READ_F64 if row.dtype == "f64" else READ
    return shapes.fullmatch(row.shape) is not None


def is_main_threaded(row: Row) -> bool:
    """A main shape with any number of threads: what peers are measured on."""
    return is_main(replace(row, shape=re.sub(r"/threads:\d+$", "", row.shape)))


DTYPES = ("f32", "bf16", "f16", "f64")


def in_order(rows: list[Row]) -> list[Row]:
    """By dtype, then by working set."""
    def order(row: Row) -> tuple:
        dtype = DTYPES.index(row.dtype) if row.dtype in DTYPES else len(DTYPES)
        return (row.kernel, dtype, row.dtype, row.counter("working_set_bytes"), row.shape)

    return sorted(rows, key=order)


@dataclass
class Machine:
    name: str
    runs: list[Run]  # oldest first; all with meaning, or none
    meaningless: str

    @property
    def own_runs(self) -> list[Run]:
        return [run for run in self.runs if not run.of_peers]

    @property
    def current(self) -> list[Run]:
        """The newest run, and those of the same commit: one may be of each level. What bench/peers
        wrote stands in only where there is nothing else."""
        runs = self.own_runs or self.runs
        return [run for run in runs if run.text("commit") == runs[-1].text("commit")]

    @property
    def lead(self) -> Run:
        """Of the current runs the newest one at the highest level: it speaks for the machine."""
        def rank(run: Run) -> int:
            return LEVELS.index(run.text("level")) if run.text("level") in LEVELS else -1

        return max(reversed(self.current), key=rank)

    @property
    def noisy(self) -> bool:
        return any(run.noisy for run in self.current)

    def rows(self) -> list[Row]:
        """Of the current runs, the newest of each row."""
        newest = {(*row.what, row.contender): row for run in self.current for row in run.rows}
        return list(newest.values())

    def ours(self) -> list[Row]:
        return [row for row in self.rows() if row.is_ours]

    def times_scalar(self) -> dict[tuple[str, str, str, str], float]:
        """For each row of a higher level, scalar's time / its own; from one run where it can be."""
        slow = {row.what: row.seconds for row in self.ours() if row.contender == "scalar"}
        return {(*row.what, row.contender):
                row.counter("ratio_to_scalar") or slow[row.what] / row.seconds
                for row in self.ours() if row.contender != "scalar" and row.what in slow}

    def levels(self) -> list[str]:
        present = {row.contender for row in self.ours()}
        return [level for level in LEVELS if level in present]

    @property
    def best(self) -> str:
        levels = self.levels()
        return levels[-1] if levels else ""

    def at_best(self) -> dict[tuple[str, str, str], Row]:
        return {row.what: row for row in self.ours() if row.contender == self.best}

    def peers(self) -> dict[tuple[str, str, str], dict[str, float]]:
        """For each of the best level's rows, peer to its time / ours. Only ratios that were
        measured in one run; a newer run's replaces an older one's."""
        ratios: dict[tuple[str, str, str], dict[str, float]] = {}
        for run in [*self.current, *(run for run in self.runs if run.of_peers)]:
            for row in run.rows:
                if row.is_ours and row.contender == self.best and row.ratios():
                    ratios.setdefault(row.what, {}).update(row.ratios())
        return ratios

    def peer_names(self) -> list[str]:
        return sorted({name for ratios in self.peers().values() for name in ratios})

    def fma_rates(self) -> dict[tuple[str, str], float]:
        """(level, accumulator) to multiply-adds per second."""
        return {(row.contender, row.dtype): row.counter("operations_per_second")
                for row in self.rows() if row.kernel == "roof_fma"}

    def trend(self) -> list[tuple[str, dict[tuple, Row]]]:
        """For each commit, oldest first: its rows by what they are and level, newest of each."""
        commits: dict[str, dict[tuple, Row]] = {}
        for run in self.own_runs:
            rows = commits.setdefault(run.text("commit"), {})
            rows.update({(*row.what, row.contender): row for row in run.rows if row.is_ours})
        return list(commits.items()) if len(commits) > 1 else []

    def sources(self) -> list[Run]:
        """The files whose numbers are shown."""
        return [*self.current, *(run for run in self.runs if run.of_peers and
                                 run not in self.current)]


@dataclass
class Comparison:
    """Rows that every machine has, at each one's best level."""

    machines: list[Machine]
    rows: list[tuple[tuple[str, str, str], list[Row]]]
    alone: list[str]  # rows that not all of them have


@dataclass
class Model:
    machines: list[Machine]
    notices: list[str] = field(default_factory=list)

    def meaningful(self) -> list[Machine]:
        return [machine for machine in self.machines if not machine.meaningless]

    def comparison(self) -> Comparison | None:
        machines = [machine for machine in self.meaningful() if machine.own_runs]
        if len(machines) < 2:
            return None
        tables = [machine.at_best() for machine in machines]
        common = [what for what in tables[0] if all(what in table for table in tables[1:])]
        every = dict.fromkeys(what for table in tables for what in table)
        alone = ["/".join(what) for what in every if what not in common]
        return Comparison(machines, [(what, [table[what] for table in tables]) for what in common],
                          alone)


def _names(groups: dict[tuple, list[Run]]) -> dict[tuple, str]:
    """The CPU, and what else tells them apart."""
    cpus = Counter(runs[0].text("cpu") for runs in groups.values())
    names: dict[tuple, str] = {}
    for key, runs in groups.items():
        cpu, host = runs[0].text("cpu"), runs[0].text("host_name")
        name = cpu if cpu != "unknown" and cpus[cpu] == 1 else f"{cpu} ({host})"
        if runs[0].meaningless:
            name += ", emulated" if runs[0].emulated else ", smoke run"
        while name in names.values():
            name += "'"
        names[key] = name
    return names


def _run_notices(run: Run) -> list[str]:
    notices = []
    if run.meaningless:
        return [f"{run.name}: {run.meaningless}; left out of plots and comparisons"]
    if run.noisy:
        notices.append(f"{run.name} is noisy ({run.noise_text()}): its numbers are shown, but do "
                       "not trust differences between them")
    few = [row for row in run.rows if row.repetitions < REPETITIONS_MIN]
    if few:
        notices.append(f"{run.name}: {len(few)} rows have fewer than {REPETITIONS_MIN} repetitions;"
                       " their medians are not reliable")
    if run.trouble:
        more = f" and {len(run.trouble) - 1} more" if len(run.trouble) > 1 else ""
        notices.append(f"{run.name}: not taken: {run.trouble[0]}{more}")
    if "synthetic" in run.context:
        notices.append(f"{run.name}: {run.text('synthetic')}")
    return notices


def _differences(runs: list[Run], keys: tuple[str, ...]) -> list[str]:
    return [key.replace("_", " ") for key in keys if len({run.text(key) for run in runs}) > 1]


def _machine_notices(machine: Machine) -> list[str]:
    notices = []
    if machine.trend() and (different := _differences(machine.own_runs, CONDITIONS)):
        notices.append(f"{machine.name}: the runs over commits differ in {', '.join(different)}")
    peers = [run for run in machine.runs if run.of_peers]
    commits = {run.text("commit") for run in machine.sources()}
    if peers and len(commits) > 1:
        notices.append(f"{machine.name}: peers were measured at another commit; their ratios are "
                       "to the library as it was then")
    return notices


def _comparison_notices(comparison: Comparison) -> list[str]:
    notices = []
    machines = comparison.machines
    leads = [machine.lead for machine in machines]
    if not comparison.rows:
        notices.append("machines are not compared: no row has the same shape on all of them")
    elif comparison.alone:
        notices.append(f"{len(comparison.alone)} rows are not compared, for not every machine has "
                       f"them: {', '.join(comparison.alone[:3])}"
                       f"{', ...' if len(comparison.alone) > 3 else ''}")
    if len({machine.best for machine in machines}) > 1:
        notices.append("machines are compared at different levels: " + ", ".join(
            f"{machine.name}: {machine.best}" for machine in machines))
    if different := _differences(leads, ("compiler", "flags", "library_version", "commit")):
        notices.append(f"machines are compared with different builds: {', '.join(different)}")
    if noisy := [machine.name for machine in machines if machine.noisy]:
        notices.append("the comparison of machines includes noisy runs: " + ", ".join(noisy))
    return notices


def make_model(runs: list[Run]) -> Model:
    groups: dict[tuple, list[Run]] = {}
    for run in runs:
        groups.setdefault((*run.machine, run.meaningless), []).append(run)
    names = _names(groups)
    model = Model([])
    for key, members in groups.items():
        members.sort(key=lambda run: run.text("date"))
        model.machines.append(Machine(names[key], members, members[0].meaningless))
    model.machines.sort(key=lambda machine: bool(machine.meaningless))
    for run in runs:
        model.notices += _run_notices(run)
    for machine in model.meaningful():
        model.notices += _machine_notices(machine)
    if comparison := model.comparison():
        model.notices += _comparison_notices(comparison)
    return model
