#!/usr/bin/env python3
"""The report: what is on the page and in the tables, whatever is in the files.

    python3 -m unittest discover -s tests/report
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import unittest

from support import (ALL, INVENTED, INVENTED_OLD, RECORDED, RECORDED_PEERS,
                     RECORDED_SCALAR, REPORT, Case, Outline, WithPage, figures, section)

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


class Strangers(Case):
    """Files come from anyone: nothing in them becomes markup, and odd ones are read."""

    EVIL = ('"><script>alert(1)</script><img src=x onerror=alert(1)>'
            '\u202e$\\frac{1}$|`[a](b://c)`\n# x')

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


if __name__ == "__main__":
    unittest.main()
