"""Numbers and names as people read them, and the tables made of them, as Markdown and HTML.

Everything that comes from a file is text of strangers: html_text and markdown_text are the only
ways into a page."""

from __future__ import annotations

import html
import re
from dataclasses import dataclass, field

UNPRINTABLE = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]+")
# An underscore inside a word means nothing.
MARKDOWN_SPECIAL = re.compile(r"([\\`*{}\[\]<>#|~$]|(?<![A-Za-z0-9])_|_(?![A-Za-z0-9]))")
LONG = 40  # characters; such cells wrap


def plain(text: str, limit: int = 2000) -> str:
    """One line of printable characters."""
    line = UNPRINTABLE.sub(" ", text).strip()
    return line if len(line) <= limit else line[: limit - 1] + "…"


def html_text(text: str) -> str:
    return html.escape(plain(text), quote=True)


def markdown_text(text: str) -> str:
    escaped = MARKDOWN_SPECIAL.sub(r"\\\1", plain(text))
    # Not a link, a mention or a reference to anything, and no character entity.
    return escaped.replace("&", "&amp;").replace("://", ":\\//").replace("@", "&#64;")


def time_text(seconds: float) -> str:
    for unit, name in ((1.0, "s"), (1e-3, "ms"), (1e-6, "us")):
        if seconds >= unit:
            return f"{three_digits(seconds / unit)} {name}"
    return f"{three_digits(seconds * 1e9)} ns"


def three_digits(value: float) -> str:
    if value >= 1000:
        return f"{value:.0f}"
    return f"{value:.{2 if value < 10 else 1 if value < 100 else 0}f}"


def rate_text(bytes_per_second: float) -> str:
    return f"{bytes_per_second / 1e9:.1f}" if bytes_per_second > 0 else ""


def fraction_text(fraction: float) -> str:
    return f"{fraction:.2f}" if fraction > 0 else ""


def ratio_text(ratio: float | None) -> str:
    return f"{three_digits(ratio)}x" if ratio else ""


def shape_text(shape: str) -> str:
    """"tokens:16/width:7168/sources:9" is "16 x 7168 x 9"; other sizes keep their name."""
    words = (re.sub(r"^(tokens|width|sources):", "", word) for word in shape.split("/"))
    return " x ".join(re.sub(r"^(\w+):(\d+)$", r"\2 \1", word) for word in words)


@dataclass
class Table:
    title: str
    head: list[str]
    words: int  # columns of text; the numbers come after them
    rows: list[list[str]] = field(default_factory=list)
    note: str = ""

    def markdown(self, level: int = 3) -> str:
        lines = [f"{'#' * level} {markdown_text(self.title)}", ""] if level else []
        if self.note:
            lines += [markdown_text(self.note), ""]
        rules = ["---" if i < self.words else "--:" for i in range(len(self.head))]
        for cells in ([markdown_text(cell) for cell in self.head], rules,
                      *([markdown_text(cell) for cell in row] for row in self.rows)):
            lines.append("| " + " | ".join(cells) + " |")
        return "\n".join(lines) + "\n"

    def html(self) -> str:
        def cells(tag: str, values: list[str]) -> str:
            kinds = ("n" if i >= self.words else "long" if len(value) > LONG else ""
                     for i, value in enumerate(values))
            return "".join(
                f'<{tag}{f" class={kind}" if kind else ""}>{html_text(value)}</{tag}>'
                for kind, value in zip(kinds, values))

        body = "\n".join(f"<tr>{cells('td', row)}</tr>" for row in self.rows)
        note = f"<p>{html_text(self.note)}</p>" if self.note else ""
        return (f"{note}<div class=scroll><table><thead><tr>{cells('th', self.head)}</tr></thead>\n"
                f"<tbody>{body}</tbody></table></div>")
