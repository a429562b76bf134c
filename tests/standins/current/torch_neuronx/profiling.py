"""The published profiler names: NeuronConfig, ProfileMode, NeuronProfiler. Strict about types.

What is not published is taken in its narrowest form: only keywords, only a str for cores and paths,
modes only as members, a folder only where there is one.
"""

from __future__ import annotations

import itertools
from typing import Any

import torch

from . import _diary, _moods, _session

_numbers = itertools.count(1)
KEYWORDS = {
    "modes": list,
    "max_events_per_nc": int,
    "capture_enabled_for_nc": str,
    "profile_output_dir": str,
    "neff_cache_dir": str,
    "precache_node_info": bool,
    "correlate_device_time": bool,
}


class _Mode:
    """A member, as native enums are: it has no value to rely on."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __repr__(self) -> str:
        return f"<ProfileMode.{self._name}>"


class ProfileMode:
    """The data streams of a session."""

    DEVICE = _Mode("DEVICE")
    RUNTIME = _Mode("RUNTIME")
    CPU_UTIL = _Mode("CPU_UTIL")
    HOST_MEMORY = _Mode("HOST_MEMORY")

    def __init__(self, *_: Any) -> None:
        raise TypeError("ProfileMode: members are looked up, not made")


if _moods.on("no_host_memory"):
    del ProfileMode.HOST_MEMORY


class NeuronConfig(torch._C._profiler._ExperimentalConfig):
    """What to record; torch.profiler takes it as experimental_config."""

    def __init__(self, *positional: Any, **keywords: Any) -> None:
        super().__init__()
        if positional:
            raise TypeError("NeuronConfig takes keyword arguments only")
        _refuse_keywords(keywords)
        for name, value in keywords.items():
            wanted = KEYWORDS[name]
            if type(value) is not wanted:
                raise TypeError(f"NeuronConfig: {name} must be {wanted.__name__}, got {value!r}")
        modes = keywords.get("modes", [ProfileMode.DEVICE, ProfileMode.RUNTIME])
        if not modes or not all(isinstance(mode, _Mode) for mode in modes):
            raise TypeError(f"NeuronConfig: modes must be ProfileMode members, got {modes!r}")
        self._asked = {**keywords, "modes": {mode._name for mode in modes}}
        shown = {name: value for name, value in keywords.items() if name != "modes"}
        self.number = next(_numbers)
        _diary.note("config", id=self.number, modes=sorted(self._asked["modes"]), **shown)


def _refuse_keywords(keywords: dict[str, Any]) -> None:
    refused = [name for name in keywords if name not in KEYWORDS]
    if _moods.on("refuses", "refuses_pybind", "refuses_invalid", "refuses_value"):
        refused += [name for name in keywords if name in _moods.REFUSED]
    if _moods.on("refuses_modes") and "modes" in keywords:
        raise ValueError("modes: RUNTIME is not available on this platform")
    if not refused:
        return
    if _moods.on("refuses_pybind"):
        known = ", ".join(f"{name}: object" for name in KEYWORDS if name not in _moods.REFUSED)
        raise TypeError(
            "__init__(): incompatible constructor arguments. The following argument types are "
            f"supported:\n    1. torch_neuronx.NeuronConfig(*, {known})\n\n"
            f"Invoked with: kwargs: {', '.join(keywords)}"
        )
    if _moods.on("refuses_invalid"):
        raise TypeError(f"'{refused[0]}' is an invalid keyword argument for NeuronConfig()")
    if _moods.on("refuses_value"):
        raise ValueError(f"NeuronConfig: unknown option {refused[0]}")
    raise TypeError(f"NeuronConfig.__init__() got an unexpected keyword argument '{refused[0]}'")


class NeuronProfiler:
    """Writes the framework trace into the folder of the session that its config recorded."""

    def __init__(self, neuron_config: NeuronConfig) -> None:
        if not isinstance(neuron_config, NeuronConfig):
            raise TypeError("NeuronProfiler takes a NeuronConfig")
        self._config = neuron_config

    def export_trace(self, prof: Any) -> Any:
        is_profile = isinstance(prof, torch.profiler.profile)
        _diary.note("export_trace", config=self._config.number, is_profile=is_profile)
        session = _session.of(prof.profiler)
        if session is None or session.config is not self._config or not session.folder.is_dir():
            return None
        if _moods.on("export_raises"):
            raise FileExistsError(f"{session.folder} is there already")
        if _moods.on("export_does_nothing", "empty_folder"):
            return None
        path = str(session.folder / "trace.json")
        prof.export_chrome_trace(path)
        return path if _moods.on("export_returns") else None
