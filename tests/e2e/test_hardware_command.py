"""`prony hardware` on this machine, and the same tests through a real server with a real agent."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from chaos.fleet import Fleet, fleet
from servers.commands import call_prony
from servers.waiting import wait_for

TINY = (
    "--library", "numpy", "--layer", "32x32x32", "--size", "1MiB", "--repeats", "1", "--no-report", "--json",
    "--set", "measure.warmup=1", "--set", "workload.time=1ms",
)  # fmt: skip
WANTED = {
    "cpu-memory": "copy_gb_s.p50",
    "cpu-gemm": "gemm_fp32_tflops.p50",
    "disk": "read_mb_s.p50",
}


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Fleet]:
    """A server, and one agent that may test its hardware."""
    with fleet(tmp_path_factory.mktemp("lab"), lease_ttl="10s") as found:
        found.add_server().start()
        found.wait_ready()
        agent = found.add_agent(found.url, recorded=False, options=("--kinds", "hardware"))
        agent.start()
        wait_for(lambda: "enrolled" in agent.said(), "the agent", 180)
        yield found


def check(text: str) -> None:
    jobs = {job["cell"]["workload.test"]: job for job in json.loads(text)["jobs"]}
    assert {test: job["state"] for test, job in jobs.items()} == dict.fromkeys(WANTED, "complete")
    for test, key in WANTED.items():
        assert jobs[test]["estimates"][key]["value"] > 0
        assert jobs[test]["result"]["effective"]["details"]["data"]


def test_this_machine_is_measured_and_its_readings_are_shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PRONY_HOME", str(tmp_path))
    monkeypatch.setenv("COLUMNS", "120")
    check(call_prony("hardware", "--unit", "cpu", "--unit", "disk", *TINY).stdout)
    shown = call_prony("show", "last").stdout
    for word in ("copy threads=1" if "threads=1" in shown else "copy", "gemm fp64 32x32x32", "random read queue=32"):
        assert word in shown


def test_a_machine_without_a_gpu_says_so_plainly(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PRONY_HOME", str(tmp_path))
    said = call_prony("hardware", "--unit", "cuda", code=None)
    if said.returncode == 0:
        pytest.skip("there is a GPU here")
    assert said.returncode == 3
    assert "no NVIDIA driver on this machine" in said.stderr or "found, but" in said.stderr


def test_an_agent_measures_its_machine_for_a_server(lab: Fleet) -> None:
    check(call_prony("hardware", "--server", lab.url, *TINY).stdout)


def test_a_compute_benchmark_of_ruckus_is_placed_measured_and_exported_in_its_names(lab: Fleet, tmp_path: Path) -> None:
    wanted = {"system_requirements": {"min_cpu_cores": 1, "required_os_types": ["Linux", "Darwin"]}}
    params = {"precision_types": ["fp32"], "matrix_sizes": [128]}
    spec = {
        "name": "products", "model": "none", "framework": {"name": "pytorch"}, "metrics": {"metrics": {}},
        "task": {"name": "products", "type": "compute_benchmark", "params": params}, "runs_per_job": 2,
        "capability_requirements": wanted,
    }  # fmt: skip
    path = tmp_path / "spec.json"
    path.write_text(json.dumps(spec))
    asked = ("--server", lab.url)
    assert json.loads(call_prony("ruckus-check", str(path), *asked).stdout)["compatible_agents_count"] == 1
    small = ("--set", "workload.library=numpy", "--set", "workload.time=1ms", "--set", "measure.warmup=1")
    done = call_prony("run", str(path), *asked, *small, "--no-report", "--json")
    ran = json.loads(done.stdout)["experiment"]["id"]
    call_prony("export", ran, *asked, "--format", "ruckus", "--to", str(tmp_path / "out"))
    (written,) = (tmp_path / "out").rglob("*.multi_run.json")
    found = json.loads(written.read_text())
    # Two, and one more for each that something disturbed.
    assert found["total_runs"] == found["successful_runs"] >= 2
    assert found["gpu_benchmark_results"] is None
    tflops = found["summary_stats"]["compute_fp32_tflops"]
    assert tflops["count"] == found["total_runs"]
    assert found["summary_stats"]["precision_fp32_gops"]["mean"] == pytest.approx(1e3 * tflops["mean"])
    spec["capability_requirements"] = {"gpu_requirements": {"min_gpu_count": 64}}
    path.write_text(json.dumps(spec))
    refused = call_prony("ruckus-check", str(path), *asked, code=1)
    (agent,) = json.loads(refused.stdout)["compatibility_results"]
    assert any(one.startswith("gpu.count") for one in agent["missing_requirements"])


def test_an_agent_writes_to_no_folder_that_its_owner_did_not_allow(lab: Fleet) -> None:
    done = call_prony("hardware", "--server", lab.url, "--unit", "disk", "--path", "/usr", *TINY, code=1)
    (job,) = json.loads(done.stdout)["jobs"]
    assert job["result"]["failure"]["code"] == "path_refused"
