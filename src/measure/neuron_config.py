"""Making a NeuronConfig whose exact signature is not published: optional keywords may be refused.

Called by capture.py, once a window. Feature-detected: a keyword that the installed release does not
know is dropped and reported; a version is never compared.
"""

from __future__ import annotations

import re
from typing import Any

from ..errors import UserError
from ..schema import ProfilerConfig
from .devices import Device

OPTIONAL_KEYWORDS = (
    "correlate_device_time",
    "precache_node_info",
    "neff_cache_dir",
    "max_events_per_nc",
)
"""NeuronConfig keywords that a run can do without, the least certain first."""

# Python: "got an unexpected keyword argument 'x'"; C: "'x' is an invalid keyword argument for ...".
_PYTHON = re.compile(r"keyword argument:? '(\w+)'|'(\w+)' is an invalid keyword argument")
_NATIVE = re.compile(r"incompatible (?:constructor|function) arguments")  # pybind11, nanobind
_UNKNOWN = re.compile(
    r"unknown|unexpected|unrecogni[sz]ed|unsupported|not supported|invalid (?:key|option|arg|param)"
    r"|no (?:such )?(?:key|option|attribute|parameter|field)",
    re.IGNORECASE,
)


def neuron_config(
    device: Device, profiler: ProfilerConfig, cores: str, profile_dir: str
) -> tuple[Any, set[str]]:
    """Make the NeuronConfig; returns it with the optional keywords that this release refused.

    Raises UserError when it refuses something else that the configuration says.
    """
    wanted = {
        "modes": [_mode(device, mode) for mode in profiler.modes],
        "profile_output_dir": profile_dir,
        "capture_enabled_for_nc": profiler.capture_cores or cores,
        "max_events_per_nc": profiler.max_events_per_nc,
        "neff_cache_dir": profiler.neff_cache_dir or device.neff_cache_dir,
        "precache_node_info": profiler.precache_node_info,
        "correlate_device_time": profiler.correlate_device_time,
    }
    keywords = {name: value for name, value in wanted.items() if value is not None}
    dropped: set[str] = set()
    while True:
        try:
            return device.profiling.NeuronConfig(**keywords), dropped
        except (TypeError, ValueError, AttributeError, KeyError, RuntimeError) as error:
            refused = _refused(error, keywords)
            if refused is None:
                raise UserError(
                    f"profiler={profiler.name}: the installed NeuronConfig refuses it "
                    f"({type(error).__name__}: {error}). It was given {_shown(keywords)}. "
                    "Change the value that it names, or leave that override out."
                ) from error
            del keywords[refused]
            dropped.add(refused)


def _mode(device: Device, name: str) -> Any:
    modes = device.profiling.ProfileMode
    found = getattr(modes, name, None)
    if found is None:
        has = ", ".join(mode for mode in dir(modes) if mode.isupper())
        raise UserError(
            f"profiler.modes={name}: the installed ProfileMode has no {name} (it has: {has}). "
            "Leave that mode out, or type profiler=runtime."
        )
    return found


def _refused(error: Exception, keywords: dict[str, Any]) -> str | None:
    """The optional keyword that the refusal is about; None when it is about something else."""
    text = str(error)
    optional = [name for name in OPTIONAL_KEYWORDS if name in keywords]
    if isinstance(error, TypeError):
        if named := _PYTHON.search(text):
            name = named[1] or named[2]
            return name if name in optional else None
        if _NATIVE.search(text):
            supported = text.partition("Invoked with")[0]
            unknown = [name for name in optional if not re.search(rf"\b{name}\b", supported)]
            return next(iter(unknown or optional), None)
    if _UNKNOWN.search(text) or isinstance(error, (KeyError, AttributeError)):
        return next((name for name in optional if re.search(rf"\b{name}\b", text)), None)
    return None


def _shown(keywords: dict[str, Any]) -> str:
    return ", ".join(f"{name}={value!r}" for name, value in keywords.items())
