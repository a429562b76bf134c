"""Tests of analyze/operators.py, labels: compiled regions of different runs line up."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from src.analyze.operators import labels, summarize
from src.rundir import OperatorRow, Operators, Window

REGION = "Torch-Compiled Region"


def row(name: str, neuron: float | None = None) -> OperatorRow:
    return OperatorRow(name, 1, 1.0, 1.0, neuron)


def window(*rows: OperatorRow) -> Window:
    return Window(1, rows, 1.0)


def operators(*windows: Window) -> Operators:
    return Operators("key_averages", windows)


def test_a_single_compiled_region_has_no_number_whatever_dynamo_called_it() -> None:
    for number in ("0/0", "3/0", "0/7", "1/0_1", "7/12_3"):
        summary = summarize(operators(window(row(f"{REGION}: {number}", neuron=375.5))))
        assert summary.metrics[f"self_neuron_us/{REGION}"] == 375.5
        assert (summary.rows[0].name, summary.rows[0].label) == (f"{REGION}: {number}", REGION)


def test_several_regions_are_numbered_by_appearance_not_by_heat() -> None:
    rows = (row(f"{REGION}: 4/0", neuron=1.0), row(f"{REGION}: 0/0_1", neuron=9.0))
    summary = summarize(operators(window(*rows), window(*rows[::-1], row(f"{REGION}: 9/9"))))
    assert {r.name: r.label for r in summary.rows} == {
        f"{REGION}: 4/0": f"{REGION} 1",
        f"{REGION}: 0/0_1": f"{REGION} 2",
        f"{REGION}: 9/9": f"{REGION} 3",
    }


region_names = st.from_regex(rf"{REGION}: [0-9]/[0-9](_[0-9])?", fullmatch=True)


@given(st.lists(st.one_of(region_names, st.sampled_from(["aten::mul", "aten::add"]))))
def test_labels_depend_on_the_order_of_regions_only(names: list[str]) -> None:
    given_labels = labels(names)
    assert len(set(given_labels.values())) == len(given_labels)  # no two share a metric
    regions = [name for name in dict.fromkeys(names) if name.startswith(REGION)]
    expected = [REGION] if len(regions) == 1 else [f"{REGION} {n + 1}" for n in range(len(regions))]
    assert [given_labels[name] for name in regions] == expected
    renamed = [
        f"{REGION}: 9{name[len(REGION) + 2 :]}" if REGION in name else name for name in names
    ]
    assert list(labels(renamed).values()) == list(given_labels.values())
    assert all(given_labels[name] == name for name in names if name not in regions)
