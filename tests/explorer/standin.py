"""A stand-in for the neuron-explorer program, from its published options, files and field names.

It knows nothing of this project. MOOD says how it behaves, DIARY is where it notes its calls. What
it tells of a session is in the session's `executions.json`, which the tests write.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from pathlib import Path

MOOD = os.environ.get("EXPLORER_MOOD", "ok")


def main() -> int:
    if (diary := os.environ.get("EXPLORER_DIARY")) is not None:
        with open(diary, "a", encoding="utf-8") as file:
            file.write(json.dumps(sys.argv[1:]) + "\n")
    if sys.argv[1:] == ["--version"]:
        print("2.31.14.0+abc (neuron-explorer)")
        return 0
    options = _options()
    if MOOD == "exit_1":
        print("INFO starting", "\nERROR: could not parse trace_info.pb", file=sys.stderr)
        return 1
    if MOOD == "hangs":
        # A helper that outlives it, and holds its pipes open, and ignores a polite request.
        code = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); time.sleep(600)"
        helper = subprocess.Popen([sys.executable, "-c", code])
        Path(os.environ["EXPLORER_HELPER"]).write_text(str(helper.pid))
        time.sleep(600)
    if MOOD == "no_output":
        return 0
    if options.output_format == "parquet":
        return _parquet(options)
    data = _summary(options) if options.output_format == "summary-json" else _system(options)
    text = json.dumps(data, indent=1 if MOOD == "log_noise" else None)
    if MOOD == "cut_short":
        text = text[: len(text) // 2]
    if MOOD == "log_noise":
        print("2026-12-01T10:00:00 INFO [ingest] reading {session}")
        print(text)
        print("2026-12-01T10:00:01 INFO [ingest] done {}")
    elif options.output_file:
        Path(options.output_file).write_text(text)
    else:
        print(text)
    return 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser("neuron-explorer")
    view = parser.add_subparsers(dest="command", required=True).add_parser("view")
    view.add_argument("-d", "--session-dir")
    view.add_argument("-n", "--neff-path")
    view.add_argument("-s", "--session-file")
    view.add_argument("--output-format", default="parquet")
    view.add_argument("--output-file")
    view.add_argument("--data-path")
    view.add_argument("--display-name")
    view.add_argument("--port")
    for flag in (
        *("--ingest-only", "--disable-ui", "--force", "--ignore-device-profile"),
        *("--ignore-system-profile", "--ignore-instruction-trace", "--ignore-dma-trace"),
        "--ignore-event-trace",
    ):
        view.add_argument(flag, action="store_true")
    options = parser.parse_args()
    if options.output_format == "parquet" and not options.display_name:
        parser.error("--display-name is required")
    return options


def _executions(options: argparse.Namespace) -> list[dict[str, int]]:
    path = Path(options.session_dir, "executions.json")
    if not path.is_file():
        return [{"start_ns": 1000, "length_ns": 2_000_000}]
    found: list[dict[str, int]] = json.loads(path.read_text())
    return found


def _rows(options: argparse.Namespace) -> list[dict[str, object]]:
    """One row for each physical core of an execution: two of them in the mood lnc2."""
    rows: list[dict[str, object]] = [
        {"name": "nrt_model_submit", "start": 0, "length": 9_000_000, "source": "neuron_rt"}
    ]
    for number, one in enumerate(_executions(options)):
        for physical in range(2 if MOOD == "lnc2" else 1):
            rows.append(  # noqa: PERF401
                {
                    "name": "nc_exec_running",
                    "start": one["start_ns"] + 1000 * physical,
                    "length": one["length_ns"] - 1000 * physical,
                    "source": "neuron_hw",
                    "flow": number % 2,  # flow ids start again for each model
                    "model": 10001 + number // 2,
                    "nc_idx": 0,
                    "pcore_idx": physical,
                }
            )
    return rows


def _parquet(options: argparse.Namespace) -> int:
    if MOOD in ("no_parquet", "plural", "log_noise", "cut_short"):
        return 0
    import pyarrow
    from pyarrow import parquet

    rows = _rows(options)
    table = pyarrow.table(
        {
            "id": list(range(len(rows))),
            "name": [row["name"] for row in rows],
            "start_ts": [row["start"] for row in rows],
            "end_ts": [int(str(row["start"])) + int(str(row["length"])) for row in rows],
            "duration_ns": [row["length"] for row in rows],
            "trace_event_source": [row["source"] for row in rows],
            "instance_id": ["i-0abc"] * len(rows),
            "process_id": ["7"] * len(rows),
            "nc_idx": [row.get("nc_idx") for row in rows],
            "pcore_idx": [row.get("pcore_idx") for row in rows],
            "flow_id": [[str(row["flow"])] if "flow" in row else [] for row in rows],
            "extra_attributes_json": [
                json.dumps({"model_id": row.get("model"), "exec_id": 1}) for row in rows
            ],
        }
    )
    name = f"{options.display_name}@latest"
    folder = Path(options.data_path, "profiles", "global", name)
    folder.mkdir(parents=True)
    parquet.write_table(table, folder / "SystemProfileEvents.parquet")
    if not options.ingest_only:
        time.sleep(600)  # it would serve the page now
    return 0


def _system(options: argparse.Namespace) -> dict[str, object]:
    events = [
        {
            "name": row["name"],
            "timestamp": row["start"],
            "duration": row["length"],
            "timestamp_unit": "ns",
            "process_id": "7",
            "type": 11,
            **({"exec_id": row["flow"], "model_id": row["model"]} if "flow" in row else {}),
            "nc_idx": row.get("nc_idx"),
            "device_core_idx": row.get("pcore_idx"),
        }
        for row in _rows(options)
    ]
    key = "trace_events" if MOOD == "plural" else "trace_event"
    return {key: events, "system_profile_metadata": [], "mem_usage": [], "cpu_util": []}


def _summary(options: argparse.Namespace) -> dict[str, object]:
    scale = 100 if MOOD == "percent" else 1
    row = {
        "total_time": 3.1322,
        "tensor_engine_active_time": 0.5657,
        "tensor_engine_active_time_percent": 0.1806 * scale,
        "vector_engine_active_time_percent": 0.25 * scale,
        "scalar_engine_active_time_percent": 0.05 * scale,
        "gpsimd_engine_active_time_percent": 0.004 * scale,
        "dma_active_time_percent": 0.8 * scale,
        "mfu_estimated_percent": 0.09 * scale,
        "mbu_estimated_percent": 0.6 * scale,
        "mfu_max_achievable_estimated_percent": 2.5,
        "hbm_read_bytes": 1_000_000,
        "hbm_write_bytes": 500_000,
    }
    if options.neff_path:
        return row
    if MOOD == "pairs":
        return {"s_1f": {"total_duration_ns": 5, "message_count": 2, "event_type_count": 1}}
    system = {"total_duration_ns": 5, "message_count": 2, "event_type_count": 1}
    return {"n_1f": row, "s_1f": system}


if __name__ == "__main__":
    sys.exit(main())
