"""The environment stamp: what planted files say, and nothing that can stop a run."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from src import schema
from src.measure import environment
from src.measure.devices import Device

DEVICE = Device(
    name="neuron",
    torch_device=torch.device("cpu"),
    synchronize=lambda: None,
    profiling=None,
    device_time_source="key_averages",
    executions=lambda session: None,
    description="neuron:0",
    chip="trn2",
    lnc=2,
    versions={"torch": "2.13.0", "torch_neuronx": "2.13.3.0.1"},
)


def plant(root: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return root


def stamp(root: Path, environ: dict[str, str] | None = None, **more: Any) -> dict[str, Any]:
    return environment.stamp(DEVICE, environ or {}, root=root, **more)


def config(**workload: Any) -> schema.Config:
    settings = schema.WorkloadConfig(**{"name": "rms_norm", "kwargs": {}, **workload})
    return schema.Config(workload=settings)


def test_a_trainium_instance_is_told_by_its_files(tmp_path: Path) -> None:
    root = plant(
        tmp_path,
        {
            "sys/devices/virtual/dmi/id/product_name": "trn2.48xlarge\n",
            "sys/devices/virtual/dmi/id/sys_vendor": "Amazon EC2\n",
            "sys/module/neuron/version": "2.24.7.0\n",
            "opt/aws/neuron/lib/libnrt.so.2.28.19.0": "",
            "proc/cpuinfo": "processor : 0\nmodel name : Intel(R) Xeon(R) 8488C\n",
            "proc/meminfo": "MemTotal:       2097152 kB\nMemFree: 1 kB\n",
            "proc/1/cgroup": "0::/\n",
        },
    )
    (root / "opt/aws/neuron/lib/libnrt.so.1").symlink_to("libnrt.so.2.28.19.0")
    found = stamp(root)
    assert found["instance_type"] == "trn2.48xlarge"
    assert found["versions"]["neuron_driver"] == "2.24.7.0"
    assert found["versions"]["neuron_runtime"] == "2.28.19.0"
    assert found["versions"]["torch_neuronx"] == "2.13.3.0.1"
    assert found["cpu_model"] == "Intel(R) Xeon(R) 8488C"
    assert found["memory_total_bytes"] == 2 * 1024**3
    assert found["container"] is None
    assert (found["chip"], found["lnc"]) == ("trn2", 2)


@pytest.mark.parametrize(
    ("files", "environ", "kind"),
    [
        ({".dockerenv": ""}, {}, "docker"),
        ({"run/.containerenv": ""}, {}, "podman"),
        ({"proc/1/cgroup": "0::/kubepods/besteffort/pod1\n"}, {}, "kubepods"),
        ({}, {"KUBERNETES_SERVICE_HOST": "10.0.0.1"}, "kubernetes"),
    ],
)
def test_a_container_shows(
    files: dict[str, str], environ: dict[str, str], kind: str, tmp_path: Path
) -> None:
    assert stamp(plant(tmp_path, files), environ)["container"] == kind


def test_a_machine_that_tells_nothing_gives_a_whole_stamp(tmp_path: Path) -> None:
    found = stamp(tmp_path / "nowhere", project=tmp_path)
    assert found["instance_type"] is None
    assert "neuron_driver" not in found["versions"]
    assert (found["project_commit"], found["project_dirty"]) == (None, None)
    assert found["memory_total_bytes"] is None
    assert json.loads(json.dumps(found)) == found


def test_files_that_cannot_be_read_are_no_reason_to_fail(tmp_path: Path) -> None:
    for name in ("product_name", "sys_vendor"):
        (tmp_path / "sys/devices/virtual/dmi/id" / name).mkdir(parents=True)
    (tmp_path / "proc/meminfo").mkdir(parents=True)
    (tmp_path / "proc/cpuinfo").mkdir()
    (tmp_path / "sys/module/neuron").mkdir(parents=True)
    (tmp_path / "sys/module/neuron/version").write_bytes(b"\xff\xfe\x00")
    found = stamp(tmp_path)
    assert found["instance_type"] is None
    assert found["memory_total_bytes"] is None
    assert "neuron_driver" not in found["versions"]


def test_a_laptops_product_name_is_no_instance_type(tmp_path: Path) -> None:
    root = plant(tmp_path, {"sys/devices/virtual/dmi/id/product_name": "XPS 13\n"})
    assert stamp(root)["instance_type"] is None


def test_every_variable_that_can_change_timing_is_kept_and_no_other(tmp_path: Path) -> None:
    kept = {"NEURON_RT_X": "1", "TORCH_NEURONX_Y": "2", "XLA_Z": "3", "NKI_W": "4"}
    found = stamp(tmp_path, {**kept, "HOME": "/root", "AWS_SECRET": "s"})
    assert found["variables"] == kept


def test_the_projects_commit_and_a_changed_file_are_told(tmp_path: Path) -> None:
    if shutil.which("git") is None:
        pytest.skip("there is no git here")
    plant(tmp_path, {"a.py": "x = 1\n"})
    who = ["-c", "user.name=a", "-c", "user.email=a@example.org"]
    for words in (["init", "-q"], ["add", "a.py"], [*who, "commit", "-q", "-m", "first"]):
        subprocess.run(["git", "-C", str(tmp_path), *words], check=True)
    clean = stamp(tmp_path, project=tmp_path)
    assert len(clean["project_commit"]) == 40
    assert clean["project_dirty"] is False
    (tmp_path / "a.py").write_text("x = 2\n")
    assert stamp(tmp_path, project=tmp_path)["project_dirty"] is True


def test_without_git_on_the_path_the_commit_is_not_known(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert stamp(tmp_path)["project_commit"] is None


def test_the_workloads_source_is_hashed(tmp_path: Path) -> None:
    built_in = environment.WORKLOADS / "rms_norm.py"
    digest = hashlib.sha256(built_in.read_bytes()).hexdigest()
    assert stamp(tmp_path, config=config())["workload_sha256"] == digest
    own = plant(tmp_path, {"model.py": "def build(): ...\n"}) / "model.py"
    mine = config(name="custom", target=f"{own}:build")
    assert stamp(tmp_path, config=mine)["workload_sha256"] == (
        hashlib.sha256(own.read_bytes()).hexdigest()
    )
    module = replace(mine, workload=replace(mine.workload, target="package.model:build"))
    assert stamp(tmp_path, config=module)["workload_sha256"] is None


def test_this_machine_can_be_stamped() -> None:
    found = environment.stamp(DEVICE, dict(os.environ))
    assert found["cpu_count"] == os.cpu_count()
    assert found["memory_total_bytes"] is None or found["memory_total_bytes"] > 0
