"""A slip on the command line: one message in our words, exit code 2, and nothing left behind."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from .forking import Typist

SLIPS: list[tuple[str, str]] = [
    # groups
    ("variant=compild", "variant is one of compiled,"),
    ("variant=", "variant is one of"),
    ("variant=null", "takes the name of one of its options"),
    ("variant=3", "takes the name of one of its options"),
    ("workload=rmsnorm", "Type workload=rms_norm."),
    ("input=huge", "input is one of large, medium, named, small"),
    ("profiler=devices", "Type profiler=device."),
    ("device=cuda", "device is one of auto, neuron, simulated"),
    ("device=cpu", "device is one of auto, neuron, simulated"),
    ("tracking=mlflow", "tracking is one of local, none"),
    ("tracking=off", "tracking is one of local, none"),
    ("study=published", "Type study=published_rmsnorm."),
    ("+variant=naive", "Multiple values for variant"),
    ("~variant", "variant.name: no value"),
    # keys
    ("vraiant=naive", "Did you mean variant=...?"),
    ("inptu.shape=3", "Did you mean input=...?"),
    ("input.shaep=3", "Did you mean input.shape=...?"),
    ("profiler.windows=3", "profiler has"),
    ("profiler.modes.x=3", "profiler.modes.x: no such key"),
    ("variant.compile.foo=1", "variant.compile has"),
    ("+foo=1", "foo: no such key"),
    ("+input.foo=1", "input.foo: no such key"),
    ("~foo", "foo: no such key"),
    ("profiler.profile_output_dir=x", "tracking.root=<folder>"),
    # types
    ("input.seed=abc", "input.seed is a whole number"),
    ("input.seed=1.5", "input.seed is a whole number"),
    ("profiler.repeats=many", "profiler.repeats is a whole number"),
    ("profiler.repeats=null", "profiler.repeats is a whole number"),
    ("profiler.correlate_device_time=maybe", "is true or false"),
    ("profiler.modes=RUNTIME", "profiler.modes=[DEVICE,RUNTIME]"),
    ("cores=[0,1]", "such as 0, 0-3 or 0,2-5. Type cores=0."),
    ("input.dtype=null", "input.dtype is text"),
    ("workload.tolerance=tight", "workload.tolerance is a number"),
    ("device.env=3", "device.env"),
    # shapes
    ("input.shape=", "not a shape"),
    ("input.shape=0x4", "each size a whole number from 1"),
    ("input.shape=-1x4", "each size a whole number from 1"),
    ("input.shape=8xx4", "not a shape"),
    ("input.shape=1.5x4", "not a shape"),
    ("input.shape=0x10", "not a shape"),
    ("input.shape=[]", "not a shape"),
    ("input.shape=[8,a]", "not a shape"),
    ("input.shape=8,2,4", "input.shape=8x2x4"),
    ("input.shape=99999999x99999999", "at most 1,099,511,627,776"),
    # dtypes
    ("input.dtype=bf16", "Did you mean input.dtype=bfloat16?"),
    ("input.dtype=int8", "not one of bfloat16, float16, float32"),
    # cores
    ("cores=", "not a core list"),
    ("cores=a", "not a core list"),
    ("cores=3-0", "Type cores=0-3."),
    ("cores=0-", "not a core list"),
    ("cores=0-3", "uses 1"),
    ("cores='0,0'", "named twice"),
    ("cores=0,1", "\"cores='0,1'\""),
    ("cores=99999", "there is no NeuronCore"),
    ("profiler.capture_cores=1", "Type profiler.capture_cores=0."),
    # modes and the rest of the profiler
    ("profiler.modes=[]", "no mode"),
    ("profiler.modes=[GPU]", "not one of DEVICE, RUNTIME, CPU_UTIL, HOST_MEMORY"),
    ("profiler.steps=0", "Type profiler.steps=1"),
    ("profiler.repeats=0", "Type profiler.repeats=1"),
    ("profiler.warmup=-1", "Type profiler.warmup=0"),
    ("device=neuron profiler.warmup=1", "at least 3 on hardware"),
    ("profiler.max_events_per_nc=0", "Type profiler.max_events_per_nc=1"),
    ("execution=sync", "not one of default, async, blocking"),
    ("variant.compile.dynamic=true", "variant.compile.dynamic=false"),
    ("workload.numerics=loose", "not one of fail, warn, off"),
    ("workload.annotate=layers", "not one of modules"),
    ("workload.annotate=modules", "is a function without modules"),
    ("workload=custom workload.target=m.py:build workload.annotate=modules", "Type variant=naive"),
    # sweeps
    ("-m variant=naive,fusd", "Type variant=fused."),
    ("-m input.shape=8x8,0x8", "input.shape=0x8"),
    ("-m input.dtype=float32,float64", "input.dtype=float64"),
    ("variant=naive,fused", "-m variant=naive,fused"),
    ("-m cores=0,5-3", "runs backwards"),
    ("-m device=neuron hydra/launcher=joblib hydra.launcher.n_jobs=2 input.seed=1,2", "sweep.pool"),
    ("-m hydra/launcher=jobs variant=naive,fused", "hydra/launcher"),
    # studies and flags
    ("study=published_rmsnorm input.dtype=bf16", "Did you mean input.dtype=bfloat16?"),
    ("--foo", "no such flag"),
    ("--variant=naive", "no such flag"),
    ("--cfg everything", "no such flag"),
    ("foo", "cannot be read"),
    ("variant=a=b", "cannot be read"),
    ("input=[1", "cannot be read"),
    ("=3", "takes the name"),
    ("workload.name=${foo}", "Interpolation key 'foo' not found"),
    # stores
    ("tracking.uri=mlruns", "tracking.root=<folder>"),
    ("tracking.uri=file:///tmp/x", "sqlite:////abs/mlflow.db"),
    ("tracking.uri=ftp://host", "tracking.root=<folder>"),
    ("tracking.uri=http://127.0.0.1:1 tracking.allow_simulated=true", "127.0.0.1:1"),
    ("tracking.uri=http://u:secret@127.0.0.1:1 tracking.allow_simulated=true", "127.0.0.1:1"),
    ("device=simulated tracking.uri=http://127.0.0.1:1", "tracking.allow_simulated=true"),
    ("tracking.root=/proc/mlruns", "tracking.root=<a folder you may write to>"),
    ("tracking.uri=sqlite:////proc/x.db", "tracking.root="),
    ("tracking.root=/dev/null", "tracking.root="),
    ("tracking.root=/tmp/\u00e9", "\"tracking.root='...'\""),
    ("from_run=", "Type from_run=<RUN_ID>"),
    ("from_run=abc", "from_run=abc"),
    # environment and device
    ("device.env.A-B=1", "device.env.A-B"),
    ("device.env.X=[1]", "device.env.X"),
    ("device=neuron", "torch_neuronx is not installed"),
    ("cores=4", "the simulated device has 4 NeuronCores"),
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("typed")


@pytest.fixture(scope="module")
def typist(folder: Path) -> Iterator[Typist]:
    with Typist(folder) as typist:
        yield typist


@pytest.fixture
def empty(folder: Path) -> Iterator[Path]:
    yield folder
    for left in folder.iterdir():  # one slip that leaves something must not fail the next
        shutil.rmtree(left)


def test_the_table_of_slips_is_long() -> None:
    assert len(SLIPS) >= 60
    assert len({typed for typed, _ in SLIPS}) == len(SLIPS)


@pytest.mark.parametrize(("typed", "says"), SLIPS, ids=[typed for typed, _ in SLIPS])
def test_a_slip_is_one_message_with_exit_code_2_and_leaves_nothing(
    typed: str, says: str, typist: Typist, empty: Path
) -> None:
    words = typed.split()
    keys = {word.partition("=")[0] for word in words}
    if not keys & {"tracking.root", "tracking"}:
        words.append("tracking.root=mlruns")
    done = typist.type(*words)
    assert done.code == 2, done
    assert says in done.err
    assert "Traceback" not in done.err + done.out
    assert "secret" not in done.err + done.out
    assert len(done.err.strip().splitlines()) == 1, done.err
    assert done.out == ""
    assert list(empty.iterdir()) == []


@pytest.mark.parametrize(
    "typed", ["variant=naive --cfg job input=small", "--cfg job input=small", "-c job input=small"]
)
def test_a_flag_may_stand_anywhere(typed: str, typist: Typist, empty: Path) -> None:
    done = typist.type(*typed.split())
    assert (done.code, done.err) == (0, "")
    assert "shape: 1x128x1024" in done.out


TEXT = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=12)
GRAMMAR = st.text("0123456789x,-[]{}()'\"=.:$ naive", max_size=14)
OVERRIDES = st.one_of(
    st.builds("input.shape={}".format, st.one_of(GRAMMAR, TEXT, st.lists(st.integers()))),
    st.builds("cores={}".format, st.one_of(GRAMMAR, TEXT)),
    st.builds("{}={}".format, TEXT, TEXT),
    st.builds("profiler.modes={}".format, GRAMMAR),
    GRAMMAR,
)


@settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(overrides=st.lists(OVERRIDES, min_size=1, max_size=2), sweeping=st.booleans())
def test_no_text_on_the_command_line_gives_a_traceback(
    overrides: list[str], sweeping: bool, typist: Typist, empty: Path
) -> None:
    # A preview runs nothing, so that whatever happens to be right ends at once with 0.
    safe = [word for word in overrides if not word.startswith(("-", "hydra", "+hydra", "++hydra"))]
    flags = ["-m"] if sweeping else []
    done = typist.type(*flags, *safe, "sweep.preview=true", "tracking.root=mlruns")
    assert done.code in (0, 2), done
    assert "Traceback" not in done.err + done.out
    if done.code == 2:
        assert re.search(r"\w", done.err)
    assert list(empty.iterdir()) == []
