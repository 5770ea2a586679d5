"""matplotlib's SVG made fit to stand inside a page, several times, light and dark.

Figures are drawn in stand-in colours that no one sees: in the SVG they become the page's CSS
variables, so one picture serves both themes. Ids get the figure's name in front, for a page has
one space of ids. What would refer to the outside (DTD, metadata, namespaces) goes."""

from __future__ import annotations

import io
import re
from dataclasses import dataclass

import matplotlib

matplotlib.use("svg")
import matplotlib.pyplot as pyplot  # noqa: E402
from matplotlib.axes import Axes  # noqa: E402
from matplotlib.figure import Figure  # noqa: E402

from report_text import html_text  # noqa: E402

INK = "#010203"
GRID = "#010204"
SERIES = ("scalar", "avx2", "avx512", "neon", "a", "b", "c", "d", "e", "f", "g", "h")
COLOURS = {name: f"#0102{0x10 + i:02x}" for i, name in enumerate(SERIES)}
CSS = {INK: "currentColor", GRID: "var(--grid)", "#000000": "currentColor",
       "#ffffff": "var(--page)",
       **{colour: f"var(--s-{name})" for name, colour in COLOURS.items()}}

STYLE = {
    "svg.fonttype": "none",  # text stays text
    "text.parse_math": False,  # a "$" in a name is no formula
    "font.family": "sans-serif",
    "font.sans-serif": ["DejaVu Sans"],
    "font.size": 9,
    "axes.titlesize": 9,
    "axes.labelsize": 9,
    "text.color": INK,
    "axes.labelcolor": INK,
    "axes.edgecolor": GRID,
    "xtick.color": INK,
    "ytick.color": INK,
    "grid.color": GRID,
    "grid.linewidth": 0.6,
    "axes.grid": True,
    "axes.axisbelow": True,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "figure.facecolor": "none",
    "axes.facecolor": "none",
    "savefig.facecolor": "none",
}

matplotlib.rcParams.update(STYLE)

WIDTH = 4.4  # inches: a column of the page, and not much wider than a phone


GLYPHS = {"o": "●", "s": "■", "^": "▲", "D": "◆", "v": "▼", "<": "◀", ">": "▶", "x": "×"}
MARKS = "os^Dv<>"


@dataclass
class Plot:
    """A figure, and its legend as (mark, colour, text): in the page it wraps as words do."""

    figure: Figure
    legend: list[tuple[str, str, str]]

    def legend_html(self) -> str:
        return "".join(
            f'<li><span style="color:{CSS[colour]}">{GLYPHS[mark]}</span> {html_text(text)}</li>'
            for mark, colour, text in self.legend)


def level_colour(level: str) -> str:
    return COLOURS.get(level, INK)


def other_colour(index: int) -> str:
    names = [name for name in SERIES if len(name) == 1]
    return COLOURS[names[index % len(names)]]


def new_figure(height: float) -> tuple[Figure, Axes]:
    figure, axes = pyplot.subplots(figsize=(WIDTH, height), layout="constrained")
    axes.tick_params(length=0)
    return figure, axes


def to_svg(figure: Figure, name: str, label: str) -> str:
    buffer = io.StringIO()
    with matplotlib.rc_context({"svg.hashsalt": name}):
        figure.savefig(buffer, format="svg", metadata={"Date": None})
    pyplot.close(figure)
    return inline(buffer.getvalue(), name, label)


def inline(svg: str, name: str, label: str) -> str:
    svg = svg[svg.index("<svg"):]
    svg = re.sub(r"<metadata>.*?</metadata>", "", svg, flags=re.DOTALL)
    svg = re.sub(r"<!--.*?-->", "", svg, flags=re.DOTALL)
    head, rest = svg.split(">", 1)
    width, height = (float(re.search(rf'{side}="([\d.]+)pt"', head)[1])
                     for side in ("width", "height"))
    head = (f'<svg viewBox="0 0 {width:g} {height:g}" role="img" '
            f'style="--width:{width * 4 / 3:.0f}px" aria-label="{html_text(label)}"')
    rest = re.sub(r"\bxlink:href=", "href=", rest)
    rest = re.sub(r'\bid="', f'id="{name}-', rest)
    rest = re.sub(r'\bhref="#', f'href="#{name}-', rest)
    rest = rest.replace("url(#", f"url(#{name}-")
    rest = re.sub(r"font: ([\d.]+)px [^;\"]*", r"font: \1px sans-serif", rest)
    rest = re.sub(r"#[0-9a-f]{6}\b", lambda match: CSS.get(match[0], match[0]), rest)
    return re.sub(r"\n\s*\n+", "\n", f"{head}>{rest}").strip()
