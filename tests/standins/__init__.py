"""Stand-ins for torch_neuronx, and the tests of the hardware path that run through them."""

from __future__ import annotations
