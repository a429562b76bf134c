"""The version that the stand-in reports to importlib.metadata; STANDIN_VERSION stands for it."""

from __future__ import annotations

import importlib.metadata
import os
import sys
from collections.abc import Iterable
from typing import Any

TEXT = os.environ.get("STANDIN_VERSION", "0+standin")


class _Distribution(importlib.metadata.Distribution):
    def read_text(self, filename: str) -> str | None:
        if filename != "METADATA":
            return None
        return f"Metadata-Version: 2.1\nName: torch-neuronx\nVersion: {TEXT}\n"

    def locate_file(self, path: Any) -> Any:
        raise FileNotFoundError(path)


class _Finder(importlib.metadata.DistributionFinder):
    def find_spec(self, *_: Any) -> None:
        return None

    def find_distributions(self, context: Any = None) -> Iterable[Any]:
        wanted = getattr(context, "name", None)
        return [_Distribution()] if wanted in ("torch-neuronx", "torch_neuronx") else []


if "STANDIN_VERSION" in os.environ:
    sys.meta_path.insert(0, _Finder())
