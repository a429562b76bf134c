"""A stand-in for a package that holds the name and nothing else."""

from __future__ import annotations

__version__ = "0.0.0+standin"
