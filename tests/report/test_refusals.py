#!/usr/bin/env python3
"""The report: what it says about doubtful numbers, and what it refuses."""

from __future__ import annotations

import json
import unittest
from typing import Callable

from support import (EMULATED, INVENTED, INVENTED_OLD, RECORDED, RECORDED_PEERS, Case, figures,
                     section)

from report_text import markdown_text

RECORDED_NAME = json.loads(RECORDED.read_text(encoding="utf-8"))["context"]["cpu"]


def another_machine(old: str, new: str) -> Callable[[dict], None]:
    """Turns a result into another machine's, with other shapes."""
    def change(document: dict) -> None:
        document["context"]["cpu"] = "Another CPU"
        for row in document["benchmarks"]:
            for key in ("name", "run_name"):
                row[key] = row[key].replace(old, new)
    return change


class Doubts(Case):
    """Nothing doubtful is compared without saying so, on the page and on stderr."""

    def notices(self, *files: object) -> str:
        done = self.report("--table", *files)
        for line in done.stderr.splitlines():
            self.assertTrue(line.startswith("attnres: "), line)
            self.assertIn(markdown_text(line.removeprefix("attnres: ")), done.stdout)
        return done.stderr

    def test_nothing_to_say(self) -> None:
        path = self.changed(INVENTED, "a.json", lambda it: it["context"].pop("synthetic"))
        self.assertEqual(self.notices(path), "")

    def test_noisy(self) -> None:
        said = self.notices(RECORDED, INVENTED)
        self.assertIn("recorded-avx2.json is noisy", said)
        self.assertIn(f"the comparison of machines includes noisy runs: {RECORDED_NAME}", said)

    def test_noise_unknown_is_not_quiet(self) -> None:
        path = self.changed(INVENTED, "a.json", lambda it: it["context"].update(noisy="unknown"))
        self.assertIn("a.json is noisy", self.notices(path))

    def test_made_up(self) -> None:
        self.assertIn("numbers made up for tests, measured nowhere", self.notices(INVENTED))

    def test_different_shapes(self) -> None:
        path = self.changed(INVENTED, "a.json", another_machine("width:7168", "width:7000"))
        said = self.notices(INVENTED, path)
        self.assertRegex(said, r"\d+ rows are not compared, for not every machine has them")
        part = section(self.page(INVENTED, path), "Machine against machine")
        self.assertNotIn("7168", part)
        self.assertIn("1 x 512 x 9", part)

    def test_no_shape_in_common(self) -> None:
        path = self.changed(INVENTED, "a.json", another_machine("sources:9", "sources:10"))
        self.assertIn("no row has the same shape on all of them", self.notices(INVENTED, path))
        part = section(self.page(INVENTED, path), "Machine against machine")
        self.assertEqual(figures(part), [])

    def test_different_levels_and_builds(self) -> None:
        def other(document: dict) -> None:
            document["context"].update(cpu="Another CPU", compiler="clang 14.0.6")
            document["benchmarks"] = [row for row in document["benchmarks"]
                                      if "avx512" not in row["name"]]

        said = self.notices(INVENTED, self.changed(INVENTED, "a.json", other))
        self.assertIn("machines are compared at different levels", said)
        self.assertIn("machines are compared with different builds: compiler", said)

    def test_emulated_is_left_out(self) -> None:
        said = self.notices(INVENTED, EMULATED)
        self.assertIn("emulated.json: emulated, timings meaningless; left out", said)
        page = self.page(INVENTED, EMULATED)
        part = section(page, "implementer 0x41, part 0xd0c, emulated")
        self.assertEqual(figures(part), [])
        self.assertNotIn("<summary>Results", part)
        self.assertNotIn("Machine against machine", page)

    def test_emulator_gives_itself_away(self) -> None:
        path = self.changed(INVENTED, "a.json",
                            lambda it: it["context"].update(cpu="QEMU Virtual CPU version 2.5+"))
        self.assertIn("a.json: emulated, timings meaningless", self.notices(path))

    def test_smoke_run_is_left_out(self) -> None:
        path = self.changed(INVENTED, "a.json", lambda it: it["context"].update(
            smoke="yes, timings meaningless"))
        self.assertIn("a.json: a smoke run, timings meaningless; left out", self.notices(path))

    def test_few_repetitions(self) -> None:
        def few(document: dict) -> None:
            for row in document["benchmarks"]:
                row["iterations"] = row["repetitions"] = 3

        said = self.notices(self.changed(INVENTED, "a.json", few))
        self.assertIn("rows have fewer than 9 repetitions", said)

    def test_failed_and_foreign_rows(self) -> None:
        def spoil(document: dict) -> None:
            document["benchmarks"][-1].update(error_occurred=True, error_message="it broke")
            document["benchmarks"].append({"name": "BM_other", "real_time": 1, "time_unit": "ns"})

        said = self.notices(self.changed(INVENTED, "a.json", spoil))
        self.assertIn("it failed: it broke and 1 more", said)

    def test_trend_under_other_conditions(self) -> None:
        path = self.changed(INVENTED_OLD, "a.json",
                            lambda it: it["context"].update(governor="powersave"))
        self.assertIn("the runs over commits differ in governor", self.notices(path, INVENTED))

    def test_peers_of_another_commit(self) -> None:
        self.assertIn("peers were measured at another commit",
                      self.notices(RECORDED, RECORDED_PEERS))


