"""A signal ends a run once; what follows it does not disturb the closing."""

from __future__ import annotations

import os
import signal

import pytest

from src import signals
from src.errors import Interrupted


def test_ctrl_c_pressed_again_does_not_interrupt_the_closing() -> None:
    closed = False
    with signals.as_exceptions():
        try:
            os.kill(os.getpid(), signal.SIGINT)
        except KeyboardInterrupt:
            os.kill(os.getpid(), signal.SIGINT)
            os.kill(os.getpid(), signal.SIGTERM)
            closed = True
    assert closed
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_a_closing_that_takes_too_long_can_be_interrupted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(signals, "CLOSING_S", 0.0)
    with signals.as_exceptions():
        with pytest.raises(KeyboardInterrupt):
            os.kill(os.getpid(), signal.SIGINT)
        with pytest.raises(Interrupted):
            os.kill(os.getpid(), signal.SIGTERM)
