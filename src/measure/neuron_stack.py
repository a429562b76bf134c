"""Why a torch_neuronx that is installed cannot be used: old product, placeholder, broken library.

Called by devices/neuron.py, and by job.py when torch itself did not import: no torch in here. Looks
up which packages exist and imports none of them.
"""

from __future__ import annotations

import importlib.util
import re

INSTALL = "Install it as https://awsdocs-neuron.readthedocs-hosted.com describes (see README.md)."
_LOADER = re.compile(r"cannot open shared object|undefined symbol|\.so[.\d]*\b|GLIBC|wrong ELF")


def not_installed() -> str:
    """There is no torch_neuronx at all."""
    return f"torch_neuronx is not installed. {INSTALL}"


def broken(error: BaseException) -> str:
    """torch_neuronx is there, and importing it raises."""
    what = f"{type(error).__name__}: {' '.join(str(error).split())[:300]}"
    chain = " ".join(str(one) for one in _chain(error))
    if _LOADER.search(chain):
        return (
            f"torch_neuronx's native library does not load ({what}). Install the runtime "
            "(aws-neuronx-runtime-lib) and the torch that this torch_neuronx was built for; "
            "LD_LIBRARY_PATH must not name another one."
        )
    return f"torch_neuronx does not import ({what}). Reinstall it. {INSTALL}"


def wrong_product(what: str) -> str:
    """torch_neuronx imports, and lacks the published names."""
    if _exists("torch_xla") or _exists("torch_neuronx.xla_impl"):
        return (
            f"{what}: this is the older product of the same name, built on XLA (torch-neuronx up "
            "to 2.9). It cannot be profiled by this tool. Install torch-neuronx 2.13 or newer into "
            f"an environment of its own. {INSTALL}"
        )
    return (
        f"{what}: this looks like the placeholder that PyPI has under this name, or like an older "
        "release. Type: pip uninstall torch-neuronx, then install 2.13 or newer from AWS's own "
        f"package index. {INSTALL}"
    )


def autoload_failed(error: BaseException) -> str | None:
    """Words for a backend that broke `import torch` itself; None when it was something else."""
    if "Failed to load the backend extension" not in str(error):
        return None
    return broken(error.__cause__ or error)


def _exists(name: str) -> bool:
    try:
        return importlib.util.find_spec(name) is not None
    except (ImportError, ValueError, AttributeError):
        return False


def _chain(error: BaseException | None) -> list[BaseException]:
    return [] if error is None else [error, *_chain(error.__cause__ or error.__context__)]
