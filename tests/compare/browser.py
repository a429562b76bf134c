"""Debian's Chromium without a window, and a real `mlflow ui` for it to look at."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from selenium.webdriver import Chrome

T = TypeVar("T")
PATIENCE_S = 45  # the UI answers after 15 to 60 s on two cores
FLAGS = (
    "--headless --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-sync "
    "--disable-background-networking --disable-component-update --hide-scrollbars"
).split()


def missing() -> str:
    """Why there can be no browser here; empty when there can."""
    programs = [name for name in ("chromium", "chromedriver") if not shutil.which(name)]
    if programs:
        return f"{' and '.join(programs)} not installed (apt-get install chromium chromium-driver)"
    return ""


@contextmanager
def chromium(width: int = 1700, height: int = 1300) -> Iterator[Chrome]:
    """A fresh browser with a profile of its own; nothing is downloaded for it."""
    from selenium.webdriver import Chrome, ChromeOptions
    from selenium.webdriver.chrome.service import Service

    options = ChromeOptions()
    options.binary_location = str(shutil.which("chromium"))
    for flag in (*FLAGS, f"--window-size={width},{height}"):
        options.add_argument(flag)
    browser = Chrome(options=options, service=Service(str(shutil.which("chromedriver"))))
    try:
        yield browser
    finally:
        browser.quit()


@contextmanager
def mlflow_ui(root: Path) -> Iterator[str]:
    """The UI of a local store; yields its address."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "mlflow", "ui", "--workers", "1", "--host", "127.0.0.1"]
    command += ["--port", str(port), "--backend-store-uri", f"sqlite:///{root}/mlflow.db"]
    with (root / "ui.log").open("wb") as log:
        process = subprocess.Popen(
            command, stdout=log, stderr=log, cwd=root, start_new_session=True
        )
    address = f"http://127.0.0.1:{port}"
    try:
        for _ in range(PATIENCE_S):
            try:
                urllib.request.urlopen(f"{address}/health", timeout=2).close()
                break
            except OSError:
                time.sleep(1)
        yield address
    finally:
        os.killpg(process.pid, signal.SIGTERM)
        try:
            process.wait(15)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def wait(browser: Chrome, look: Callable[[Chrome], T], what: str) -> T:
    """Look until there is something to see; fails with what the page says instead."""
    from selenium.common.exceptions import TimeoutException, WebDriverException
    from selenium.webdriver.support.ui import WebDriverWait

    try:
        patient = WebDriverWait(browser, PATIENCE_S, 0.5, [WebDriverException])
        return patient.until(look)
    except TimeoutException:
        raise AssertionError(f"no {what} in: {text_of(browser)[:2000]}") from None


def text_of(browser: Chrome) -> str:
    """All visible text of the page."""
    return str(browser.execute_script("return document.body.innerText"))


def close_assistant(browser: Chrome) -> None:
    """Put away the panel that MLflow opens beside each page."""
    browser.execute_script(
        "document.querySelector('[data-component-id$=\"assistant.chat_panel.close\"]')?.click()"
    )


def bars(browser: Chrome) -> list[list[str]]:
    """The labels at the bars of each chart on the page."""
    found: list[list[str]] = browser.execute_script(
        """return [...document.querySelectorAll('.js-plotly-plot')].map(plot =>
             [...plot.querySelectorAll('.barlayer .point')].map(bar => bar.textContent))"""
    )
    return [labels for labels in found if labels]


def element(browser: Chrome, css: str) -> Any:
    from selenium.webdriver.common.by import By

    return browser.find_element(By.CSS_SELECTOR, css)
