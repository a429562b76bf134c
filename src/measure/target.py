"""Finding the function that workload.target names, in a file or a module of the user's.

Called by custom.py. The user's package may be called `src` like this one: the child knows ours by a
private name, and this checkout leaves the import path here.
"""

from __future__ import annotations

import hashlib
import importlib
import importlib.util
import os
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

from ..errors import UserError, nearest
from ..workload_rules import target_parts

OURS = Path(__file__).resolve().parents[1]


def load(target: str) -> tuple[Callable[..., Any], str]:
    """Return the function and its name; UserError when there is no such thing."""
    where, name = target_parts(target)
    cwd = Path.cwd()
    sys.path[:] = [p for p in sys.path if Path(p or ".").resolve() != OURS.parent or p == str(cwd)]
    try:
        if _is_path(where):
            module = _from_file(Path(where), target, cwd)
        else:
            module = importlib.import_module(where)
    except ModuleNotFoundError as error:
        if error.name and (where == error.name or where.startswith(f"{error.name}.")):
            raise UserError(
                f"workload.target={target}: there is no module '{error.name}' in {cwd} or among "
                f"the installed packages. Type the path of a file instead: path/model.py:{name}."
            ) from None
        raise _import_failed(target, error) from error
    except (Exception, SystemExit) as error:
        if isinstance(error, UserError):
            raise
        raise _import_failed(target, error) from error
    function = getattr(module, name, None)
    if not callable(function):
        names = [one for one, value in vars(module).items() if callable(value) and _is_own(value, module)]  # fmt: skip  # noqa: E501
        close = nearest(name, names)
        hint = f" Did you mean {where}:{close}?" if close else ""
        raise UserError(
            f"workload.target={target}: {where} has no function '{name}' (it has: "
            f"{', '.join(names) or 'none'}).{hint}"
        )
    return function, name


def words(error: BaseException) -> str:
    """The error, and the last line of the user's own that it came through."""
    frames = [f for f in traceback.extract_tb(error.__traceback__) if _is_users(Path(f.filename))]
    what = f"{type(error).__name__}: {' '.join(str(error).split())[:500]}".rstrip(": .")
    return f"{what} ({_short(frames[-1].filename)}, line {frames[-1].lineno})" if frames else what


def source_sha256(target: str) -> str:
    """A digest of the user's own modules that are loaded: those below the target or the cwd."""
    where, _ = target_parts(target)
    roots = [Path.cwd()]
    if _is_path(where):
        roots.append(Path(where).resolve().parent)
    files = {
        Path(file).resolve()
        for module in list(sys.modules.values())
        if (file := getattr(module, "__file__", None)) and file.endswith(".py") and _there(file)
    }
    digest = hashlib.sha256()
    for path in sorted(files):
        if _is_users(path) and any(path.is_relative_to(root) for root in roots):
            digest.update(path.name.encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()


def _is_path(where: str) -> bool:
    return where.endswith(".py") or "/" in where or "\\" in where


def _from_file(typed: Path, target: str, cwd: Path) -> ModuleType:
    path = typed.expanduser().resolve()
    if not path.is_file():
        raise UserError(
            f"workload.target={target}: there is no file {path}. A relative path is taken from "
            "where the command was typed."
        )
    root, parts = path.parent, [path.stem]
    while (root / "__init__.py").exists():  # a file of a package keeps its package's name
        root, parts = root.parent, [root.name, *parts]
    if str(root) != str(cwd) and str(root) not in sys.path:
        sys.path.insert(1, str(root))
    name = ".".join(parts)
    loaded = sys.modules.get(name)
    if loaded is None and len(parts) > 1:
        loaded = importlib.import_module(name)
    if loaded is not None and Path(loaded.__file__ or "").resolve() == path:
        return loaded
    spec = importlib.util.spec_from_file_location(f"_workload_{path.stem}", path)
    if spec is None or spec.loader is None:
        raise UserError(f"workload.target={target}: {path} is not a Python file.")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def _import_failed(target: str, error: BaseException) -> UserError:
    traceback.print_exception(error)
    where, _ = target_parts(target)
    return UserError(
        f"workload.target={target}: importing {where} raised {words(error)}. Mend it there."
    )


def _is_users(path: Path) -> bool:
    inside = path.resolve()
    installed = {"site-packages", "dist-packages"} & set(inside.parts)
    stdlib = inside.is_relative_to(Path(importlib.__file__).resolve().parents[1])
    frozen = str(path).startswith("<")
    return not (installed or stdlib or frozen or inside.is_relative_to(OURS))


def _there(file: str) -> bool:
    return os.path.isabs(file) and os.path.isfile(file)  # torch has modules that name no file


def _short(filename: str) -> str:
    path = Path(filename)
    return str(path.relative_to(Path.cwd())) if path.is_relative_to(Path.cwd()) else filename


def _is_own(value: Any, module: ModuleType) -> bool:
    return getattr(value, "__module__", None) == module.__name__
