"""Takes the README's pictures: a simulated sweep as terminal table, chart view and HTML report.

    scripts/screenshots [FOLDER]      needs chromium and chromedriver; default docs/pictures

Each picture shows the word simulated. Runs the product and a real `mlflow ui`.
"""

from __future__ import annotations

import html
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from tests import running

from . import browser

AXES = ("variant=naive,fused,compiled", "input.shape=1x512x1024,1x1024x2048,1x2048x4096")
TERMINAL = """<body style="margin:0;background:#fff"><pre style="font:15px/1.35 monospace;
color:#1b1b1b;padding:18px;white-space:pre">{}</pre></body>"""


def main(folder: Path) -> int:
    if browser.missing():
        print(browser.missing(), file=sys.stderr)
        return 2
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as scratch:
        root = Path(scratch) / "mlruns"
        done = running.run(root, "-m", *AXES, "profiler.repeats=3", "device=simulated")
        if done.returncode:
            print(done.stderr, file=sys.stderr)
            return 1
        with browser.mlflow_ui(root) as address, browser.chromium(1280, 900) as page:
            _terminal(page, root, folder / "terminal.png")
            _charts(page, done.stdout, address, folder / "charts.png")
            _report(page, root, folder / "report.png")
    print(f"terminal.png, charts.png and report.png are in {folder}")
    return 0


def _terminal(page: Any, root: Path, picture: Path) -> None:
    command = [sys.executable, "-m", "src.compare", "--root", str(root)]
    said = subprocess.run(
        command, capture_output=True, text=True, check=True, env=running.environment()
    ).stdout
    shown = said.partition("\nOperators,")[0].replace(str(root), "mlruns")
    file = root / "terminal.html"
    file.write_text(TERMINAL.format(html.escape("$ python -m src.compare\n" + shown)))
    page.set_window_size(1180, 900)
    page.get(file.as_uri())
    page.save_screenshot(str(picture))


def _charts(page: Any, said: str, address: str, picture: Path) -> None:
    link = next(word for word in said.split() if "viewStateShareKey=sweep" in word)
    page.set_window_size(1800, 1100)
    page.get(link.replace("http://127.0.0.1:5000", address))
    browser.wait(
        page, lambda found: [len(bars) for bars in browser.bars(found)[:3]] == [9] * 3, "bars"
    )
    browser.close_assistant(page)
    time.sleep(4)  # the charts are drawn anew in their new width
    page.save_screenshot(str(picture))


def _report(page: Any, root: Path, picture: Path) -> None:
    (file,) = root.glob("artifacts/*/*/artifacts/comparison.html")
    page.set_window_size(1180, 1500)
    page.get(file.as_uri())
    browser.wait(page, browser.bars, "bars")
    time.sleep(1)
    page.save_screenshot(str(picture))


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1] if len(sys.argv) > 1 else "docs/pictures")))
