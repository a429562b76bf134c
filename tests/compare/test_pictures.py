"""Pictures: light, of the right size, and watermarked inside the plot area when simulated."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from src.analyze import plots
from src.analyze.comparison import compare

from .making import measured
from .test_comparison import ODD, nine


def pixels(path: Path) -> np.ndarray:
    from matplotlib.image import imread

    return np.asarray(imread(path))[..., :3]


@pytest.fixture(scope="module")
def drawn(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, np.ndarray]]:
    made = {}
    for device in ("neuron", "simulated"):
        folder = tmp_path_factory.mktemp(device)
        paths = plots.draw(compare(nine(device)), folder)
        made[device] = {path.name: pixels(path) for path in paths}
    return made


def test_a_sweep_over_variants_and_inputs_has_three_pictures(drawn: dict) -> None:  # type: ignore[type-arg]
    assert set(drawn["neuron"]) == {"bars.png", "lines.png", "operators.png"}
    for picture in drawn["neuron"].values():
        assert picture.shape[1] == plots.SIZE_INCHES[0] * plots.DPI
        assert picture.mean() > 0.75  # light
        assert picture.std() > 0.05  # and not empty


def test_the_word_simulated_lies_across_the_plot_area(drawn: dict) -> None:  # type: ignore[type-arg]
    for name, measured_picture in drawn["neuron"].items():
        height, width, _ = measured_picture.shape
        inner = slice(height // 4, 3 * height // 4), slice(width // 4, 3 * width // 4)

        def pink(picture: np.ndarray, inner: tuple[slice, slice] = inner) -> float:
            area = picture[inner]
            return float(((area[..., 0] > area[..., 1] + 0.08) & (area[..., 0] > 0.85)).mean())

        assert pink(drawn["simulated"][name]) > pink(measured_picture) + 0.01, name


@pytest.mark.parametrize("name", ODD)
def test_whatever_the_store_holds_can_be_drawn(name: str, tmp_path: Path) -> None:
    for path in plots.draw(compare(ODD[name]), tmp_path):
        assert path.stat().st_size > 1000


def test_the_users_own_matplotlib_settings_change_nothing(tmp_path: Path) -> None:
    import matplotlib

    with matplotlib.rc_context({"figure.facecolor": "black", "font.size": 3}):
        plots.draw(compare(nine()), tmp_path)
        assert matplotlib.rcParams["font.size"] == 3
    assert pixels(tmp_path / "bars.png").mean() > 0.75


def test_dollars_in_a_name_are_no_mathematics(tmp_path: Path) -> None:
    assert plots.draw(compare([measured("$\\frac{1}$"), measured("a$b")]), tmp_path)
