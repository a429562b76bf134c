"""Every operator in the table gives on the device what it gives on the CPU."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from .operator_cases import CASES
from .operator_cases import inputs as make_inputs


def _same(host: Any, device: Any, name: str) -> None:
    if isinstance(host, (tuple, list)):
        assert len(host) == len(device)
        for one, other in zip(host, device, strict=True):
            _same(one, other, name)
        return
    assert device.device.type == "neuron"
    assert device.dtype == host.dtype
    assert device.shape == host.shape
    assert device.stride() == host.stride()
    back = device.cpu()
    assert back.device.type == "cpu"
    assert torch.equal(back.isnan(), host.isnan())
    assert torch.equal(back.nan_to_num(), host.nan_to_num()), f"{name}: {back} is not {host}"


@pytest.mark.parametrize("name", CASES)
def test_an_operator_gives_what_the_cpu_gives(name: str) -> None:
    answers = []
    for device in ("cpu", "neuron"):
        given = make_inputs(device)
        torch.manual_seed(3)
        answers.append(CASES[name](given))
    _same(*answers, name)


def test_the_table_is_as_long_as_promised() -> None:
    assert len(CASES) >= 60
