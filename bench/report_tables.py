"""What the page shows as numbers."""

from __future__ import annotations

from report_model import Comparison, Machine, in_order, is_main, is_main_threaded
from report_read import Row, Run
from report_text import (Table, fraction_text, rate_text, ratio_text, shape_text, three_digits,
                         time_text)

WORDS = ["kernel", "dtype", "level", "shape", "in"]


def words_of(row: Row) -> list[str]:
    return [row.kernel, row.dtype, row.contender, shape_text(row.shape), row.regime]


def results(machine: Machine, only_best: bool = False) -> Table:
    """Every row of the library, with both roofs; or the best level's rows of the default run."""
    table = Table("Results", [*WORDS, "time", "GB/s", "of memory roof", "of arithmetic roof",
                              "spread", "vs scalar"], len(WORDS))
    times = machine.times_scalar()
    for row in in_order(machine.ours()):
        if only_best and (row.contender != machine.best or not is_main(row)):
            continue
        spread = row.counter("quartile_spread")
        table.rows.append([
            *words_of(row), time_text(row.seconds), rate_text(row.counter("bytes_per_second")),
            fraction_text(row.counter("roof_fraction")),
            fraction_text(row.counter("arithmetic_fraction")),
            f"{100 * spread:.0f} %" if spread else "",
            ratio_text(times.get((*row.what, row.contender)))])
    return table


def peers(machine: Machine, only_main: bool = False) -> Table | None:
    ratios, names = machine.peers(), machine.peer_names()
    if not names:
        return None
    note = (f"A peer's time / that of attnres at level {machine.best}, measured in turns in one "
            "run. Above 1: attnres is faster.")
    versions = dict.fromkeys(run.context["peer_versions"] for run in machine.sources()
                             if "peer_versions" in run.context)
    if versions:
        note += f" Versions: {'; '.join(versions)}."
    table = Table("Peers", ["kernel", "dtype", "shape", "in", *names], 4, note=note)
    found = {row.what: row for run in machine.sources() for row in run.rows
             if row.is_ours and row.contender == machine.best and row.what in ratios}
    for row in in_order(list(found.values())):
        if only_main and not is_main_threaded(row):
            continue
        table.rows.append([row.kernel, row.dtype, shape_text(row.shape), row.regime,
                           *(ratio_text(ratios[row.what].get(name)) for name in names)])
    return table


def roofs(machine: Machine) -> Table | None:
    table = Table("Roofs", ["roof", "dtype", "level", "shape", "in", "GB/s"], 5)
    for row in machine.rows():
        if row.is_roof and row.counter("bytes_per_second"):
            table.rows.append([*words_of(row), rate_text(row.counter("bytes_per_second"))])
    for (level, dtype), rate in machine.fma_rates().items():
        table.rows.append(["multiply-adds, G/s", dtype, level, "registers", "",
                           three_digits(rate / 1e9)])
    return table if table.rows else None


def compare_machines(comparison: Comparison) -> Table:
    machines = comparison.machines
    heads = []
    for machine in machines:
        noisy = ", noisy" if machine.noisy else ""
        heads += [f"{machine.name} ({machine.best}{noisy})", "GB/s", "of memory roof"]
    table = Table("Machine against machine", ["kernel", "dtype", "shape", *heads], 3,
                  note="Only rows that every machine has, each at its best level.")
    first = {what: rows for what, rows in comparison.rows}
    for row in in_order([rows[0] for rows in first.values()]):
        cells = [row.kernel, row.dtype, shape_text(row.shape)]
        for other in first[row.what]:
            cells += [time_text(other.seconds), rate_text(other.counter("bytes_per_second")),
                      fraction_text(other.counter("roof_fraction"))]
        table.rows.append(cells)
    return table


def trend(machine: Machine) -> Table | None:
    commits = machine.trend()
    if not commits:
        return None
    table = Table("Commits", [*WORDS[:4], *(commit for commit, _ in commits)], 4,
                  note="Times, oldest commit first.")
    every: dict[tuple, Row] = {}
    for _, rows in commits:
        every.update(rows)
    for row in in_order(list(every.values())):
        times = [rows.get((*row.what, row.contender)) for _, rows in commits]
        if sum(time is not None for time in times) > 1:
            table.rows.append([*words_of(row)[:4],
                               *(time_text(time.seconds) if time else "" for time in times)])
    return table


def levels(machine: Machine) -> Table:
    """Which ran, which did not and why, in the words of each file."""
    table = Table("Levels and peers", ["file", "level", "levels run", "levels skipped", "peers run",
                                       "peers absent", "rows skipped", "noise"], 8)
    for run in machine.runs:
        keys = ("levels", "levels_skipped", "peers", "peers_absent", "rows_skipped")
        level = f"{run.text('level')}: {run.text('level_reason')}"
        table.rows.append([run.name, level, *(run.text(key) for key in keys), run.noise_text()])
    return table


FIRST_KEYS = ("cpu", "host_name", "cores", "commit", "date", "library_version", "level",
              "level_reason", "levels", "levels_skipped", "compiler", "flags", "level_flags",
              "noise", "noisy", "emulated")


def context(run: Run) -> Table:
    keys = [*(key for key in FIRST_KEYS if key in run.context),
            *sorted(key for key in run.context if key not in FIRST_KEYS)]
    return Table(f"Context of {run.name}", ["key", "value"], 2,
                 [[key.replace("_", " "), run.context[key]] for key in keys])
