"""`from_run=<RUN_ID>`: a tracked run's configuration as overrides, before what was typed now.

Called by run.py before Hydra composes. Reads the run's spec.json from the store; writes nothing.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from .errors import StoreError, UserError
from .schema import GROUPS, TrackingConfig
from .track import connect, redact, store

KEY = "from_run"
NOT_REPEATED = ("tracking", "sweep")
"""Where the old run went and the sweep it was part of are not what it measured."""


def expand(typed: Sequence[str], cwd: Path, repository: Path) -> tuple[list[str], str | None]:
    """Replace `from_run=ID` by the run's composed configuration; returns the words and the id.

    A group that is typed now replaces the run's settings of that group. Raises UserError when
    there is no such run or it has no spec.json.
    """
    mine = [word for word in typed if word.lstrip("+").startswith(f"{KEY}=")]
    if not mine:
        return list(typed), None
    run_id = mine[-1].partition("=")[2].strip().strip("'\"")
    rest = [word for word in typed if word not in mine]
    if not run_id or "," in run_id:
        raise UserError(
            f"{mine[-1]}: one run id is wanted. Type {KEY}=<RUN_ID>, as a run's page in MLflow or "
            "the last lines of a run show it."
        )
    data = _spec_of(run_id, rest, cwd, repository)
    return [*_as_overrides(data["config"], rest), *rest], run_id


def _spec_of(run_id: str, rest: Sequence[str], cwd: Path, repository: Path) -> dict[str, Any]:
    from mlflow.exceptions import MlflowException

    given = {key: value.strip("'\"") for key, _, value in (word.partition("=") for word in rest)}
    tracking = TrackingConfig(
        "local", root=given.get("tracking.root"), uri=given.get("tracking.uri")
    )
    target = store.locate(tracking, cwd, repository)
    if target.local and not (target.database and target.database.exists()):
        raise UserError(
            f"{KEY}={run_id}: there is no store at {target.root}. Type tracking.root=<the folder "
            "that the run was tracked in>."
        )
    try:
        client = connect.connect(target)
        with tempfile.TemporaryDirectory() as folder:
            path = client.download_artifacts(run_id, "spec.json", folder)
            loaded: dict[str, Any] = json.loads(Path(path).read_text(encoding="utf-8"))
            return loaded
    except (MlflowException, StoreError, OSError, ValueError) as error:
        reason = redact.text(str(error)).splitlines()[0]
        raise UserError(
            f"{KEY}={run_id}: {target.shown_uri} has no run of that id with a spec.json "
            f"({reason}). Type {KEY}=<RUN_ID> of a run that this tool tracked."
        ) from None


def _as_overrides(config: Mapping[str, Any], rest: Sequence[str]) -> list[str]:
    """Each group's option and each value, but for the groups that are typed now."""
    typed_keys = {word.lstrip("+~").partition("=")[0] for word in rest}
    overrides: list[str] = []
    for key, value in config.items():
        if key in NOT_REPEATED or key in typed_keys:
            continue
        if key in GROUPS:
            overrides.append(f"{key}={value['name']}")
        overrides += [f"++{path}={_written(leaf)}" for path, leaf in _leaves(key, value)]
    return overrides


def _leaves(path: str, value: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(value, Mapping) and value:
        for key, inner in value.items():
            yield from _leaves(f"{path}.{key}", inner)
    elif value != redact.HIDDEN and not path.endswith(".name"):
        yield path, value


def _written(value: Any) -> str:
    """A value in Hydra's override grammar."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (int, float)):
        return repr(value)
    if isinstance(value, Mapping):
        return "{" + ",".join(f"{key}:{_written(inner)}" for key, inner in value.items()) + "}"
    if isinstance(value, (list, tuple)):
        return "[" + ",".join(_written(inner) for inner in value) + "]"
    escaped = str(value).replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"
