"""What the caller did, one JSON object a line, in the file that STANDIN_DIARY names."""

from __future__ import annotations

import json
import os
from typing import Any


def note(event: str, **facts: Any) -> None:
    path = os.environ.get("STANDIN_DIARY")
    if path:
        with open(path, "a", encoding="utf-8") as file:
            file.write(json.dumps({"event": event, **facts}) + "\n")


def variables() -> dict[str, str]:
    """The variables that the runtime and the library read at this moment."""
    starts = ("NEURON_", "TORCH_NEURONX_")
    return {name: value for name, value in os.environ.items() if name.startswith(starts)}
