"""Fall-backs told by the shape of the trace: rows made by hand, as torch's FunctionEvents are."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from torch.autograd import DeviceType

from src.measure import fallbacks


def row(name: str, *children: Any, device_us: float = 0.0) -> Any:
    total = device_us + sum(child.device_time_total for child in children)
    made = SimpleNamespace(
        name=name,
        device_type=DeviceType.CPU,
        self_device_time_total=device_us,
        device_time_total=total,
        cpu_children=list(children),
        cpu_parent=None,
    )
    for child in children:
        child.cpu_parent = made
    return made


def flat(*rows: Any) -> list[Any]:
    return [one for top in rows for one in (top, *flat(*top.cpu_children))]


def to() -> Any:
    return row("aten::to", row("aten::_to_copy", row("aten::empty_strided"), row("aten::copy_")))


def native() -> Any:
    return row("aten::mul", device_us=5.0)


def test_an_operator_that_only_moves_data_fell_back() -> None:
    fallen = row("aten::scatter", to(), row("aten::scatter"), to())
    assert fallbacks.in_trace(flat(native(), fallen)) == {"aten::scatter"}


def test_one_that_copies_and_takes_device_time_did_not() -> None:
    upcast = row("aten::rms_norm", to(), row("aten::mul", device_us=3.0))
    assert fallbacks.in_trace(flat(native(), upcast)) == set()


def test_a_composite_whose_time_went_to_a_neighbour_is_not_blamed() -> None:
    joined = row("aten::layer_norm", to(), row("aten::native_layer_norm"))
    assert fallbacks.in_trace(flat(native(), joined)) == set()


def test_moving_data_is_no_fall_back_where_it_is_the_operators_work() -> None:
    rows = [to(), row("aten::clone", row("aten::copy_")), row("aten::contiguous", to())]
    assert fallbacks.in_trace(flat(native(), *rows)) == set()


def test_views_and_annotations_are_no_fall_backs() -> None:
    step = row("ProfilerStep#0", row("aten::transpose", row("aten::as_strided")), to())
    assert fallbacks.in_trace(flat(native(), step)) == set()


def test_without_any_device_time_nothing_can_be_told() -> None:
    assert fallbacks.in_trace(flat(row("aten::scatter", to()))) == set()


def test_what_a_copy_does_inside_is_not_blamed() -> None:
    inside = row("aten::to", row("aten::_to_copy", row("aten::fill_", row("aten::copy_"))))
    assert fallbacks.in_trace(flat(native(), inside)) == set()
