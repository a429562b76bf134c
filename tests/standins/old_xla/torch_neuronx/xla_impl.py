"""What only the older product has."""

from __future__ import annotations
