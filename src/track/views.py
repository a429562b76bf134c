"""Saved views of an experiment in MLflow's UI, written as experiment tags with fixed ids.

Called by run.py and summary_run.py. A view that a user changed or deleted is left alone: a tag
beside it keeps the hash of what was written last.
"""

from __future__ import annotations

import base64
import hashlib
import json
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from .connect import patiently
from .store import Store

if TYPE_CHECKING:
    from mlflow.tracking import MlflowClient

SHARED = "mlflow.sharedViewState."
WRITTEN = "saved_view_sha256."
CHARTS, TABLE = "device-time", "runs-table"
TOP_METRICS = ("self_neuron_us", "self_cpu_us", "operator_calls")
TOP_SECTION = "Per step"
LONGEST_TAG = 5000  # characters of an experiment tag on servers before MLflow 3
MOST_BARS = 100  # runs in one chart; more freeze the page
WEB = ("http://", "https://")
LOCAL_UI = "http://127.0.0.1:5000"
COLUMNS = (
    "params.`variant`",
    "params.`input.shape`",
    "params.`cores`",
    "params.`device`",
    "metrics.`self_neuron_us`",
    "metrics.`self_cpu_us`",
    "metrics.`operator_calls`",
    "metrics.`fallback_operators`",
    "tags.`capture_health`",
    "tags.`verdict`",
    "tags.`verdict_reason`",
)
# Narrow enough that the headline metrics show without scrolling.
COLUMN_WIDTHS = dict.fromkeys(COLUMNS, 95) | {"params.`cores`": 60}


@dataclass(frozen=True)
class View:
    """One saved view: its fixed id, its name in the menu, and what it shows."""

    view_id: str
    name: str
    filter_string: str
    charts: bool

    def state(self) -> dict[str, Any]:
        """The page's state in MLflow 3.17's own words."""
        found: dict[str, Any] = {
            "searchFilter": self.filter_string,
            "orderByKey": "attributes.start_time",
            "orderByAsc": False,
            "startTime": "ALL",
            "lifecycleFilter": "Active",
            "datasetsFilter": [],
            "modelVersionFilter": "All Runs",
            "selectedColumns": list(COLUMNS),
            "columnOrder": list(COLUMNS),
            "columnWidths": COLUMN_WIDTHS,
            "runsHiddenMode": "SHOW_ALL",
            "viewMaximized": False,
            "runListHidden": False,
            "isAccordionReordered": True,
            "useGroupedValuesInCharts": True,
            "hideEmptyCharts": True,
            "groupBy": None,
        }
        if self.charts:
            found["compareRunCharts"] = [_bar_chart(self.view_id, metric) for metric in TOP_METRICS]
            found["compareRunSections"] = [_section(self.view_id, TOP_SECTION)]
        return found


def _bar_chart(view_id: str, metric: str) -> dict[str, Any]:
    return {
        "uuid": f"{view_id}-{metric}",
        "type": "BAR",
        "metricKey": metric,
        "metricSectionId": f"{view_id}-{TOP_SECTION}",
        "runsCountToCompare": MOST_BARS,
        "deleted": False,
        "isGenerated": False,
    }


def _section(view_id: str, name: str) -> dict[str, Any]:
    return {
        "uuid": f"{view_id}-{name}",
        "name": name,
        "display": True,
        "isReordered": True,
        "deleted": False,
        "isGenerated": False,
    }


def of_experiment() -> tuple[View, ...]:
    """The views that each experiment has."""
    profiles = "tags.kind = 'profile'"
    return (
        View(CHARTS, "Device time by variant", profiles, charts=True),
        View(TABLE, "Runs, columns that matter", profiles, charts=False),
    )


def of_sweep(sweep_id: str, run_ids: Sequence[str] = ()) -> View:
    """The runs of one sweep; `run_ids` when some of them are another sweep's (sweep.resume)."""
    chosen = f"tags.kind = 'profile' and tags.sweep_id = '{sweep_id}'"
    if run_ids:
        listed = ", ".join(f"'{run_id}'" for run_id in run_ids)
        chosen = f"attributes.run_id IN ({listed})"
    return View(f"sweep-{sweep_id}", f"Sweep {sweep_id}", chosen, charts=True)


def of_input(workload: str, shape: str, dtype: str) -> View:
    """All runs of one workload on one input."""
    chosen = (
        f"tags.kind = 'profile' and params.workload = '{workload}' and "
        f"params.`input.shape` = '{shape}' and params.`input.dtype` = '{dtype}'"
    )
    mark = hashlib.sha256(chosen.encode()).hexdigest()[:12]
    return View(f"input-{mark}", f"{workload} {shape} {dtype}", chosen, charts=True)


def install(
    client: MlflowClient, store: Store, experiment_id: str, views: Sequence[View]
) -> list[str]:
    """Write the views that are new or that we wrote last; returns the ids of those written."""
    experiment = patiently(store, lambda: client.get_experiment(experiment_id))
    tags: Mapping[str, str] = experiment.tags
    made_ms = int(experiment.creation_time or 0)
    written = []
    for view in views:
        value = encoded(view, made_ms)
        current, ours = tags.get(SHARED + view.view_id), tags.get(WRITTEN + view.view_id)
        deleted_or_foreign = (current is None) != (ours is None)
        if deleted_or_foreign or current == value or (current and _hash(current) != ours):
            continue
        # The hash first: if the second call fails, the view is missing and stays so, but never
        # one that could not be told from a user's own.
        _set_tag(client, store, experiment_id, WRITTEN + view.view_id, _hash(value))
        _set_tag(client, store, experiment_id, SHARED + view.view_id, value)
        written.append(view.view_id)
    return written


def _set_tag(client: MlflowClient, store: Store, experiment_id: str, key: str, value: str) -> None:
    patiently(store, lambda: client.set_experiment_tag(experiment_id, key, value))


def encoded(view: View, made_ms: int) -> str:
    """The tag's value. The state is deflated, so that older servers' limit is kept."""
    state = zlib.compress(json.dumps(view.state(), sort_keys=True).encode(), 9)
    whole = {
        "name": view.name,
        "createdAt": made_ms,
        "updatedAt": made_ms,
        "state": "deflate;" + base64.b64encode(state).decode(),
    }
    return json.dumps(whole)


def _hash(value: str) -> str:
    return hashlib.sha256(value.encode()).hexdigest()


def address(store: Store) -> str:
    """Where the UI of a store is: the server's own address, or that of `mlflow ui`."""
    return store.shown_uri if store.shown_uri.startswith(WEB) else LOCAL_UI


def link(base: str, experiment_id: str, view: View) -> str:
    """The address that opens a saved view; `base` is the UI's own, without a slash at its end."""
    mode = "CHART" if view.charts else "TABLE"
    key = quote(view.view_id, safe="")
    return (
        f"{base}/#/experiments/{experiment_id}/runs?viewStateShareKey={key}&compareRunsMode={mode}"
    )
