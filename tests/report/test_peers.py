#!/usr/bin/env python3
"""The Python peers' common part, with a peer that needs nothing but numpy: a right one is timed
and its rows go into the report, a wrong one is refused. Needs a built library: the one that
$ATTNRES_LIBRARY names, or build/src/libattnres.so."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import unittest
from pathlib import Path

from support import ROOT, Case, Outline

PEERS = ROOT / "bench" / "peers"
LIBRARY = Path(os.environ.get("ATTNRES_LIBRARY") or ROOT / "build" / "src" / "libattnres.so")

PEER = """
import sys
sys.path.insert(0, {directory!r})
import measure

class Numpy:
    name = "peer-numpy"
    needs = ({needs!r},)
    dtypes = ("f32",)

    def version(self):
        return "a test"

    def prepare(self, problem, threads):
        import problem as problems
        call = lambda: problems.reference(problem, problem.tokens) * {factor}
        return call, lambda: call().astype("float32")

measure.main(Numpy())
"""


def has_numpy() -> bool:
    try:
        import numpy  # noqa: F401
    except ImportError:
        return False
    return True


@unittest.skipUnless(has_numpy(), "there is no numpy here (Debian's package: python3-numpy)")
@unittest.skipUnless(LIBRARY.exists(), f"there is no library at {LIBRARY}")
class Peers(Case):
    def peer(self, *arguments: str, factor: float = 1.0, needs: str = "numpy"):
        script = self.directory / "peer.py"
        script.write_text(PEER.format(directory=str(PEERS), factor=factor, needs=needs))
        return subprocess.run(
            [sys.executable, str(script), "--library", str(LIBRARY), "--out", "rows.json",
             "--tokens", "1", *arguments],
            cwd=self.directory, capture_output=True, text=True, timeout=300, check=False)

    def test_right_one_is_reported(self) -> None:
        done = self.peer()
        self.assertEqual(done.returncode, 0, done.stderr)
        document = json.loads((self.directory / "rows.json").read_text())
        level = document["context"]["level"]
        medians = {row["run_name"]: row for row in document["benchmarks"]
                   if row.get("aggregate_name") == "median"}
        shape = "tokens:1/width:7168/sources:9"
        ours, theirs = (medians[f"read/f32/{name}/{shape}"] for name in (level, "peer-numpy"))
        self.assertAlmostEqual(ours["ratio_to_peer-numpy"],
                               theirs["real_time"] / ours["real_time"], places=6)
        self.assertEqual(document["context"]["rows_skipped"],
                         "peer-numpy/bf16: the framework has no such read")
        page = self.page("rows.json")
        self.assertIn("<th class=n>peer-numpy</th>", page)
        self.assertIn("peer-numpy: a test", Outline(page).text)

    def test_wrong_one_is_refused(self) -> None:
        done = self.peer(factor=1.01)
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("peer-numpy and attnres differ by", done.stderr)
        self.assertFalse((self.directory / "rows.json").exists())

    def test_absent_one_says_why(self) -> None:
        done = self.peer(needs="no_such_framework")
        self.assertEqual(done.returncode, 3)
        self.assertIn("no_such_framework cannot be imported", done.stdout)
        self.assertFalse((self.directory / "rows.json").exists())


class Driver(Case):
    def run_peers(self, *arguments: object) -> subprocess.CompletedProcess[str]:
        return subprocess.run([sys.executable, str(PEERS / "run_peers.py"), *map(str, arguments)],
                              cwd=self.directory, capture_output=True, text=True, timeout=300,
                              check=False)

    def test_refusals(self) -> None:
        there = Path(__file__)
        for what, arguments, says in (
            ("no library", ["--library", "missing.so"], "build it first"),
            ("output into a file", ["--library", there, "--out", there / "x.json"], "cannot write"),
            ("no time", ["--library", there, "--out", "x.json", "--seconds", 0], "no peer can run"),
        ):
            with self.subTest(what):
                done = self.run_peers(*arguments)
                self.assertEqual(done.returncode, 2, done.stderr)
                self.assertIn("attnres: ", done.stderr)
                self.assertIn(says, done.stderr)
                self.assertEqual(list(self.directory.iterdir()), [])


if __name__ == "__main__":
    unittest.main()
