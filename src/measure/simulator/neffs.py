"""Compiled programs and their files: made at the first execution of an operator and its shapes, or
of a graph, and left in the NEFF cache when TORCH_NEURONX_NEFF_CACHE_DIR names one.

A file is never a pretended `.neff`: it is named `<published name>.simulated.json`.
"""

from __future__ import annotations

import json
import os
from typing import Any

from . import record
from .record import Model

SUFFIX = ".simulated.json"
CACHE = "TORCH_NEURONX_NEFF_CACHE_DIR"


def program(key: str, name: str, kind: str, operators: tuple[str, ...]) -> Model:
    """The compiled program of this key; the first time it is "compiled" and cached."""
    model, is_new = record.model_for(key, name, kind, operators)
    cache = os.environ.get(CACHE)
    if is_new and cache:
        write_neff(cache, model)
    return model


def write_neff(cache_dir: str, model: Model) -> str:
    """Leave a compiled program in a cache directory unless it is there; the path."""
    path = os.path.join(cache_dir, f"neff_{model.hash}.neff{SUFFIX}")
    if not os.path.exists(path):
        content = {
            "hash": model.hash,
            "name": model.name,
            "kind": model.kind,
            "operators": list(model.operators),
        }
        write_json(path, content)
    return path


def write_json(path: str, content: dict[str, Any]) -> None:
    """Write a file that says in its first line that it is simulated; never half of it."""
    os.makedirs(os.path.dirname(path), exist_ok=True)
    unfinished = f"{path}.{os.getpid()}.part"
    with open(unfinished, "w", encoding="utf-8") as file:
        json.dump({"simulated": True, **content}, file, indent=1)
    os.replace(unfinished, path)
