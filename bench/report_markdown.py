"""The same tables for a README or a pull request."""

from __future__ import annotations

import report_tables as tables
from report_model import Machine, Model
from report_text import Table, markdown_text


def _notices(model: Model) -> str:
    return "".join(f"> {markdown_text(text)}\n>\n" for text in model.notices).removesuffix(">\n")


def _summary(machine: Machine) -> str:
    newest = machine.current[-1]
    parts = [f"{newest.text('cores')} cores", f"level {newest.text('level')}",
             f"attnres {newest.text('library_version')} at commit {newest.text('commit')}",
             newest.text("compiler"), newest.text("date"), newest.noise_text()]
    if newest.text("virtualised") == "yes":
        parts.insert(1, "virtualised")
    return markdown_text(", ".join(parts)) + ".\n"


def _join(pieces: list[str | Table | None]) -> str:
    texts = [piece.markdown() if isinstance(piece, Table) else piece for piece in pieces if piece]
    return "\n".join(texts)


def document(model: Model) -> str:
    pieces: list[str | Table | None] = ["# attnres benchmarks\n", _notices(model)]
    comparison = model.comparison()
    if comparison and comparison.rows:
        pieces.append(tables.compare_machines(comparison))
    for machine in model.machines:
        pieces += [f"## {markdown_text(machine.name)}\n", _summary(machine)]
        if machine.meaningless:
            pieces.append(f"**{markdown_text(machine.meaningless)}**\n")
        else:
            pieces += [tables.results(machine), tables.peers(machine), tables.trend(machine)]
        pieces.append(tables.levels(machine))
        pieces += [tables.context(run) for run in machine.runs]
    return _join(pieces)


def table(model: Model) -> str:
    """What docs/benchmarks.md shows: the best level's rows and the peers, no more."""
    pieces: list[str | Table | None] = [_notices(model)]
    for machine in model.meaningful():
        pieces += [f"**{markdown_text(machine.name)}**: {_summary(machine)}"]
        pieces += [tables.results(machine, only_best=True) if machine.own_runs else None,
                   tables.peers(machine)]
    return _join(pieces)
