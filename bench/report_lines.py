"""The plots over something: commits, sizes, machines."""

from __future__ import annotations

from report_figures import bars, row_label
from report_model import Comparison, Machine, in_order, is_main
from report_plot import INK, MARKS, Plot, new_figure, other_colour
from report_read import Row
from report_text import plain

POINTS_MIN = 5  # fewer are no sweep


def trend(machine: Machine) -> Plot | None:
    """The best level's time relative to the oldest commit that has the row."""
    commits = machine.trend()
    if not commits:
        return None
    lines: dict[tuple, list[tuple[int, float]]] = {}
    for at, (_, rows) in enumerate(commits):
        for key, row in rows.items():
            if row.contender == machine.best and is_main(row) and \
                    (row.kernel == "read" and row.dtype in ("f32", "bf16") or
                     row.kernel.startswith("k3")):
                lines.setdefault(key, []).append((at, row.seconds))
    lines = {key: points for key, points in lines.items() if len(points) > 1}
    if not lines:
        return None
    figure, axes = new_figure(3.2)
    legend = []
    last = commits[-1][1]
    for i, (key, points) in enumerate(lines.items()):
        row = last.get(key) or next(rows[key] for _, rows in commits if key in rows)
        legend.append((MARKS[i % len(MARKS)], other_colour(i), row_label(row, kernel=True)))
        axes.plot([at for at, _ in points], [time / points[0][1] for _, time in points],
                  color=other_colour(i), marker=MARKS[i % len(MARKS)], ms=4, lw=1.2)
    axes.axhline(1, color=INK, lw=0.8)
    axes.set_xticks(range(len(commits)), [plain(commit)[:7] for commit, _ in commits],
                    rotation=0 if len(commits) < 6 else 60)
    axes.margins(x=0.1)
    axes.set_ylim(bottom=0)
    axes.set(ylabel="time / the oldest commit's")
    return Plot(figure, legend)


def compare_machines(comparison: Comparison) -> Plot | None:
    colours = {machine.name: other_colour(i) for i, machine in enumerate(comparison.machines)}
    first = {what: (rows[0], rows) for what, rows in comparison.rows}
    shown = in_order([row for row, _ in first.values() if is_main(row) and row.kernel == "read"
                      and row.dtype in ("f32", "bf16")])
    groups = []
    for row in shown:
        members = [(machine.name, other.counter("bytes_per_second") / 1e9)
                   for machine, other in zip(comparison.machines, first[row.what][1])
                   if other.counter("bytes_per_second") > 0]
        groups.append((row_label(row).removesuffix(row.regime).strip(), members))
    return bars(groups, colours, "read at each machine's best level: GB/s", values="{:.1f}")


# ---- Sweeps --------------------------------------------------------------------------------


def sizes(shape: str) -> dict[str, int] | None:
    """"tokens:1/width:64" as numbers; None if there are other words in it."""
    found: dict[str, int] = {}
    for word in shape.split("/"):
        name, _, number = word.partition(":")
        if not number.isdecimal() or int(number) == 0:
            return None
        found[name] = int(number)
    return found


def sweeps(machine: Machine) -> dict[str, dict[str, list[tuple[int, float]]]]:
    """Swept size to lines of (size, ns per element that is read)."""
    families: dict[tuple, list[tuple[int, Row, dict[str, int]]]] = {}
    for row in machine.ours():
        numbers = sizes(row.shape) if row.kernel == "read" else None
        if row.contender != machine.best or not numbers or "sources" not in numbers:
            continue
        for name, number in numbers.items():
            rest = tuple((other, value) for other, value in numbers.items() if other != name)
            families.setdefault((row.dtype, name, rest), []).append((number, row, numbers))
    found: dict[str, dict[str, list[tuple[int, float]]]] = {}
    for (dtype, name, rest), members in families.items():
        if len(members) < POINTS_MIN:
            continue
        label = f"{dtype}, " + ", ".join(f"{other} {value}" for other, value in rest)
        found.setdefault(name, {})[label] = sorted(
            (number, row.seconds * 1e9 / (sized["tokens"] * sized["width"] * sized["sources"]))
            for number, row, sized in members)
    return found


def sweep(name: str, lines: dict[str, list[tuple[int, float]]]) -> Plot:
    figure, axes = new_figure(3.0)
    for i, (label, points) in enumerate(lines.items()):
        axes.plot([x for x, _ in points], [y for _, y in points], color=other_colour(i),
                  marker=MARKS[i % len(MARKS)], ms=4, lw=1.2)
    ticks: list[int] = []
    for x in sorted({x for points in lines.values() for x, _ in points}):
        if not ticks or x >= 1.4 * ticks[-1]:
            ticks.append(x)
    axes.set_xscale("log", base=2)
    axes.set_xticks(ticks, [str(tick) for tick in ticks], rotation=45 if len(ticks) > 6 else 0)
    axes.minorticks_off()
    axes.set_ylim(bottom=0)
    axes.set(xlabel=plain(name, 30), ylabel="ns per element read")
    return Plot(figure, [(MARKS[i % len(MARKS)], other_colour(i), label)
                         for i, label in enumerate(lines)])
