"""The configuration as dataclasses with their defaults. No torch, mlflow or hydra.

run.py registers `Config` with Hydra and has rules.py check it; the child reads the same types
back from spec.json. Making a configuration never touches a device, a file or the network.
"""

from __future__ import annotations

import dataclasses
import types
import typing
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

MISSING = "???"  # OmegaConf's word for a value that must be given
DTYPES = ("bfloat16", "float16", "float32")
PROFILE_MODES = ("DEVICE", "RUNTIME", "CPU_UTIL", "HOST_MEMORY")  # neuron_api: ProfileMode
EXECUTIONS = ("default", "async", "blocking")
ANNOTATIONS = ("modules",)
NUMERICS = ("fail", "warn", "off")
SYNCS = ("window", "step")
SCOPES = ("whole", "layers")
ORDERS = ("as_typed", "interleaved")
GROUPS = ("workload", "variant", "input", "profiler", "device", "tracking")
EXPLORERS = ("off", "system", "full")
ELSEWHERE = "elsewhere"
"""Stands for the option of a group that another script chose: ingest does not know it."""


def _open_dict() -> Any:
    """An empty mapping that takes new keys without `+`, inside an otherwise closed schema."""
    from omegaconf import OmegaConf

    return OmegaConf.create({}, flags={"struct": False})


@dataclass
class WorkloadConfig:
    name: str = MISSING
    implementations: list[str] = field(default_factory=list)
    """The functions of the workload's module; `variant.implementation` picks one."""
    uses_cores: int = 1
    """NeuronCores that one step runs on; more `cores` than this is refused."""
    numerics: str = "fail"
    """What a wrong result means: fail (no timing), warn, or off (no reference is computed)."""
    tolerance: float | None = None
    """Largest accepted max|y-r| / max|r|; None: by dtype, see measure/numerics.py."""
    phase: str | None = None
    """One of `phases`; a custom workload gets it as an argument."""
    phases: list[str] = field(default_factory=list)
    annotate: str | None = None
    """modules: mark a custom model's modules in the trace, for a table by module."""
    target: str | None = None
    """custom: path/file.py:function or package.module:function; docs/your_own_model.md."""
    kwargs: Any = field(default_factory=_open_dict)
    """custom: further arguments of the target."""


@dataclass
class CompileConfig:
    """Arguments of torch.compile."""

    backend: str = "neuron"
    fullgraph: bool = True
    dynamic: bool = False
    mode: str | None = None
    options: dict[str, Any] = field(default_factory=dict)
    scope: str = "whole"
    """whole: the callable as one; layers: each child of a model's largest ModuleList by itself."""


@dataclass
class VariantConfig:
    name: str = MISSING
    implementation: str = MISSING
    compile: CompileConfig | None = None


@dataclass
class InputConfig:
    name: str = MISSING
    shape: Any = MISSING
    """Sizes, as [8,2048,4096] or 8x2048x4096; rules.checked makes it a list of int. None: custom
    workloads may take sizes by name instead."""
    batch: int | None = None
    seq: int | None = None
    dims: Any = field(default_factory=_open_dict)
    """Further sizes by name, for custom workloads."""
    dtype: str = "bfloat16"
    seed: int = 0


@dataclass
class ScheduleConfig:
    """Steps of torch.profiler.schedule that come before the recorded ones, in each window."""

    skip_first: int = 0
    wait: int = 0
    warmup: int = 0


@dataclass
class ProfilerConfig:
    name: str = MISSING
    modes: list[str] = field(default_factory=lambda: ["RUNTIME"])
    """NeuronConfig: which data streams are recorded."""
    max_events_per_nc: int | None = None
    """NeuronConfig: events kept for each NeuronCore, the oldest are dropped; None: its default."""
    capture_cores: str | None = None
    """NeuronConfig capture_enabled_for_nc: trace only these of `cores`; None: all of them."""
    neff_cache_dir: str | None = None
    """NeuronConfig: where compiled NEFFs are looked up; None: the effective NEFF cache."""
    precache_node_info: bool | None = None
    """NeuronConfig: gather NEFF metadata before the window; None: its default."""
    correlate_device_time: bool = True
    """NeuronConfig: put device time on the operators, which gives Self NEURON."""
    record_shapes: bool = False
    with_stack: bool = False
    with_flops: bool = False
    profile_memory: bool = False
    acc_events: bool = False
    schedule: ScheduleConfig = field(default_factory=ScheduleConfig)
    warmup: int = 3
    """Calls before the first window, not recorded; at least 3 on hardware."""
    steps: int = 1
    """Recorded calls in one window; results are per step."""
    repeats: int = 5
    """Windows; the median over them is reported."""
    sync: str = "window"
    """Inside a window, synchronize at its end, or after each step."""
    latency_calls: int = 10
    """Unprofiled calls for host latency, each way, within measure/latency.py's time; 0: none."""
    allow_compile_in_window: bool = False
    """Accept a window in which something was compiled."""


@dataclass
class CostConfig:
    """Constants of the simulated device's cost model; sources in conf/device/simulated.yaml."""

    dispatch_us: float = MISSING  # type: ignore[assignment]  # OmegaConf's marker
    hbm_bytes_per_s: float = MISSING  # type: ignore[assignment]
    tensor_flops_per_s: dict[str, float] = field(default_factory=dict)
    vector_flops_per_s: float = MISSING  # type: ignore[assignment]


