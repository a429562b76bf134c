"""SIGTERM and SIGHUP as exceptions, so that they end a run as Ctrl-C does. For the doors."""

from __future__ import annotations

import contextlib
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

from .errors import Interrupted


@contextmanager
def as_exceptions() -> Iterator[None]:
    """Within the block, the run is closed and the child is stopped when the system says so."""

    def raise_it(number: int, frame: FrameType | None) -> None:
        raise Interrupted(number)

    caught = (signal.SIGTERM, signal.SIGHUP)
    before = [signal.signal(number, raise_it) for number in caught]
    try:
        yield
    finally:
        for number, handler in zip(caught, before, strict=True):
            with contextlib.suppress(TypeError):  # a handler that was not set from Python
                signal.signal(number, handler)
