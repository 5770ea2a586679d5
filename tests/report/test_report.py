#!/usr/bin/env python3
"""The report: what is on the page, what it refuses, what it says about doubtful numbers.

    python3 -m unittest discover -s tests/report
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import unittest

from support import (ALL, EMULATED, INVENTED, INVENTED_OLD, RECORDED, RECORDED_PEERS,
                     RECORDED_SCALAR, REPORT, Case, Outline, WithPage, figures, section)

from report_text import markdown_text

INVENTED_NAME = "Invented CPU 9000 (a fixture)"
RECORDED_NAME = json.loads(RECORDED.read_text(encoding="utf-8"))["context"]["cpu"]


class ThePage(WithPage):
    def test_every_plot_is_there(self) -> None:
        page = self.html
        self.assertEqual(figures(section(page, "Machine against machine")), ["machines"])
        self.assertEqual(figures(section(page, INVENTED_NAME)),
                         ["roofline", "fractions", "levels", "peers", "peers", "trend", "sweep"])
        self.assertEqual(figures(section(page, RECORDED_NAME)),
                         ["roofline", "fractions", "levels", "others", "peers", "peers"])
        self.assertEqual(page.count("<figure"), page.count("<svg"))

    def test_tables_of_each_file(self) -> None:
        page = self.html
        for path in ALL:
            self.assertIn(f"<summary>Context of {path.name}</summary>", page)
        text = Outline(page).text
        self.assertIn("missing: avx512f avx512bw avx512dq avx512vl os-zmm", text)  # level skipped
        self.assertIn("ggml: pkg-config found none when this was built", text)  # peer absent
        self.assertIn("A/A noise 0.4 %", text)

    def test_stands_alone(self) -> None:
        page = self.html
        outline = Outline(page)
        self.assertNotIn("http", page.replace("http-equiv", ""))
        self.assertNotIn("@import", page)
        tags = {tag for tag, _ in outline.tags}
        self.assertFalse(tags & {"script", "img", "iframe", "object", "embed", "image", "base"})
        self.assertEqual(outline.values("src"), [])
        self.assertTrue(all(value.startswith(("#", "data:")) for value in outline.values("href")))

    def test_pictures_do_not_share_ids(self) -> None:
        page = self.html
        outline = Outline(page)
        ids = outline.values("id")
        self.assertEqual(len(ids), len(set(ids)))
        used = {value[1:] for value in outline.values("href") if value.startswith("#")}
        used |= set(re.findall(r"url\(#([^)]*)\)", page))
        self.assertTrue(used)
        self.assertLessEqual(used, set(ids))

    def test_fits_phones_and_both_themes(self) -> None:
        page = self.html
        self.assertIn('name="viewport" content="width=device-width', page)
        self.assertIn("prefers-color-scheme: dark", page)
        drawings = "".join(re.findall(r"<svg.*?</svg>", page, re.DOTALL))
        self.assertEqual(set(re.findall(r"#[0-9a-f]{6}\b", drawings)), set())  # only the theme's
        self.assertIn("<text", drawings)

    def test_doubts_are_said_on_the_page(self) -> None:
        said = Outline(self.html).text
        lines = self.said.splitlines()
        self.assertGreater(len(lines), 8)
        for line in lines:
            self.assertIn(line.removeprefix("attnres: "), said)

    def test_same_files_same_page(self) -> None:
        self.assertEqual(self.page(*ALL), self.html)

    def test_numbers_are_those_of_the_file(self) -> None:
        rows = json.loads(INVENTED.read_text(encoding="utf-8"))["benchmarks"]
        row = next(row for row in rows if row["run_name"] ==
                   "read/f32/avx512/tokens:16/width:7168/sources:9")
        page = self.page(INVENTED)
        found = re.search(r"<tr><td>read</td><td>f32</td><td>avx512</td><td>16 x 7168 x 9</td>"
                          r"<td>L3</td>(.*?)</tr>", page)
        cells = re.findall(r"<td class=n>(.*?)</td>", found[1])
        self.assertEqual(cells[0], f"{row['real_time'] / 1e3:.0f} us")
        self.assertEqual(cells[1], f"{row['bytes_per_second'] / 1e9:.1f}")
        self.assertEqual(cells[2], f"{row['roof_fraction']:.2f}")

    def test_files_of_one_machine_are_one(self) -> None:
        page = self.page(RECORDED, RECORDED_SCALAR, RECORDED_PEERS)
        self.assertEqual(page.count("<h2>"), 1)
        self.assertIn("From 3 result files of 1 machine.", page)
        self.assertIn("level avx2,", Outline(page).text)  # the higher level speaks for it
        for peer in ("peer-c", "peer-torch-eager", "peer-onnxruntime", "peer-jax"):
            self.assertIn(f"<th class=n>{peer}</th>", page)


class Markdown(Case):
    def test_same_tables(self) -> None:
        self.report(*ALL, "-o", "page.html", "--markdown", "tables.md")
        text = (self.directory / "tables.md").read_text(encoding="utf-8")
        for title in ("### Machine against machine", f"## {RECORDED_NAME}", "### Results",
                      "### Peers", "### Commits", "### Levels and peers"):
            self.assertIn(title, text)
        self.assertIn("**emulated, timings meaningless**", text)
        lines = [line for line in text.splitlines() if line.startswith("|")]
        columns = 0
        for line in lines:
            cells = len(re.findall(r"(?<!\\)\|", line))
            if set(line) <= set("|- :"):
                self.assertEqual(cells, columns)
            columns = cells

    def test_table_for_the_documentation(self) -> None:
        done = self.report("--table", RECORDED, RECORDED_PEERS)
        self.assertIn("| read | f32 | avx2 | 1 x 7168 x 9 | L2 |", done.stdout)
        self.assertIn("peer-torch-eager: torch", done.stdout)  # with its version
        self.assertNotIn("| scalar |", done.stdout)
        self.assertEqual(list(self.directory.iterdir()), [])

    def test_table_needs_no_plotting(self) -> None:
        code = ("import runpy, sys; sys.modules['matplotlib'] = None; "
                f"sys.path.insert(0, {str(REPORT.parent)!r}); sys.argv = {{}}; "
                f"runpy.run_path({str(REPORT)!r}, run_name='__main__')")
        for arguments, status in ((["report", "--table", str(INVENTED)], 0),
                                  (["report", str(INVENTED)], 2)):
            done = subprocess.run([sys.executable, "-c", code.replace("{}", repr(arguments))],
                                  cwd=self.directory, capture_output=True, text=True, check=False)
            self.assertEqual(done.returncode, status, done.stderr)
        self.assertIn("attnres: the page needs matplotlib", done.stderr)
        self.assertEqual(list(self.directory.iterdir()), [])


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
        def other(document: dict) -> None:
            document["context"]["cpu"] = "Another CPU"
            for row in document["benchmarks"]:
                for key in ("name", "run_name"):
                    row[key] = row[key].replace("width:7168", "width:7000")

        path = self.changed(INVENTED, "a.json", other)
        said = self.notices(INVENTED, path)
        self.assertRegex(said, r"\d+ rows are not compared, for not every machine has them")
        part = section(self.page(INVENTED, path), "Machine against machine")
        self.assertNotIn("7168", part)
        self.assertIn("1 x 512 x 9", part)

    def test_no_shape_in_common(self) -> None:
        def other(document: dict) -> None:
            document["context"]["cpu"] = "Another CPU"
            for row in document["benchmarks"]:
                for key in ("name", "run_name"):
                    row[key] = row[key].replace("sources:9", "sources:10")

        path = self.changed(INVENTED, "a.json", other)
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


class Strangers(Case):
    """Files come from anyone: nothing in them becomes markup, and odd ones are read."""

    EVIL = '"><script>alert(1)</script><img src=x onerror=alert(1)>\u202e$\\frac{1}$|`[a](b://c)`\n# x'

    def evil(self, document: dict) -> None:
        for key in list(document["context"]):
            if key not in ("date", "emulated", "smoke", "noisy", "caches", "num_cpus"):
                document["context"][key] = self.EVIL
        document["context"][self.EVIL] = self.EVIL
        for row in document["benchmarks"]:
            row["label"] = self.EVIL
            row.update({f"ratio_to_{self.EVIL}": 2.0} if "ratio_to_peer-c" in row else {})
            for key in ("name", "run_name"):
                row[key] = row[key].replace("sources:9", "sources:9" + self.EVIL.replace("/", "")) \
                    if "avx2" in row[key] else row[key]

    def test_escaping(self) -> None:
        one = self.changed(INVENTED, "one <b>&.json", self.evil)
        two = self.changed(INVENTED_OLD, "two.json", self.evil)
        self.report(one, two, INVENTED, "-o", "page.html", "--markdown", "tables.md")
        outline = Outline((self.directory / "page.html").read_text(encoding="utf-8"))
        self.assertFalse({tag for tag, _ in outline.tags} & {"script", "img", "b"})
        self.assertFalse([name for _, attributes in outline.tags for name in attributes
                          if name.startswith("on")])
        self.assertIn("<script>alert(1)</script>", outline.text)
        text = (self.directory / "tables.md").read_text(encoding="utf-8")
        self.assertIsNone(re.search(r"(?<!\\)<(script|img)", text))
        self.assertIsNone(re.search(r"(?<!\\)\]\(", text))
        self.assertNotIn("\u202e", text)

    def test_bytes_that_are_no_text(self) -> None:
        path = self.directory / "a.json"
        path.write_bytes(INVENTED.read_bytes().replace(b'"attnres-bench"', b'"\xd0\xff"'))
        self.report("--table", path)

    def test_repetitions_instead_of_medians(self) -> None:
        def repeat(document: dict) -> None:
            rows = []
            for row in document["benchmarks"]:
                for i, factor in enumerate((0.5, 1, 1, 1, 1, 1, 1, 1, 90)):
                    rows.append({**row, "name": row["run_name"], "run_type": "iteration",
                                 "repetition_index": i, "real_time": row["real_time"] * factor})
                    rows[-1].pop("aggregate_name")
            document["benchmarks"] = rows

        page = self.page(self.changed(INVENTED, "a.json", repeat))
        self.assertIn(re.search(r"avx512</td><td>16 x 7168 x 9</td><td>L3</td><td class=n>.*?</td>",
                                self.page(INVENTED))[0], page)


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
