"""Signals that end a run, as exceptions: Ctrl-C, SIGTERM and SIGHUP. For the doors."""

from __future__ import annotations

import contextlib
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

from .errors import Interrupted

CLOSING_S = 30.0
"""After the first signal the run is being closed: others of this time change nothing."""


@contextmanager
def as_exceptions() -> Iterator[None]:
    """Within the block, the run is closed and the child is stopped when the system says so.

    Ctrl-C pressed twice must not interrupt the closing: the run would stay RUNNING.
    """
    first_s: float | None = None

    def raise_it(number: int, frame: FrameType | None) -> None:
        nonlocal first_s
        now_s = time.monotonic()
        if first_s is not None and now_s - first_s < CLOSING_S:
            return
        first_s = now_s
        raise KeyboardInterrupt if number == signal.SIGINT else Interrupted(number)

    caught = [signal.SIGTERM, signal.SIGHUP]
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:  # else nohup or a script's &
        caught.append(signal.SIGINT)
    before = [signal.signal(number, raise_it) for number in caught]
    try:
        yield
    finally:
        for number, handler in zip(caught, before, strict=True):
            with contextlib.suppress(TypeError):  # a handler that was not set from Python
                signal.signal(number, handler)
