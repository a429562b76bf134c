"""From what Hydra composed to a checked configuration. Called by run.py and track/sweep.py.

Never composes anything itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from . import rules, slips
from .errors import UserError
from .schema import Config, config_from_mapping, unknown_keys


def config_of(composed: Any, typed: Sequence[str]) -> Config:
    """Resolve, check and canonicalise; raises UserError in the words of what was `typed`."""
    from omegaconf import OmegaConf
    from omegaconf.errors import OmegaConfBaseException

    try:
        data: Any = OmegaConf.to_container(composed, resolve=True)
    except OmegaConfBaseException as error:
        raise UserError(f"{' '.join(typed)}: {str(error).splitlines()[0]}.") from None
    for key in unknown_keys(data):
        raise UserError(slips.unknown_key(key))
    return rules.checked(config_from_mapping(data))
