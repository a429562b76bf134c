"""One session folder through neuron-explorer: device time from its system trace, engine metrics.

Called by explore.py in this room. Parquet first, as it was tried in public; JSON where there is no
parquet or no reader for it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ..analyze import engines, explorer_output, neff_pairs
from ..analyze.explorer_output import DeviceTime
from . import binary
from .binary import ExplorerFailed

TABLE = "SystemProfileEvents.parquet"
NAME = "profile"
# The system trace is small; instructions and DMA packets are what takes minutes.
SYSTEM_ONLY = (
    "--ignore-device-profile",
    "--ignore-instruction-trace",
    "--ignore-dma-trace",
    "--ignore-event-trace",
)
COLUMNS = (
    *("name", "start_ts", "end_ts", "duration_ns", "trace_event_source", "process_id"),
    *("nc_idx", "pcore_idx", "flow_id", "extra_attributes_json", "model_id", "exec_id"),
)


def device_time(
    program: Path, session: Path, folder: Path, left_s: float
) -> tuple[DeviceTime, str]:
    """Return the session's device time, and what it was read from: parquet or json.

    `folder` is an empty scratch folder. Raises ExplorerFailed, with every attempt in the message.
    """
    deadline = _Deadline(left_s)
    try:
        found = explorer_output.device_time(_parquet(program, session, folder, deadline))
        if found is not None:
            return found, "parquet"
        first = "its parquet has no nc_exec_running row"
    except ExplorerFailed as error:
        first = str(error)
    if deadline.left_s <= 0:
        raise ExplorerFailed(first)
    try:
        found = explorer_output.device_time(_json(program, session, folder, deadline))
    except ExplorerFailed as error:
        same = str(error) == first
        raise ExplorerFailed(first if same else f"{first}; as JSON: {error}") from None
    if found is None:
        raise ExplorerFailed(f"{first}; its JSON has no nc_exec_running row either")
    return found, "json"


def engine_rows(
    program: Path, session: Path, folder: Path, left_s: float
) -> list[Mapping[str, Any]]:
    """Return the rows of device profiles in the session's summary; raises ExplorerFailed.

    The whole session first; where that has none, each pair of a NEFF and its NTFF by itself.
    """
    deadline = _Deadline(left_s)
    rows = _summary(program, ["-d", str(session)], folder, deadline)
    if rows:
        return rows
    for pair in neff_pairs.pairs_of(session):
        for ntff in pair.ntffs:
            files = ["-n", str(session / pair.neff), "-s", str(session / ntff)]
            rows += _summary(program, files, folder, deadline)
    if not rows:
        raise ExplorerFailed("its summary has no device profile: was DEVICE among the modes?")
    return rows


class _Deadline:
    def __init__(self, seconds: float) -> None:
        import time

        self._now = time.monotonic
        self._end = self._now() + seconds

    @property
    def left_s(self) -> float:
        return self._end - self._now()


def _parquet(program: Path, session: Path, folder: Path, deadline: _Deadline) -> list[Any]:
    try:
        from pyarrow import parquet
    except ImportError:
        raise ExplorerFailed("pyarrow is not installed, so parquet cannot be read") from None
    data = folder / "data"
    arguments = [
        *("view", "-d", str(session), "--data-path", str(data), "--display-name", NAME),
        *("--ingest-only", "--disable-ui", "--force", *SYSTEM_ONLY),
    ]
    binary.call(program, arguments, folder, deadline.left_s)
    tables = sorted(data.rglob(TABLE))
    if not tables:
        raise ExplorerFailed(f"{binary.NAME} view wrote no {TABLE}")
    rows: list[Any] = []
    for path in tables:
        try:
            has = set(parquet.read_schema(path).names)
            read = parquet.read_table(
                path,
                columns=[name for name in COLUMNS if name in has],
                filters=[("name", "==", "nc_exec_running")],
            )
            rows += read.to_pylist()
        except Exception as error:  # pyarrow raises its own kinds for a broken or other file
            raise ExplorerFailed(
                f"{TABLE} cannot be read ({type(error).__name__}: {error})"
            ) from None
    return rows


def _json(program: Path, session: Path, folder: Path, deadline: _Deadline) -> list[Any]:
    target = folder / "system.json"
    arguments = ["view", "-d", str(session), "--output-format", "json"]
    arguments += ["--output-file", str(target), "--disable-ui", "--ignore-device-profile"]
    said = binary.call(program, arguments, folder, deadline.left_s)
    return explorer_output.events_in(_written(target, folder, "system_profile*.json", said.stdout))


def _summary(
    program: Path, inputs: Sequence[str], folder: Path, deadline: _Deadline
) -> list[Mapping[str, Any]]:
    target = folder / "summary.json"
    target.unlink(missing_ok=True)
    arguments = ["view", *inputs, "--output-format", "summary-json"]
    arguments += ["--output-file", str(target), "--disable-ui"]
    said = binary.call(program, arguments, folder, deadline.left_s)
    return engines.rows_in(_written(target, folder, "*summary*.json", said.stdout))


def _written(target: Path, folder: Path, pattern: str, stdout: str) -> Any:
    """The JSON of a call: in the file that was asked for, one named as published, or printed."""
    for path in (target, *sorted(folder.glob(pattern))):
        if path.is_file() and path.stat().st_size:
            text = path.read_text(encoding="utf-8", errors="replace")
            break
    else:
        text = stdout
    if not text.strip():
        raise ExplorerFailed(f"{binary.NAME} view gave no output")
    found = explorer_output.json_in(text)
    if found is None:
        raise ExplorerFailed(f"{binary.NAME} view gave no JSON that can be read")
    return found
