"""The plots of one machine. Each function gives None where there is nothing to draw."""

from __future__ import annotations

from typing import Callable

from report_model import Machine, in_order, is_main
from report_plot import INK, Plot, level_colour, new_figure, other_colour
from report_read import LEVELS, Row
from report_text import plain, shape_text

REGIMES = {"L1": "o", "L2": "s", "L3": "^", "DRAM": "D"}
# Longer names before their beginnings.
PEERS = ("autovec", "peer-c-native", "peer-c", "peer-jax", "peer-onnx", "peer-torch-compile",
         "peer-torch-eager")
BAR = 0.145  # inches of figure per bar

Groups = list[tuple[str, list[tuple[str, float]]]]  # (label, [(series, value)])


def accumulator(dtype: str) -> str:
    return "f64" if dtype == "f64" else "f32"


def row_label(row: Row, kernel: bool = False) -> str:
    name = f"{row.kernel} " if kernel else ""
    return plain(f"{name}{row.dtype}  {shape_text(row.shape)}  {row.regime}", 60)


def main_reads(machine: Machine) -> list[Row]:
    return in_order([row for row in machine.ours() if row.kernel == "read" and is_main(row)])


def plain_ticks(axis, unit: str = "") -> None:
    """Numbers on a logarithmic axis; the default is a formula, which is not parsed here."""
    axis.set_major_formatter(lambda value, _: f"{value:g}{unit}")
    axis.set_minor_formatter(lambda value, _: "")


# ---- Roofline ------------------------------------------------------------------------------


def intensity(row: Row, rates: dict[tuple[str, str], float]) -> float:
    """Multiply-adds per byte that has to move; 0 if unknown."""
    moved = row.counter("bytes_read") + row.counter("bytes_written")
    if row.counter("operations") and moved:
        return row.counter("operations") / moved
    arithmetic = row.counter("arithmetic_bytes_per_second")
    return rates.get((row.contender, accumulator(row.dtype)), 0) / arithmetic if arithmetic else 0


def memory_roofs(machine: Machine) -> dict[str, float]:
    """Per regime the fastest plain read of the run."""
    roofs: dict[str, float] = {}
    for row in machine.rows():
        if row.kernel.startswith("roof_read") and row.regime and "threads:" not in row.shape:
            rate = row.counter("bytes_per_second")
            roofs[row.regime] = max(roofs.get(row.regime, 0), rate)
    return {regime: roofs[regime] for regime in (*REGIMES, "unknown") if roofs.get(regime)}


def roofline(machine: Machine) -> Plot | None:
    rates = machine.fma_rates()
    points = [(row, x) for row in main_reads(machine)
              if accumulator(row.dtype) == "f32" and (x := intensity(row, rates)) > 0]
    roofs = memory_roofs(machine)
    if not points or not roofs:
        return None
    figure, axes = new_figure(4.0)
    low, high = min(x for _, x in points) / 8, max(x for _, x in points) * 5
    top = max([rate for (_, dtype), rate in rates.items() if dtype == "f32"] or [0])
    for regime, rate in roofs.items():
        end = min(high, top / rate) if top else high
        axes.plot([low, end], [low * rate / 1e9, end * rate / 1e9], color=INK, lw=0.9, alpha=0.65,
                  marker=REGIMES.get(regime, "x"), markevery=[0], mfc="none", ms=6)
    for (level, dtype), rate in rates.items():
        if dtype == "f32":
            axes.plot([low, high], [rate / 1e9] * 2, color=level_colour(level), lw=1.1, ls="--")
            axes.annotate(f"{level} arithmetic", (high, rate / 1e9), (0, 3), ha="right",
                          textcoords="offset points", fontsize=7.5, color=level_colour(level))
    for row, x in points:
        y = x * row.counter("bytes_per_second") / 1e9
        axes.plot(x, y, marker=REGIMES.get(row.regime, "x"), ms=5, ls="", alpha=0.9,
                  color=level_colour(row.contender), mew=0)
    dtypes: dict[float, list[str]] = {}
    for row, x in points:
        names = dtypes.setdefault(round(x, 3), [])
        names += [row.dtype] if row.dtype not in names else []
    axes.set(xscale="log", yscale="log", xlabel="multiply-adds per byte moved",
             ylabel="G multiply-adds/s")
    plain_ticks(axes.xaxis)
    plain_ticks(axes.yaxis)
    bottom = axes.get_ylim()[0] / 1.8
    axes.set_ylim(bottom=bottom)
    for x, names in dtypes.items():
        axes.annotate(", ".join(names), (x, bottom), (0, 3), textcoords="offset points",
                      ha="center", fontsize=8)
    levels = [level for level in LEVELS if any(row.contender == level for row, _ in points)]
    legend = [("o", level_colour(level), level) for level in levels]
    legend += [(REGIMES.get(regime, "x"), INK, f"{regime}: {rate / 1e9:.0f} GB/s")
               for regime, rate in roofs.items()]
    return Plot(figure, legend)


