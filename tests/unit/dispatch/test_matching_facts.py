"""Each family of facts, from the device and the engines that it comes from."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from prony.dispatch.matching import facts_of, lacks
from prony.model.agent import Capabilities, Fact
from prony.model.device import AbilityReport, Cpu, Device, EngineReport, EngineUnit, Gpu, Hardware, Software
from prony.model.fact import FACTS, FAMILIES, comparing
from prony.model.place import Demand, Wanted
from prony.recipe import loads

PAGE = (Path(__file__).parents[3] / "docs" / "fleet.md").read_text()
CPU = Cpu(
    model="AMD EPYC 9654", vendor="AuthenticAMD", architecture="x86_64", flags=("avx2", "avx512f"),
    physical_cores=96, logical_cores=192, allowed_cores=16, quota_cores=3.5,
)  # fmt: skip
H100 = Gpu(
    index=0, name="NVIDIA H100 80GB HBM3", vendor="nvidia", memory_mib=81559, compute_capability="9.0",
    precisions=("bf16", "fp8"), driver="550.54.15",
)  # fmt: skip
ARC = Gpu(index=1, name="Intel Arc A380", vendor="intel", memory_mib=6068, driver="i915")
SOFTWARE = Software(
    os="linux", os_version="Ubuntu 24.04.1 LTS", kernel="6.8.0-45-generic", python="CPython 3.12.3", prony="0.3.1",
    packages={"numpy": "2.1.0"},
)  # fmt: skip
ENGINES = (
    EngineReport(
        name="onnxruntime",
        python="python",
        state="ready",
        version="1.19.2",
        formats=(".onnx", ".ort"),
        units=(
            EngineUnit(engine="onnxruntime", unit="cpu", description="", precisions=("default", "fp32", "int8")),
            EngineUnit(engine="onnxruntime", unit="cuda", description="", precisions=("default", "fp32", "fp16")),
        ),
    ),
    EngineReport(
        name="torch",
        python="python",
        state="ready",
        version="2.4.0+cu121",
        units=(EngineUnit(engine="torch", unit="cuda-0", description="", precisions=("default", "bf16")),),
    ),
    EngineReport(name="openvino", python="python", state="missing"),
)

ABILITIES = (
    AbilityReport(kind="service", name="redis", state="ready", version="7.0.15", means=("program", "image")),
    AbilityReport(kind="service", name="vllm", state="missing", means=("image",), reason="no vllm on PATH"),
    AbilityReport(kind="container", name="podman", state="ready", version="4.9.3"),
    AbilityReport(kind="container", name="docker", state="broken", reason="docker does not work: no daemon"),
    AbilityReport(kind="launcher", name="mpirun", state="ready"),
    AbilityReport(kind="probe", name="host", state="ready"),
)


def device(software: dict[str, Any] | None = None, cpu: dict[str, Any] | None = None, **hardware: Any) -> Device:
    return Device(
        name="node7",
        hardware_id="aa11",
        software_id="bb22",
        hardware=Hardware(cpu=CPU.model_copy(update=cpu or {}), **({"memory_mib": 385000} | hardware)),
        software=SOFTWARE.model_copy(update=software or {}),
    )


def facts(made: Device | None = None) -> dict[str, Fact]:
    return facts_of(
        made or device(gpus=(H100, ARC), memory_installed_mib=393216, virtualization="none", machine="Dell R7625"),
        ENGINES,
        abilities=ABILITIES,
        labels={"rack": "b", "team/owner": "search", "quiet": ""},
        cached_models=("zoo:tiny", "sha256:" + "0" * 64),
        policy={
            "schemes": ("zoo", "https"),
            "kinds": ("model", "service"),
            "target": "far",
            "target.kind": "ssh",
            "gpu.uuid": ("GPU-9292ab31-1111",) if made is None else (),
        },
    )


def fits(where: dict[str, Wanted], made: Device | None = None) -> bool:
    return not lacks(Demand(where=where), facts(made))


@pytest.mark.parametrize(
    "where",
    [
        {"os": "Linux"},
        {"os.version": "Ubuntu*"},
        {"os.version": ">=22.04"},
        {"os.kernel": ">=6.2"},
        {"arch": "x86_64"},
        {"arch": "AMD64"},
        {"machine": "dell*"},
        {"virtualization": "none"},
        {"device": "node7"},
        {"hardware_id": "aa11"},
        {"software_id": "bb22"},
        {"cpu.model": "*EPYC*"},
        {"cpu.vendor": "amd"},
        {"cpu.vendor": "AuthenticAMD"},
        {"cpu.cores": 96},
        {"cpu.threads": 192},
        {"cpu.allowed": 3.5},
        {"cpu.flags": "avx512f"},
        {"memory_gib": 384},
        {"gpu": "NVIDIA H100*"},
        {"gpu.vendor": "intel"},
        {"gpu.count": 2},
        {"gpu.memory_gib": ">=80"},
        {"gpu.compute_capability": ">=8.9"},
        {"gpu.precision": "fp8"},
        {"gpu.driver": ">=550"},
        {"gpu.driver": "i915"},
        {"gpu.uuid": "GPU-9292ab31*"},
        {"engine": "torch"},
        {"unit": "cuda"},
        {"precision": "bf16"},
        {"model": "zoo:tiny"},
        {"model": "sha256:0000*"},
        {"schemes": "https"},
        {"kinds": "model"},
        {"python": ">=3.11"},
        {"python": "CPython*"},
        {"prony": ">=0.3"},
        {"label.rack": ["a", "b"]},
        {"label.team/owner": "search"},
        {"label.quiet": "*"},
        {"engine.onnxruntime": ">=1.18"},
        {"engine.onnxruntime.unit": "cuda"},
        {"engine.onnxruntime.precision": "fp16"},
        {"engine.onnxruntime.precision.cpu": "int8"},
        {"engine.onnxruntime.format": ".ort"},
        {"engine.torch.unit": "cuda-0"},
        {"engine.torch.unit": "cuda"},
        {"package.numpy": "2.*"},
        {"service": "redis"},
        {"service.redis": ">=7"},
        {"service.redis.means": "program"},
        {"service.vllm.means": "image"},
        {"container": "podman"},
        {"container.podman": "<5"},
        {"launcher": "mpirun"},
        {"launcher.mpirun": "unknown"},
        {"access": "white"},
        {"access": "gray"},
        {"access": "black"},
        {"probe": "host"},
    ],
    ids=str,
)
def test_a_fact_can_be_asked_for(where: dict[str, Wanted]) -> None:
    assert fits(where)
    # And nothing fits by accident: where the device knows nothing, nothing does.
    assert where.keys() <= {lack.fact for lack in lacks(Demand(where=where), {})}


@pytest.mark.parametrize(
    "where",
    [
        {"engine": "openvino"},
        {"engine.openvino": "*"},
        {"engine.onnxruntime.precision.cpu": "fp16"},
        {"precision": "default"},
        {"gpu.memory_gib": 79},
        {"label.room": "*"},
        {"schemes": "file"},
        {"kinds": "script"},
        {"service": "vllm"},
        {"service.vllm": "*"},
        {"container": "docker"},
        {"launcher": "torchrun"},
        {"probe": "nvidia"},
    ],
    ids=str,
)
def test_what_a_device_has_not_does_not_fit(where: dict[str, Wanted]) -> None:
    assert not fits(where)


def test_a_recipe_may_ask_for_every_fact_that_a_device_has() -> None:
    found = facts()
    assert [name for name in found if comparing(name) is None] == []
    assert FACTS.keys() - found.keys() == set()


@pytest.mark.parametrize(("system", "names"), [("darwin", ("macos", "darwin")), ("windows", ("windows",))])
def test_the_system_has_the_name_that_people_use(system: str, names: tuple[str, ...]) -> None:
    assert facts(device({"os": system}))["os"] == names


@pytest.mark.parametrize("spelt", ["aarch64", "arm64", "ARM64"])
def test_an_architecture_fits_in_either_spelling(spelt: str) -> None:
    here = device(cpu={"architecture": spelt})
    assert fits({"arch": "aarch64"}, here)
    assert fits({"arch": "arm64"}, here)
    assert not fits({"arch": "!=arm64"}, here)
    assert fits({"arch": "!=amd64"}, here)


def test_a_system_without_a_version_has_only_its_name() -> None:
    assert facts(device({"os_version": "Arch Linux"}))["os.version"] == ("Arch Linux",)
    assert "os.version" not in facts(device({"os_version": None}))


def test_cores_are_the_logical_ones_where_nothing_else_is_known() -> None:
    assert facts(device(cpu={"physical_cores": None}))["cpu.cores"] == 192


def test_without_a_quota_all_allowed_cores_count() -> None:
    assert facts(device(cpu={"quota_cores": None}))["cpu.allowed"] == 16


@pytest.mark.parametrize(
    ("hardware", "gib"),
    [
        ({"memory_mib": 15990}, 16),
        ({"memory_mib": 31900, "memory_installed_mib": 32768}, 32),
        ({"memory_mib": 31900, "memory_installed_mib": 32768, "memory_limit_mib": 2560}, 2.5),
    ],
)
def test_memory_is_what_is_fitted_or_the_limit(hardware: dict[str, Any], gib: float) -> None:
    assert facts(device(**hardware))["memory_gib"] == gib


def test_without_a_gpu_there_are_none_and_nothing_else_is_said() -> None:
    found = facts(device())
    assert {name: value for name, value in found.items() if name.startswith("gpu")} == {"gpu.count": 0}


@pytest.mark.parametrize(
    ("kinds", "modes"),
    [
        (("model",), ("white",)),
        (("service",), ("gray", "black")),
        (("script",), None),
        (("model", "service", "script"), ("white", "gray", "black")),
    ],
)
def test_access_is_what_the_owner_allows_and_the_programs_reach(
    kinds: tuple[str, ...], modes: tuple[str, ...] | None
) -> None:
    rest: dict[str, Any] = {"labels": {}, "cached_models": (), "policy": {"kinds": kinds}}
    assert facts_of(device(), ENGINES, abilities=ABILITIES, **rest).get("access") == modes
    bare = facts_of(device(), (), **rest).get("access", ())
    assert bare == (("black",) if "service" in kinds else ())


def test_facts_survive_the_way_to_a_server() -> None:
    found = facts()
    told = Capabilities.read_json(Capabilities(facts=found).model_dump_json())
    assert told.facts == found


def test_the_page_has_a_row_for_every_fact() -> None:
    told = dict(re.findall(r"^\| `([^`]+)` \| (text|number|version|number, version or text) \|", PAGE, re.MULTILINE))
    words = {"either": "number, version or text"}
    known = {**FACTS, **FAMILIES}
    assert told == {name: words.get(fact.comparing, fact.comparing) for name, fact in known.items()}
    assert [name for name, fact in known.items() if f"| {fact.meaning} |" not in PAGE] == []


def test_the_recipe_on_the_page_loads() -> None:
    shown = re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL)
    assert [loads(text).recipe.name for text in shown[:1]] == ["big-gpu"]
