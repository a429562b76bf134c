"""The conf tree: every option composes, says its own name, and agrees with the code it names."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest
from hydra import compose, initialize_config_dir
from hydra.core.config_store import ConfigStore
from omegaconf import OmegaConf

from src import rules
from src.schema import GROUPS, Config, config_from_mapping, spec_from_json, unknown_keys
from src.schema import Spec as RunSpec

REPOSITORY = Path(__file__).resolve().parents[1]
CONF = REPOSITORY / "conf"
OPTIONS = [(group, path.stem) for group in GROUPS for path in sorted((CONF / group).glob("*.yaml"))]


def composed(*overrides: str) -> Config:
    ConfigStore.instance().store(name="schema", node=Config)
    with initialize_config_dir(str(CONF), version_base="1.3"):
        config = compose("config", list(overrides))
    data = OmegaConf.to_container(config, resolve=True)
    assert unknown_keys(data) == []
    return rules.checked(config_from_mapping(data))


@pytest.mark.parametrize(("group", "option"), OPTIONS)
def test_every_option_composes_and_is_named_as_its_file(group: str, option: str) -> None:
    custom = ["workload.target=x:build"]
    if option in ("named", "compiled_layers"):  # mean something for a custom workload only
        custom.append("workload=custom")
    is_custom = option == "custom" or len(custom) > 1
    config = composed(*(custom if is_custom else []), f"{group}={option}")
    assert getattr(config, group).name == option


@pytest.mark.parametrize("path", sorted((CONF / "workload").glob("*.yaml")), ids=lambda p: p.stem)
def test_the_implementations_a_workload_lists_are_the_functions_it_has(path: Path) -> None:
    module = REPOSITORY / "src/measure/workloads" / f"{path.stem}.py"
    if path.stem == "custom":
        pytest.skip("a custom workload's functions are the user's")
    names = {n.name for n in ast.parse(module.read_text()).body if isinstance(n, ast.FunctionDef)}
    functions = {name for name in names if not name.startswith("_")}
    listed = OmegaConf.load(path).implementations
    assert listed[0] == "naive"
    assert set(listed) == functions - {
        "make_inputs",
        "bytes_moved",
        "flops",
        "tokens",
        "host_bytes",
    }


def test_the_default_is_compiled_rms_norm_at_the_medium_input() -> None:
    config = composed()
    assert (config.workload.name, config.variant.name) == ("rms_norm", "compiled")
    assert config.input.shape == [1, 2048, 4096]
    assert (config.profiler.warmup, config.profiler.steps, config.profiler.repeats) == (3, 1, 5)
    assert (config.device.name, config.tracking.name) == ("auto", "local")


def test_a_shape_may_be_typed_as_text_or_as_a_list() -> None:
    as_text = composed("input.shape=8x2048x4096")
    assert as_text == composed("input.shape=[8,2048,4096]")


def test_an_environment_variable_needs_no_plus() -> None:
    assert composed("device.env.NEURON_RT_LOG_LEVEL=INFO").device.env == {
        "NEURON_RT_LOG_LEVEL": "INFO"
    }


def test_a_spec_reads_back_from_its_json() -> None:
    spec = RunSpec(config=composed("variant=fused"), overrides=("variant=fused",), job=3)
    assert spec_from_json(spec.to_json()) == spec


def test_a_spec_of_another_version_is_read_without_its_unknown_keys() -> None:
    data = RunSpec(config=composed()).to_json()
    data["config"]["input"]["new_thing"] = 1
    data["something"] = 2
    assert spec_from_json(data) == RunSpec(config=composed())