# ---- Bars ----------------------------------------------------------------------------------


def bars(groups: Groups, colours: dict[str, str], xlabel: str, log: bool = False,
         values: str = "{:.2f}", gap: float = 1) -> Plot | None:
    """Horizontal bars, top to bottom."""
    groups = [(label, members) for label, members in groups if members]
    if not groups:
        return None
    count = sum(len(members) + gap for _, members in groups)
    figure, axes = new_figure(max(1.8, 0.75 + BAR * count))
    y = 0.0
    ticks, labels = [], []
    for label, members in groups:
        ticks.append(y + (len(members) - 1) / 2)
        labels.append(label)
        for series, value in members:
            left = 1.0 if log else 0.0
            axes.barh(y, value - left, left=left, height=0.9, color=colours[series], lw=0)
            axes.annotate(values.format(value), (max(value, left), y), (3, 0), va="center",
                          textcoords="offset points", fontsize=8)
            y += 1
        y += gap
    axes.set_yticks(ticks, labels)
    axes.set_ylim(y - gap - 0.2 + (gap - 1) / 2, -0.8)
    axes.set_xlabel(xlabel)
    axes.grid(False, axis="y")
    if log:
        axes.set_xscale("log")
        axes.axvline(1, color=INK, lw=0.8)
        least = min(value for _, members in groups for _, value in members)
        most = max(value for _, members in groups for _, value in members)
        axes.set_xlim(min(1, least) / 1.05, max(most, 1) * 2)
        plain_ticks(axes.xaxis, "x")
    else:
        axes.set_xlim(0, axes.get_xlim()[1] * 1.06)
    used = dict.fromkeys(series for _, members in groups for series, _ in members)
    return Plot(figure, [("s", colours[name], name) for name in used])


def by_level(rows: list[Row], value: Callable[[Row], float]) -> Groups:
    groups: dict[tuple, tuple[str, list[tuple[str, float]]]] = {}
    for row in rows:
        _, members = groups.setdefault(row.what, (row_label(row), []))
        if (number := value(row)) > 0:
            members.append((row.contender, number))
    for _, members in groups.values():
        members.sort(key=lambda member: LEVELS.index(member[0]))
    return list(groups.values())


def level_colours(machine: Machine) -> dict[str, str]:
    return {level: level_colour(level) for level in machine.levels()}


def fractions(machine: Machine, groups: Groups, xlabel: str, gap: float = 1) -> Plot | None:
    plot = bars(groups, level_colours(machine), xlabel, gap=gap)
    if plot is not None:
        plot.figure.axes[0].axvline(1, color=INK, lw=0.8)
    return plot


def read_fractions(machine: Machine) -> Plot | None:
    groups = by_level(main_reads(machine), lambda row: row.counter("roof_fraction"))
    return fractions(machine, groups, "read: fraction of the memory roof")


def other_fractions(machine: Machine) -> Plot | None:
    rows = in_order([row for row in machine.ours() if row.kernel != "read" and is_main(row)
                     and row.contender == machine.best])
    groups = []
    for row in rows:
        label = plain(f"{row.kernel} {row.dtype}", 34)
        label += "\n" + plain(f"{shape_text(row.shape)}  {row.regime}", 40)
        if (fraction := row.counter("limit_fraction")) > 0:
            groups.append((label, [(row.contender, fraction)]))
    return fractions(machine, groups, "fraction of the lower roof", gap=1.7)


def levels(machine: Machine) -> Plot | None:
    times = machine.times_scalar()
    groups = by_level(main_reads(machine), lambda row: times.get((*row.what, row.contender), 0))
    return bars(groups, level_colours(machine), "read: times as fast as scalar", log=True,
                values="{:.1f}")


def peer_colours(names: list[str]) -> dict[str, str]:
    """A known peer's colour is the same for every machine."""
    known = [next((i for i, start in enumerate(PEERS) if name.startswith(start)), len(PEERS))
             for name in names]
    return {name: other_colour(at) for name, at in zip(names, known)}


def peers(machine: Machine, dtype: str) -> Plot | None:
    colours = peer_colours(machine.peer_names())
    ratios = machine.peers()
    best = {row.what: row for run in machine.sources() for row in run.rows
            if row.is_ours and row.contender == machine.best}
    rows = in_order([best[what] for what in ratios
                     if what[:2] == ("read", dtype) and is_main(best[what])])
    groups = [(shape_text(row.shape) + f"  {row.regime}",
               sorted(ratios[row.what].items(), key=lambda item: item[1])) for row in rows]
    return bars(groups, colours, f"read, {dtype}: a peer's time / attnres ({machine.best})",
                log=True, values="{:.1f}")
