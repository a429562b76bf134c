"""A stand-in for a library whose native part does not load."""

from __future__ import annotations

raise ImportError("libnrt.so.1: cannot open shared object file: No such file or directory")
