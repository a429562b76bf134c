"""Which device a run gets: Trainium where it works, the simulator only where nothing is Neuron.

Called by job.py. Never falls back silently: a broken Neuron stack is an error, not a simulation.
"""

from __future__ import annotations

import os
from pathlib import Path

from ...errors import UserError
from ...schema import Config
from . import Device, obstacles
from .signs import signs_of_neuron

SET_BY_US = "PROFILE_RUN_SET"
"""Names the variables that the parent may have set for this child, separated by commas."""


def open_device(config: Config, root: Path = Path("/")) -> Device:
    """Open the device that config.device asks for; raises UserError that says what is missing."""
    from . import neuron

    if config.device.name == "simulated":
        return _open_simulated(config)
    problem = neuron.what_is_missing(root)
    if problem is None:
        obstacles.refuse_conflicts(os.environ)
        return neuron.open_device(config, root)
    if config.device.name == "neuron":
        raise UserError(f"device=neuron: {problem} Type device=simulated to run without hardware.")
    signs = signs_of_neuron(root, ours=_set_by_us())
    if signs:
        raise UserError(
            f"device=auto: this machine shows signs of Neuron ({'; '.join(signs)}), but {problem} "
            "Mend that, or type device=simulated to run without hardware."
        )
    return _open_simulated(config)


def _open_simulated(config: Config) -> Device:
    from . import simulated

    return simulated.open_device(config)


def _set_by_us() -> frozenset[str]:
    return frozenset(os.environ.get(SET_BY_US, "").split(","))