@dataclass
class DeviceConfig:
    name: str = MISSING
    env: Any = field(default_factory=_open_dict)
    """Environment variables for the child, set before torch is imported."""
    cores: int = 1
    """Logical NeuronCores that the simulated device has."""
    memory_bytes: int = 0
    most_step_flops: float | None = None
    """Simulated device: a step with more is refused, because this computer would compute it."""
    cost: CostConfig | None = None


@dataclass
class TrackingConfig:
    name: str = MISSING
    root: str | None = None
    """Folder of the store and of runs not tracked yet; None: the repository's mlruns/."""
    uri: str | None = None
    """An MLflow tracking URI; None: the sqlite store under `root`."""
    experiment: str | None = None
    """None: the workload's name. Simulated runs go to `<name> (simulated)`."""
    allow_simulated: bool = False
    """Let a simulated run go to a tracking server."""
    strict_names: bool = False
    """Replace `:` in metric names, for MLflow servers that refuse it."""
    user: str | None = None
    """Stands for the login name in MLflow's user tag; None: MLflow's own choice."""


@dataclass
class SweepConfig:
    """Settings of a whole sweep; no part of what one run measures."""

    preview: bool = False
    """List the jobs and touch nothing."""
    resume: bool = False
    """Skip a job whose measurement_id already has a FINISHED run."""
    order: str = "as_typed"
    """interleaved: variants alternate (A B B A), so that drift favours none of them."""
    pool: str | None = None
    """NeuronCores that jobs running at the same time lease theirs from."""


@dataclass
class Config:
    workload: WorkloadConfig = field(default_factory=WorkloadConfig)
    variant: VariantConfig = field(default_factory=VariantConfig)
    input: InputConfig = field(default_factory=InputConfig)
    profiler: ProfilerConfig = field(default_factory=ProfilerConfig)
    device: DeviceConfig = field(default_factory=DeviceConfig)
    tracking: TrackingConfig = field(default_factory=TrackingConfig)
    cores: str = "0"
    """Logical NeuronCores that this run takes and traces: 0, 0-3 or 0,2-5."""
    sweep: SweepConfig = field(default_factory=SweepConfig)
    execution: str = "default"
    """How eager operators are launched: default (the release decides), async or blocking."""
    explorer: str = "off"
    """neuron-explorer after the run: off, system (executions), full (the engines too)."""
    explorer_timeout_s: float = 600.0
    """For all of it; what is not done by then is left out."""


@dataclass(frozen=True)
class Spec:
    """One run as asked: the checked configuration and how it was typed."""

    config: Config
    overrides: tuple[str, ...] = ()
    sweep_id: str | None = None
    job: int = 0
    concurrent_jobs: int = 1
    """Jobs that ran at the same time; host times differ then."""
    description: str = ""
    tags: Mapping[str, str] = field(default_factory=dict)

    @property
    def choices(self) -> dict[str, str]:
        """The chosen option of each group, under the group's name."""
        return {group: getattr(self.config, group).name for group in GROUPS}

    @property
    def captured_elsewhere(self) -> bool:
        """Whether another script made the profile, so that the settings are not known."""
        return self.config.profiler.name == ELSEWHERE

    def to_json(self) -> dict[str, Any]:
        plain: dict[str, Any] = _plain(dataclasses.asdict(self))
        return plain


def spec_from_json(data: Mapping[str, Any]) -> Spec:
    """Read back what `Spec.to_json` wrote; keys of another version are ignored."""
    config = _build(Config, data["config"])
    rest = {k: v for k, v in data.items() if k in _names(Spec) and k != "config"}
    rest["overrides"] = tuple(rest.get("overrides", ()))
    return Spec(config=config, **rest)


def config_from_mapping(data: Mapping[str, Any]) -> Config:
    """Make the plain dataclasses from nested mappings (OmegaConf's `to_container`)."""
    built: Config = _build(Config, data)
    return built


def unknown_keys(data: Mapping[str, Any], cls: type = Config, path: str = "") -> list[str]:
    """List the dotted keys of `data` that the schema does not have, as Hydra's `+key=` can add."""
    hints = typing.get_type_hints(cls)
    unknown = [path + key for key in data if key not in hints]
    for key, value in data.items():
        inner = dataclass_in(hints.get(key))
        if inner and isinstance(value, Mapping):
            unknown += unknown_keys(value, inner, f"{path}{key}.")
    return unknown


def _plain(value: Any) -> Any:
    """Mappings of OmegaConf as dict: the open ones, in a configuration that was not checked yet."""
    if isinstance(value, Mapping):
        return {key: _plain(item) for key, item in value.items()}
    return value


def _names(cls: type) -> set[str]:
    return {f.name for f in dataclasses.fields(cls)}


def _build(cls: type, data: Mapping[str, Any]) -> Any:
    hints = typing.get_type_hints(cls)
    values = {}
    for name in _names(cls) & set(data):
        inner, value = dataclass_in(hints[name]), data[name]
        values[name] = _build(inner, value) if inner and isinstance(value, Mapping) else value
    return cls(**values)


def dataclass_in(hint: Any) -> type | None:
    """The dataclass that a type hint is or may be; None when it is neither."""
    options = typing.get_args(hint) if _is_union(hint) else (hint,)
    return next((o for o in options if dataclasses.is_dataclass(o) and isinstance(o, type)), None)


def _is_union(hint: Any) -> bool:
    return typing.get_origin(hint) in (typing.Union, types.UnionType)
