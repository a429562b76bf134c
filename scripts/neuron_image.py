"""Builds .venv beside a Python that already has torch_neuronx. scripts/setup calls it.

`about` and `join` run on that Python, `constrain` and `verify` inside .venv. Never imports torch.
"""

from __future__ import annotations

import importlib.metadata
import importlib.util
import os
import re
import sys
from pathlib import Path

VENV = Path(__file__).resolve().parent.parent / ".venv"
OLDEST_TORCH = (2, 13)
BUILT_FOR_A_NUMPY = {
    "contourpy",
    "matplotlib",
    "pandas",
    "pyarrow",
    "scikit-learn",
    "scipy",
    "skops",
}


def image_torch() -> str | None:
    """The version of the torch beside torch_neuronx; None where there is no torch_neuronx."""
    if importlib.util.find_spec("torch_neuronx") is None:
        return None
    try:
        return importlib.metadata.version("torch")
    except importlib.metadata.PackageNotFoundError:
        return "0"


def about() -> None:
    """Print one line that changes exactly when .venv has to be built anew."""
    line = f"{sys.version.split()[0]} in {os.path.realpath(sys.base_prefix)}"
    torch = image_torch()
    if torch is not None:
        found = tuple(int(part) for part in re.findall(r"\d+", torch)[:2])
        spec = importlib.util.find_spec("torch_neuronx")
        home = Path((spec.origin if spec else None) or "?").parent.parent
        if found < OLDEST_TORCH:
            sys.exit(
                f"{sys.executable} has torch_neuronx with torch {torch}, the old XLA product; "
                "this project needs torch_neuronx on torch 2.13 or newer. Activate such an "
                "environment, or name another Python: PYTHON=/path/to/python3 scripts/quickstart"
            )
        line += f" with torch_neuronx, torch {torch} in {home}"
    sys.stdout.write(line + "\n")


def join() -> None:
    """Let .venv see an image's packages, also where the image is itself a virtual environment."""
    if image_torch() is None:
        return
    homes = [p for p in sys.path if p.endswith(("site-packages", "dist-packages"))]
    # addsitedir and not a bare path: the image's own .pth files have to run too. And not while pip
    # builds a package (its two variables): the image's older build tools would come first.
    building = "'PEP517_BUILD_BACKEND' in e or '_PYPROJECT_HOOKS_BUILD_BACKEND' in e"
    lines = [
        f"import site; from os import environ as e; {building} or site.addsitedir({home!r})\n"
        for home in homes
    ]
    (target,) = VENV.glob("lib/python*/site-packages")
    (target / "neuron_image.pth").write_text("".join(lines))


def constrain() -> None:
    """Write .venv/constraints.txt: our pins, but for what an image has; its torch and numpy."""
    pins = (VENV.parent / "constraints.txt").read_text().splitlines()
    torch = image_torch()
    if torch is not None:
        image = {
            canonical(d.metadata["Name"]): d.version
            for d in importlib.metadata.distributions()
            if not Path(str(d.locate_file(""))).resolve().is_relative_to(VENV)
        }
        # The compiler of an image is particular about numpy: it stays, and what needs one follows.
        dropped = image.keys() | (BUILT_FOR_A_NUMPY if "numpy" in image else set())
        pins = [p for p in pins if p.startswith("#") or canonical(p.split("==")[0]) not in dropped]
        pins += [f"torch=={torch}"] + [f"numpy=={v}" for n, v in image.items() if n == "numpy"]
    (VENV / "constraints.txt").write_text("\n".join(pins) + "\n")


def verify() -> None:
    """Stop unless the image's torch is the one that .venv imports."""
    spec = importlib.util.find_spec("torch")
    if image_torch() and spec and Path(str(spec.origin)).resolve().is_relative_to(VENV):
        sys.exit(
            f"A second torch came into {VENV} although this Python has its own. "
            "Delete .venv, and report this with the lines above."
        )


def canonical(name: str) -> str:
    """A package's name as pip compares it."""
    return re.sub(r"[-_.]+", "-", name).lower()


if __name__ == "__main__":
    {"about": about, "join": join, "constrain": constrain, "verify": verify}[sys.argv[1]]()
