"""The same tables for a README or a pull request."""

from __future__ import annotations

import report_tables as tables
from report_model import Machine, Model
from report_text import Table, markdown_text


def _notices(model: Model) -> str:
    return "".join(f"> {markdown_text(text)}\n>\n" for text in model.notices).removesuffix(">\n")


def _summary(machine: Machine) -> str:
    lead = machine.lead
    parts = [f"{lead.text('cores')} cores", f"level {lead.text('level')}",
             f"attnres {lead.text('library_version')} at commit {lead.text('commit')}",
             lead.text("compiler"), lead.text("date")]
    if not machine.meaningless:
        parts.append(lead.noise_text())
    if lead.text("virtualised") == "yes":
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
                   tables.peers(machine, only_main=True)]
    return _join(pieces)
