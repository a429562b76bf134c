"""A stand-in for the older product of the same name: no torch.neuron, no profiling."""

from __future__ import annotations

__version__ = "2.9.0+standin"
