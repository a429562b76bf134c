"""The ways a NeuronConfig may refuse a keyword or a value, with one of the test's own."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from src.errors import UserError
from src.measure.neuron_config import neuron_config
from src.schema import ProfilerConfig

NATIVE = """__init__(): incompatible {kind} arguments. The following argument types are supported:
    1. torch_neuronx._C.NeuronConfig(*, modes: list, capture_enabled_for_nc: str,
       profile_output_dir: str, max_events_per_nc: int = 1000000)
Invoked with: kwargs: modes=[], neff_cache_dir='x', correlate_device_time=True"""


def make(refuses: dict[str, Exception], **asked: Any) -> tuple[dict[str, Any], set[str]]:
    """Build one where each keyword of `refuses` raises; returns what was taken and dropped."""

    def build(**keywords: Any) -> dict[str, Any]:
        for name, error in refuses.items():
            if name in keywords:
                raise error
        return keywords

    profiling = SimpleNamespace(NeuronConfig=build, ProfileMode=SimpleNamespace(RUNTIME="R"))
    device: Any = SimpleNamespace(profiling=profiling, neff_cache_dir="/cache")
    taken, dropped = neuron_config(device, ProfilerConfig("runtime", **asked), "0", "/profile")
    return taken, dropped


@pytest.mark.parametrize(
    "error",
    [
        TypeError("NeuronConfig.__init__() got an unexpected keyword argument 'neff_cache_dir'"),
        TypeError("'neff_cache_dir' is an invalid keyword argument for NeuronConfig()"),
        ValueError("unknown option: neff_cache_dir"),
        ValueError("Unsupported parameter 'neff_cache_dir'"),
        RuntimeError("Unrecognised key neff_cache_dir in the profiler's configuration"),
        KeyError("neff_cache_dir"),
        AttributeError("'_Config' object has no attribute 'neff_cache_dir'"),
    ],
    ids=lambda error: str(error)[:40],
)
def test_an_optional_keyword_is_dropped_however_it_is_refused(error: Exception) -> None:
    taken, dropped = make({"neff_cache_dir": error})
    assert dropped == {"neff_cache_dir"}
    assert set(taken) == {
        "modes", "profile_output_dir", "capture_enabled_for_nc", "correlate_device_time",
    }  # fmt: skip


@pytest.mark.parametrize("kind", ["constructor", "function"])
def test_a_native_refusal_drops_what_its_signature_lacks_and_no_more(kind: str) -> None:
    error = TypeError(NATIVE.format(kind=kind))
    taken, dropped = make(
        {"correlate_device_time": error, "neff_cache_dir": error}, max_events_per_nc=5
    )
    assert dropped == {"correlate_device_time", "neff_cache_dir"}
    assert taken["max_events_per_nc"] == 5


@pytest.mark.parametrize(
    ("name", "error"),
    [
        ("capture_enabled_for_nc", TypeError("got an unexpected keyword argument 'x'")),
        ("max_events_per_nc", ValueError("max_events_per_nc must be at most 4000000")),
        ("profile_output_dir", OSError("read-only file system")),
        ("modes", TypeError("modes must be a list")),
    ],
)
def test_a_refused_value_or_needed_keyword_is_not_dropped(name: str, error: Exception) -> None:
    with pytest.raises((UserError, OSError)) as raised:
        make({name: error}, max_events_per_nc=5)
    assert str(error) in str(raised.value)


def test_a_mode_that_the_release_lacks_is_named_with_those_it_has() -> None:
    with pytest.raises(UserError, match=r"no HOST_MEMORY \(it has: RUNTIME\)"):
        make({}, modes=["RUNTIME", "HOST_MEMORY"])