class BadInput(Case):
    CONTENTS = {
        "not JSON": "hello",
        "empty": "",
        "cut off": '{"context": {}, "benchmarks": [',
        "too deep": "[" * 100000,
        "a list": "[]",
        "a number": "1",
        "no context": '{"benchmarks": []}',
        "no benchmarks": '{"context": {}}',
        "benchmarks are no list": '{"context": {}, "benchmarks": {}}',
        "no rows": '{"context": {}, "benchmarks": []}',
        "a row without a name": '{"context": {}, "benchmarks": [{}]}',
        "rows of another program": '{"context": {}, "benchmarks": [{"name": "BM_x/8", '
                                   '"real_time": 1.0, "time_unit": "ns"}]}',
        "rows without a time": '{"context": {}, "benchmarks": [{"name": "read/f32/avx2/x:1"}]}',
        "time not a number": '{"context": {}, "benchmarks": [{"name": "read/f32/avx2/x:1", '
                             '"real_time": "fast", "time_unit": "ns"}]}',
        "time not finite": '{"context": {}, "benchmarks": [{"name": "read/f32/avx2/x:1", '
                           '"real_time": NaN, "time_unit": "ns"}]}',
    }

    def refused(self, *arguments: object, says: str = "") -> None:
        before = sorted(self.directory.rglob("*"))
        done = self.report(*arguments, status=2)
        self.assertEqual(done.stdout, "")
        last = done.stderr.splitlines()[-1]
        self.assertTrue(last.startswith("attnres: "), done.stderr)
        self.assertIn(says, last)
        self.assertEqual(sorted(self.directory.rglob("*")), before)

    def test_files(self) -> None:
        path = self.directory / "bad.json"
        for what, content in self.CONTENTS.items():
            with self.subTest(what):
                path.write_text(content)
                self.refused(path, says="bad.json")
                self.refused(INVENTED, path, "-o", "out.html", "--markdown", "out.md",
                             says="bad.json")

    def test_places(self) -> None:
        (self.directory / "folder").mkdir()
        for what, arguments, says in (
            ("no file", ["missing.json"], "No such file"),
            ("a directory", ["folder"], "Is a directory"),
            ("output into nowhere", [INVENTED, "-o", "nowhere/page.html"], "nowhere/page.html"),
            ("output is a directory", [INVENTED, "-o", "folder"], "is a directory"),
            ("markdown into nowhere", [INVENTED, "--markdown", "nowhere/x.md"], "nowhere/x.md"),
            ("both the same", [INVENTED, "-o", "x", "--markdown", "x"], "written over"),
            ("no arguments", [], "required"),
            ("unknown option", [INVENTED, "--nonsense"], "--nonsense"),
        ):
            with self.subTest(what):
                self.refused(*arguments, says=says)

    def test_input_is_not_written_over(self) -> None:
        path = self.changed(INVENTED, "a.json", lambda it: None)
        before = path.read_bytes()
        self.refused(path, "-o", "a.json", says="written over")
        self.assertEqual(path.read_bytes(), before)

    def test_an_older_page_survives(self) -> None:
        page = self.directory / "report.html"
        page.write_text("older")
        self.refused(INVENTED, "--markdown", "nowhere/x.md")
        self.assertEqual(page.read_text(), "older")


if __name__ == "__main__":
    unittest.main()
