#!/usr/bin/env python3
"""The page in headless Chromium: no message on the console, every plot visible, nothing cut off or
wider than the screen, light and dark. Screenshots stay in $REPORT_SCREENSHOTS if that is set."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import unittest
from pathlib import Path

from support import WithPage

BROWSER = next((path for name in ("chromium", "chromium-browser", "google-chrome")
                if (path := shutil.which(name))), None)
SCREENS = {"desktop": (1280, 2400), "phone": (390, 2400)}
THEMES = {"light": [], "dark": ["--blink-settings=preferredColorScheme=0"]}

# Runs at the end of a copy of the page that allows scripts.
PROBE = """
<script>
const colour = (node, name) => getComputedStyle(node)[name];
const cut = [];
for (const svg of document.querySelectorAll("svg")) {
  const frame = svg.getBoundingClientRect();
  for (const text of svg.querySelectorAll("text")) {
    const box = text.getBoundingClientRect();
    if (box.left < frame.left - 2 || box.right > frame.right + 2 ||
        box.top < frame.top - 2 || box.bottom > frame.bottom + 2) cut.push(text.textContent);
  }
}
parent.postMessage(JSON.stringify({
  errors: window.problems,
  plots: [...document.querySelectorAll("svg")].map(svg => svg.getBoundingClientRect())
    .filter(box => box.width > 250 && box.height > 80).length,
  smallest: Math.min(...[...document.querySelectorAll("svg text")].map(
    text => text.getBoundingClientRect().height)),
  cut: cut,
  page: document.documentElement.scrollWidth, window: window.innerWidth,
  ink: colour(document.querySelector("svg text"), "fill"),
  paper: colour(document.body, "backgroundColor"),
}), "*");
</script>
"""
# Holds the copy in a frame as wide as the screen: a window cannot be as narrow as a phone.
FRAME = """<!doctype html><pre id="probe"></pre><script>
window.addEventListener("message", event => {
  document.getElementById("probe").textContent = event.data;
});
</script><iframe src="probed.html" style="border: 0" width="%d" height="%d"></iframe>
"""
CATCH = """<script>window.problems = [];
window.addEventListener("error", event => window.problems.push(String(event.message)), true);
</script>"""


def luminance(colour: str) -> float:
    red, green, blue = (int(number) / 255 for number in re.findall(r"\d+", colour)[:3])
    return 0.21 * red + 0.72 * green + 0.07 * blue


@unittest.skipUnless(BROWSER, "there is no Chromium here (Debian's package: chromium)")
class Browser(WithPage):
    def browse(self, path: Path, size: tuple[int, int], *options: str) -> tuple[str, str]:
        command = [str(BROWSER), "--headless", "--disable-gpu", "--hide-scrollbars",
                   "--disable-dev-shm-usage", "--enable-logging=stderr", "--v=0",
                   f"--user-data-dir={self.directory / 'profile'}",
                   f"--window-size={size[0]},{size[1]}", *options]
        if os.geteuid() == 0:
            command.append("--no-sandbox")
        done = subprocess.run([*command, path.as_uri()], capture_output=True, text=True,
                              timeout=180, check=False)
        self.assertEqual(done.returncode, 0, done.stderr[-2000:])
        return done.stdout, done.stderr

    def test_screens(self) -> None:
        page = self.directory / "page.html"
        page.write_text(self.html, encoding="utf-8")
        probed = self.directory / "probed.html"
        open_page = re.sub(r"<meta http-equiv=[^>]*>", CATCH, self.html, count=1)
        open_page = open_page.replace("<details>", "<details open>")
        probed.write_text(open_page.replace("</body>", PROBE + "</body>"), encoding="utf-8")
        frame = self.directory / "frame.html"
        kept = Path(os.environ.get("REPORT_SCREENSHOTS") or self.directory)
        for screen, size in SCREENS.items():
            for theme, options in THEMES.items():
                with self.subTest(f"{screen}, {theme}"):
                    shot = kept / f"report-{screen}-{theme}.png"
                    _, log = self.browse(page, size, *options, f"--screenshot={shot}")
                    self.assertNotIn("CONSOLE", log)
                    self.assertGreater(shot.stat().st_size, 20000)
                    frame.write_text(FRAME % size, encoding="utf-8")
                    dom, log = self.browse(frame, (1400, 2500), *options, "--dump-dom")
                    self.assertNotIn("CONSOLE", log)
                    seen = json.loads(re.search(r'id="probe">(.+?)</pre>', dom)[1])
                    self.check(seen, size[0], theme)

    def check(self, seen: dict, width: int, theme: str) -> None:
        self.assertEqual(seen["window"], width)
        self.assertEqual(seen["errors"], [])
        self.assertEqual(seen["plots"], self.html.count("<svg"))
        self.assertEqual(seen["cut"], [])
        self.assertLessEqual(seen["page"], width)
        self.assertGreater(seen["smallest"], 7)  # pixels of a line: still readable
        ink, paper = luminance(seen["ink"]), luminance(seen["paper"])
        self.assertGreater(abs(ink - paper), 0.6)
        self.assertEqual("dark" if ink > paper else "light", theme)


if __name__ == "__main__":
    unittest.main()
