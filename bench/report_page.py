"""The page: one file, no script, nothing loaded from anywhere."""

from __future__ import annotations

from pathlib import Path

import report_figures as figures
import report_lines as lines
import report_tables as tables
from report_model import Machine, Model
from report_plot import Plot, to_svg
from report_text import Table, html_text

STYLE = Path(__file__).with_name("report.css")
POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"  # the browser sees to it

CAPTIONS = {
    "roofline": "Each mark is a read. Lines: the fastest plain read per cache level and the "
                "arithmetic of each instruction set, measured in the same run. f64 is not drawn.",
    "fractions": "GB/s of the bytes a read has to move, over a plain read of the same memory.",
    "others": "Of the memory roof or of the arithmetic one, whichever is lower.",
    "levels": "The same work at each level; every level gives the same bits.",
    "peers": "Bars to the right of 1: the peer takes that many times as long.",
    "trend": "Median times of the best level, oldest commit on the left. Lower is faster.",
    "sweep": "A flat line means that cost grows with the work.",
    "machines": "Only shapes that all of these machines have.",
}


class Page:
    def __init__(self, model: Model) -> None:
        self.model = model
        self.parts: list[str] = []
        self.drawn = 0

    def add(self, text: str) -> None:
        self.parts.append(text)

    def figure(self, kind: str, title: str, plot: Plot | None) -> str:
        if plot is None:
            return ""
        self.drawn += 1
        svg = to_svg(plot.figure, f"{kind}-{self.drawn}", title)
        return (f'<figure class="{kind}"><h3>{html_text(title)}</h3>\n'
                f'<ul class="legend">{plot.legend_html()}</ul>\n{svg}\n'
                f"<figcaption>{html_text(CAPTIONS[kind])}</figcaption></figure>\n")

    def folded(self, table: Table | None) -> None:
        if table is not None and table.rows:
            title = html_text(table.title)
            self.add(f"<details><summary>{title}</summary>{table.html()}</details>")

    def notices(self) -> None:
        if self.model.notices:
            items = "".join(f"<li>{html_text(text)}</li>" for text in self.model.notices)
            self.add(f'<ul class="notices">{items}</ul>')

    def comparison(self) -> None:
        comparison = self.model.comparison()
        if comparison is None:
            return
        self.add('<section id="machines"><h2>Machine against machine</h2>')
        if comparison.rows:
            title = "read, each machine at its best level"
            drawn = self.figure("machines", title, lines.compare_machines(comparison))
            self.add(f'<div class="figures">{drawn}</div>')
            self.folded(tables.compare_machines(comparison))
        else:
            self.add("<p>Nothing to compare: no row has the same shape on all machines.</p>")
        self.add("</section>")

    def plots(self, machine: Machine) -> None:
        drawn = [
            self.figure("roofline", "Roofline", figures.roofline(machine)),
            self.figure("fractions", "Fraction of the roof", figures.read_fractions(machine)),
            self.figure("levels", "Level against level", figures.levels(machine)),
            self.figure("others", "Other kernels", figures.other_fractions(machine)),
        ]
        for dtype in ("f32", "bf16"):
            drawn.append(self.figure("peers", f"Peers, {dtype}", figures.peers(machine, dtype)))
        drawn.append(self.figure("trend", "Trend over commits", lines.trend(machine)))
        for name, points in lines.sweeps(machine).items():
            drawn.append(self.figure("sweep", f"Sweep over {name}", lines.sweep(name, points)))
        self.add(f'<div class="figures">{"".join(drawn)}</div>')

    def machine(self, index: int, machine: Machine) -> None:
        lead = machine.lead
        self.add(f'<section id="machine-{index}"><h2>{html_text(machine.name)}</h2>')
        if badge := machine.meaningless or ("noisy" if machine.noisy else ""):
            self.add(f'<p><span class="badge">{html_text(badge)}</span></p>')
        noise = "" if machine.meaningless else f"; {lead.noise_text()}"
        self.add(f'<p class="dim">{html_text(lead.text("cores"))} cores, level '
                 f'{html_text(lead.text("level"))}, attnres '
                 f'{html_text(lead.text("library_version"))} at commit '
                 f'{html_text(lead.text("commit"))}, {html_text(lead.text("date"))}'
                 f"{html_text(noise)}.</p>")
        self.add(f'<p class="dim">Levels skipped: {html_text(lead.text("levels_skipped"))}</p>')
        if not machine.meaningless:
            self.plots(machine)
            self.folded(tables.results(machine))
            self.folded(tables.peers(machine))
            self.folded(tables.trend(machine))
            self.folded(tables.roofs(machine))
        self.folded(tables.levels(machine))
        for run in machine.runs:
            self.folded(tables.context(run))
        self.add("</section>")

    def html(self) -> str:
        count = sum(len(machine.runs) for machine in self.model.machines)
        self.notices()
        self.comparison()
        for index, machine in enumerate(self.model.machines):
            self.machine(index, machine)
        body = "\n".join(part for part in self.parts if part)
        return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="{POLICY}">
<title>attnres benchmarks</title>
<link rel="icon" href="data:,">
<style>
{STYLE.read_text(encoding="utf-8")}</style>
</head>
<body>
<h1>attnres benchmarks</h1>
<p class="dim">From {count} result file{"s" if count != 1 else ""} of {len(self.model.machines)} \
machine{"s" if len(self.model.machines) != 1 else ""}. Medians of interleaved repetitions.</p>
{body}
</body>
</html>
"""
