"""The published names of `torch_neuronx.profiling`, for the simulated device: NeuronConfig,
ProfileMode, NeuronProfiler.

Used with the ordinary `torch.profiler.profile(experimental_config=..., on_trace_ready=...)`.
Parameters are keyword-only.
"""

from __future__ import annotations

import enum
import os
from collections.abc import Sequence
from typing import Any

import torch


class ProfileMode(enum.Enum):
    """The data streams that a session records."""

    DEVICE = "device"
    RUNTIME = "runtime"
    CPU_UTIL = "cpu_util"
    HOST_MEMORY = "host_memory"


def parse_cores(text: str) -> frozenset[int]:
    """The cores of a list such as "0,2-5"."""
    cores: set[int] = set()
    for item in text.split(","):
        first, dash, last = item.strip().partition("-")
        if (
            not first.isdigit()
            or (dash and not last.isdigit())
            or (dash and int(last) < int(first))
        ):
            raise ValueError(
                f"capture_enabled_for_nc={text!r}: {item.strip()!r} is no core and no range; "
                'write e.g. "0,2-5"'
            )
        cores.update(range(int(first), int(last or first) + 1))
    return frozenset(cores)


class NeuronConfig(torch._C._profiler._ExperimentalConfig):
    """What a profiling session records, and where to.

    With `correlate_device_time` the executions of the RUNTIME or DEVICE stream give their device
    time to the rows of `key_averages()`.
    """

    def __init__(
        self,
        *,
        modes: Sequence[ProfileMode] | None = None,
        max_events_per_nc: int = 1_000_000,
        capture_enabled_for_nc: str | None = None,
        profile_output_dir: str = "./output",
        neff_cache_dir: str | None = None,
        precache_node_info: bool = True,
        correlate_device_time: bool = False,
    ) -> None:
        super().__init__()
        chosen = (ProfileMode.DEVICE, ProfileMode.RUNTIME) if modes is None else tuple(modes)
        if not chosen or not all(isinstance(mode, ProfileMode) for mode in chosen):
            raise TypeError(f"modes={modes!r}: give a list of ProfileMode members")
        if not isinstance(max_events_per_nc, int) or isinstance(max_events_per_nc, bool):
            raise TypeError(f"max_events_per_nc={max_events_per_nc!r}: give a whole number")
        if max_events_per_nc < 1:
            raise ValueError(f"max_events_per_nc={max_events_per_nc}: give at least 1")
        if capture_enabled_for_nc is not None and not isinstance(capture_enabled_for_nc, str):
            raise TypeError(
                f"capture_enabled_for_nc={capture_enabled_for_nc!r}: "
                'give a string such as "0" or "0,2-5"'
            )
        for name, path in (
            ("profile_output_dir", profile_output_dir),
            ("neff_cache_dir", neff_cache_dir),
        ):
            if not isinstance(path, str) and not (path is None and name == "neff_cache_dir"):
                raise TypeError(f"{name}={path!r}: give a string")
        self.modes = chosen
        self.max_events_per_nc = max_events_per_nc
        self.capture_enabled_for_nc = capture_enabled_for_nc
        self.captured_cores = (
            None if capture_enabled_for_nc is None else parse_cores(capture_enabled_for_nc)
        )
        self.profile_output_dir = profile_output_dir
        self.neff_cache_dir = neff_cache_dir
        self.precache_node_info = bool(precache_node_info)
        self.correlate_device_time = bool(correlate_device_time)

    def __copy__(self) -> NeuronConfig:
        # torch.profiler copies its configuration in one case (trace_only with with_stack), and
        # would lose these fields.
        names = "modes max_events_per_nc capture_enabled_for_nc profile_output_dir neff_cache_dir"
        names += " precache_node_info correlate_device_time"
        return NeuronConfig(**{name: getattr(self, name) for name in names.split()})

    def captures(self, core: int) -> bool:
        """Whether a logical core is recorded."""
        return self.captured_cores is None or core in self.captured_cores

    @property
    def has_executions(self) -> bool:
        """Whether a stream that holds executions is on."""
        return ProfileMode.RUNTIME in self.modes or ProfileMode.DEVICE in self.modes


class NeuronProfiler:
    """Exports the framework trace beside the session's other files."""

    def __init__(self, config: NeuronConfig) -> None:
        if not isinstance(config, NeuronConfig):
            raise TypeError(f"NeuronProfiler takes a NeuronConfig, not {type(config).__name__}")
        self._config = config

    def export_trace(self, prof: Any) -> None:
        """Write `trace.json` into the folder of the session that `prof` has just ended: an
        `on_trace_ready` handler.
        """
        from .sessions import session_of

        session = session_of(prof.profiler)
        if session is None or session.config is not self._config:
            raise RuntimeError(
                "NeuronProfiler.export_trace: no Neuron session was recorded; give "
                "torch.profiler.profile this exporter's NeuronConfig as experimental_config, and "
                "ProfilerActivity.PrivateUse1 among its activities"
            )
        os.makedirs(session.folder, exist_ok=True)
        prof.export_chrome_trace(os.path.join(session.folder, "trace.json"))
