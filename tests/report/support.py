"""What the tests of the report share: running it, and reading what it wrote."""

from __future__ import annotations

import io
import json
import os
import sys
import tempfile
import unittest
from contextlib import redirect_stderr, redirect_stdout
from html.parser import HTMLParser
from pathlib import Path
from typing import NamedTuple
from unittest.mock import patch

ROOT = Path(__file__).resolve().parent.parent.parent
REPORT = ROOT / "bench" / "report.py"
sys.path.insert(0, str(REPORT.parent))
import report  # noqa: E402

FIXTURES = Path(__file__).resolve().parent / "fixtures"
INVENTED = FIXTURES / "invented-new.json"
INVENTED_OLD = FIXTURES / "invented-old.json"
RECORDED = FIXTURES / "recorded-avx2.json"
RECORDED_SCALAR = FIXTURES / "recorded-scalar.json"
RECORDED_PEERS = FIXTURES / "recorded-peers.json"
EMULATED = FIXTURES / "emulated.json"
ALL = (INVENTED_OLD, INVENTED, RECORDED, RECORDED_SCALAR, RECORDED_PEERS, EMULATED)

VOID = {"meta", "link", "br"}


class Outline(HTMLParser):
    """Tags, attributes and text of a page; complains about tags that do not close."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str]]] = []
        self.words: list[str] = []
        self.open: list[str] = []
        self.feed(text)
        self.close()
        if self.open:
            raise AssertionError(f"not closed: {self.open}")

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, {name: value or "" for name, value in attrs}))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, {name: value or "" for name, value in attrs}))

    def handle_endtag(self, tag: str) -> None:
        if not self.open or self.open.pop() != tag:
            raise AssertionError(f"closes nothing: {tag}")

    def handle_data(self, data: str) -> None:
        self.words.append(data)

    @property
    def text(self) -> str:
        return " ".join(" ".join(self.words).split())

    def values(self, name: str) -> list[str]:
        return [attributes[name] for _, attributes in self.tags if name in attributes]


class Done(NamedTuple):
    stdout: str
    stderr: str


class Case(unittest.TestCase):
    def setUp(self) -> None:
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.directory = Path(directory.name)

        self.addCleanup(os.chdir, os.getcwd())
        os.chdir(self.directory)

    def report(self, *arguments: object, status: int = 0) -> Done:
        """In this process: loading the plotting library takes longer than most tests."""
        with patch.object(sys, "argv", ["report", *map(str, arguments)]), \
                redirect_stdout(io.StringIO()) as out, redirect_stderr(io.StringIO()) as err:
            try:
                report.main()
                code: object = 0
            except SystemExit as end:
                code = end.code or 0
        self.assertEqual(code, status, err.getvalue())
        return Done(out.getvalue(), err.getvalue())

    def page(self, *files: object) -> str:
        self.report(*files, "-o", "page.html")
        return (self.directory / "page.html").read_text(encoding="utf-8")

    def changed(self, source: Path, name: str, change) -> Path:
        """A copy of a fixture, after change(document)."""
        document = json.loads(source.read_text(encoding="utf-8"))
        change(document)
        path = self.directory / name
        path.write_text(json.dumps(document), encoding="utf-8")
        return path


class WithPage(Case):
    """With the page of all fixtures, made once."""

    @classmethod
    def setUpClass(cls) -> None:
        with tempfile.TemporaryDirectory() as directory:
            path = Path(directory) / "page.html"
            arguments = ["report", *map(str, ALL), "-o", str(path)]
            with patch.object(sys, "argv", arguments), redirect_stdout(io.StringIO()), \
                    redirect_stderr(io.StringIO()) as err:
                report.main()
            cls.html, cls.said = path.read_text(encoding="utf-8"), err.getvalue()


def section(page: str, title: str) -> str:
    """The part of the page under this heading."""
    for part in page.split("<section")[1:]:
        if f"<h2>{title}</h2>" in part:
            return part.split("</section>")[0]
    raise AssertionError(f"no section {title}")


def figures(part: str) -> list[str]:
    return [piece.split('"')[0] for piece in part.split('<figure class="')[1:]]
