"""What this computer has left: memory. Called before something large is made on it."""

from __future__ import annotations

import os


def free_memory_bytes() -> int | None:
    """Memory that new allocations can have without swapping; None where the system does not say."""
    try:
        with open("/proc/meminfo", encoding="utf-8") as file:
            for line in file:
                if line.startswith("MemAvailable:"):
                    return int(line.split()[1]) * 1024
        return os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError):
        return None


def has_room_for(nbytes: int, share: float = 0.5) -> bool:
    """Whether that much fits into a share of the free memory; yes where nobody knows."""
    free = free_memory_bytes()
    return free is None or nbytes <= share * free
