#!/usr/bin/env python3
"""./run report: benchmark results of one or many machines as a page and as Markdown tables."""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import report_markdown
from report_model import Model, make_model
from report_read import BadInput, read_run

DESCRIPTION = """\
Turns JSON files of ./run bench and ./run peers into one HTML page that needs nothing else, and
into Markdown tables. Files of one machine are put together: the newest commit is shown, older ones
make a trend."""


class Parser(argparse.ArgumentParser):
    def error(self, message: str) -> None:
        raise BadInput(f"{message}; see ./run report --help")


def parse(arguments: list[str]) -> argparse.Namespace:
    parser = Parser(prog="./run report", description=DESCRIPTION,
                    formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="+", metavar="FILE", type=Path)
    parser.add_argument("-o", "--output", type=Path, default=Path("report.html"),
                        help="the page; report.html")
    parser.add_argument("--markdown", type=Path, metavar="FILE", help="the tables as well")
    parser.add_argument("--table", action="store_true",
                        help="print only the table that docs/benchmarks.md shows; write nothing")
    return parser.parse_args(arguments)


def check_outputs(options: argparse.Namespace) -> None:
    """Before anything is drawn. An output that is an input would be lost."""
    outputs = [path for path in (options.output, options.markdown) if path is not None]
    write_all({path: "" for path in outputs}, keep=False)
    taken = [path.resolve() for path in options.files]
    for path in outputs:
        if path.resolve() in taken:
            raise BadInput(f"{path} would be written over; it is needed elsewhere")
        taken.append(path.resolve())


def write_all(texts: dict[Path, str], keep: bool = True) -> None:
    """All of them or none: written beside their places first, moved when all are there. Without
    `keep` only to see that it can be done."""
    unfinished: dict[Path, str] = {}
    path = Path()
    try:
        for path, text in texts.items():
            if path.is_dir():
                raise BadInput(f"cannot write {path}: it is a directory")
            handle, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
            unfinished[path] = name
            with os.fdopen(handle, "w", encoding="utf-8", errors="replace") as file:
                file.write(text)
            os.chmod(name, 0o644)
        for path, name in list(unfinished.items()) if keep else []:
            os.replace(name, path)
            del unfinished[path]
    except OSError as error:
        raise BadInput(f"cannot write {path}: {error.strerror}") from error
    finally:
        for name in unfinished.values():
            os.unlink(name)


def run_elsewhere(module: str) -> None:
    """A distribution's packages are seen by its own interpreter, which need not be the first one
    on PATH. Does not return if that one has the module."""
    other = "/usr/bin/python3"
    if not os.access(other, os.X_OK) or os.path.abspath(sys.executable) == other:
        return
    if subprocess.run([other, "-c", f"import {module}"], capture_output=True).returncode == 0:
        sys.stderr.flush()
        os.execv(other, [other, *sys.argv])


def make_page(model: Model) -> str:
    import report_page

    return report_page.Page(model).html()


def require_plotting() -> None:
    """Only the page needs it."""
    try:
        import matplotlib  # noqa: F401
    except ModuleNotFoundError:
        run_elsewhere("matplotlib")
        raise BadInput(f"the page needs matplotlib for {sys.executable}; Debian's package is "
                       "python3-matplotlib") from None


def run(arguments: list[str]) -> None:
    options = parse(arguments)
    if not options.table:
        require_plotting()
        check_outputs(options)
    model = make_model([read_run(path) for path in dict.fromkeys(options.files)])
    for notice in model.notices:
        print(f"attnres: {notice}".encode("ascii", "backslashreplace").decode(), file=sys.stderr)
    if options.table:
        print(report_markdown.table(model), end="")
        return
    texts = {options.output: make_page(model)}
    if options.markdown is not None:
        texts[options.markdown] = report_markdown.document(model)
    write_all(texts)
    for path in texts:
        print(path)


def main() -> None:
    try:
        run(sys.argv[1:])
    except BadInput as error:
        text = str(error).encode("ascii", "backslashreplace").decode()
        print(f"attnres: {' '.join(text.split())}", file=sys.stderr)
        sys.exit(2)


if __name__ == "__main__":
    main()
