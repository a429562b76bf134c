"""NeuronCores for jobs that run at the same time: each job holds its own while its child runs.

Called by run.py on hardware only; simulated cores need no lease. A lease is a file lock, so it ends
with the process that holds it, however that ends.
"""

from __future__ import annotations

import contextlib
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from .. import rules
from ..errors import UserError
from ..schema import Config

FOLDER = Path(tempfile.gettempdir()) / "neuron-core-leases"
"""One place for the whole machine: cores belong to it, not to a store or a checkout."""
POLL_S = 0.5


def wants_hardware(config: Config, root: Path = Path("/")) -> bool:
    """Will this run take real cores, as far as can be told without torch?"""
    if config.device.name == "auto":
        return any((root / "dev").glob("neuron[0-9]*"))
    return config.device.name == "neuron"


def refuse_oversubscription(
    configs: Sequence[Config], at_once: int, root: Path = Path("/")
) -> None:
    """Raise UserError when jobs that run at the same time would need more cores than there are."""
    real = [config for config in configs if wants_hardware(config, root)]
    if at_once < 2 or not real:
        return
    for config in real:
        wanted = len(rules.parse_cores(config.cores))
        if config.sweep.pool is not None:
            pool = rules.parse_cores(config.sweep.pool, "sweep.pool")
            if at_once * wanted > len(pool):
                fits = len(pool) // wanted
                raise UserError(
                    f"sweep.pool={config.sweep.pool}: {at_once} jobs at once of {wanted} core(s) "
                    f"need {at_once * wanted} NeuronCores, the pool has {len(pool)}. Type "
                    f"hydra.launcher.n_jobs={max(fits, 1)}, or a larger sweep.pool."
                )
    alone = [config for config in real if config.sweep.pool is None]
    taken = [core for config in alone for core in rules.parse_cores(config.cores)]
    if len(taken) > len(set(taken)):
        shared = rules.format_cores({core for core in taken if taken.count(core) > 1})
        raise UserError(
            f"hydra.launcher.n_jobs={at_once}: jobs that run at the same time would share "
            f"NeuronCore {shared}. Type sweep.pool=0-{at_once - 1} for a pool that each job "
            "leases its cores from, or hydra.launcher.n_jobs=1."
        )


@contextmanager
def leased(
    wanted: Sequence[int],
    pool: Sequence[int] | None,
    folder: Path = FOLDER,
    on_wait: Callable[[], None] = lambda: None,
) -> Iterator[list[int]]:
    """Hold `wanted` cores, or as many of `pool`; waits while other jobs of ours hold them.

    Yields the cores. Cores that another program holds are not seen here; the runtime says so.
    """
    from filelock import FileLock, Timeout

    folder.mkdir(parents=True, exist_ok=True)
    candidates = list(pool) if pool is not None else list(wanted)
    told = False
    while True:
        with contextlib.ExitStack() as locks:
            held: list[int] = []
            for core in candidates:
                if len(held) == len(wanted):
                    break
                with contextlib.suppress(Timeout):
                    locks.enter_context(FileLock(folder / f"core-{core}.lock", timeout=0))
                    held.append(core)
            if len(held) == len(wanted):
                yield held
                return
        if not told:
            on_wait()
            told = True
        time.sleep(POLL_S)
