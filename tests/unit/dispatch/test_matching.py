"""What a job demands, and what a device lacks of it."""

from __future__ import annotations

from typing import Any

import pytest

from prony.dispatch.matching import demand_of, lacks
from prony.model.agent import Capabilities, Fact
from prony.model.device import AbilityReport
from prony.model.place import Demand, Lack, Place
from prony.recipe import loads

FACTS: dict[str, Fact] = {
    "os": ("linux",),
    "cpu.cores": 4,
    "memory_gib": 16.0,
    "gpu.memory_gib": (8, 24),
    "gpu.vendor": ("nvidia", "intel"),
    "kinds": ("model",),
    "schemes": ("zoo", "https"),
    "engine": ("onnxruntime", "litert"),
    "engine.onnxruntime": "1.19.2",
    "engine.onnxruntime.unit": ("cpu", "cuda"),
    "engine.onnxruntime.precision.cpu": ("fp32", "int8"),
    "engine.onnxruntime.precision.cuda": ("fp32", "fp16"),
}


def told(demand: Demand, facts: dict[str, Fact] | None = None) -> list[str]:
    return [str(lack) for lack in lacks(demand, FACTS if facts is None else facts)]


def demands(**workload: Any) -> list[Demand]:
    matrix = {f"workload.{key}": value for key, value in workload.items() if isinstance(value, list)}
    plain = {"kind": "model", "model": "zoo:tiny", "engine": "onnxruntime"}
    plain |= {key: value for key, value in workload.items() if not isinstance(value, list)}
    loaded = loads(str({"name": "a", "workload": plain, "matrix": matrix, "place": {"where": {"os": "linux"}}}))
    return [demand_of(job, loaded.recipe.place) for job in loaded.jobs("e1")]


def test_a_job_demands_what_its_workload_needs() -> None:
    assert demands(unit="cuda", precision="fp16") == [
        Demand(where={"os": "linux"}, engine="onnxruntime", unit="cuda", precision="fp16", scheme="zoo")
    ]


def test_the_default_precision_demands_none() -> None:
    assert demands()[0].precision is None
    assert told(demands()[0]) == []


@pytest.mark.parametrize(
    ("model", "scheme"),
    [("models/a.onnx", "file"), ("file:/a.onnx", "file"), ("http://a/b.onnx", "https"), ("hf:a/b", "hf")],
)
def test_a_model_demands_the_scheme_of_its_reference(model: str, scheme: str) -> None:
    assert demands(model=model)[0].scheme == scheme


def test_jobs_that_want_the_same_have_one_id_and_others_another() -> None:
    assert len({demand.id for demand in demands(batch_size=[1, 2, 4], threads=[1, 2])}) == 1
    assert len({demand.id for demand in demands(engine=["onnxruntime", "openvino"], batch_size=[1, 2])}) == 2
    assert len({demand.id for demand in demands(precision=["default", "fp32"])}) == 2


def test_the_order_of_what_is_asked_does_not_change_the_id() -> None:
    one = Demand(where={"os": "linux", "cpu.cores": ">=4"})
    other = Demand(where={"cpu.cores": ">=4", "os": "linux"})
    assert one.id == other.id
    assert Demand.read_json(one.model_dump_json(exclude_defaults=True)).id == one.id


@pytest.mark.parametrize(
    ("demand", "lacking"),
    [
        (Demand(), []),
        (Demand(where={"os": "LINUX", "cpu.cores": ">=4", "memory_gib": "<=16"}), []),
        (Demand(where={"gpu.memory_gib": ">=24"}), []),
        (Demand(where={"cpu.cores": ">=8"}), ["cpu.cores >=8 (has 4)"]),
        (Demand(where={"memory_gib": 32}), ["memory_gib 32 (has 16)"]),
        (Demand(where={"os": ["windows", "macos"]}), ["os windows or macos (has linux)"]),
        (Demand(where={"os": ["windows", "!=macos"]}), []),
        (Demand(where={"gpu.vendor": "!=intel"}), ["gpu.vendor !=intel (has nvidia, intel)"]),
        (Demand(where={"label.rack": "a", "label.room": "!=b"}), ["label.rack a (has none)"]),
        (Demand(kind="script"), ["kinds script (has model): start its agent with --kinds model,script"]),
        (Demand(scheme="file"), ["schemes file (has zoo, https): start its agent with --model-schemes zoo,https,file"]),
        (Demand(engine="openvino", unit="cpu"), ["engine openvino (has onnxruntime, litert)"]),
        (Demand(engine="onnxruntime", unit="cuda", precision="fp16"), []),
        (
            Demand(engine="onnxruntime", unit="tensorrt"),
            ["engine.onnxruntime.unit tensorrt (has cpu, cuda)"],
        ),
        (
            Demand(engine="onnxruntime", unit="cpu", precision="fp16"),
            ["engine.onnxruntime.precision.cpu fp16 (has fp32, int8)"],
        ),
    ],
)
def test_a_device_lacks(demand: Demand, lacking: list[str]) -> None:
    assert told(demand) == lacking


ONE_CARD: dict[str, Fact] = {
    "kinds": ("model",), "schemes": ("zoo",), "engine": "torch", "engine.torch": "2.11", "gpu.count": 1,
    "engine.torch.unit": ("cpu", "cuda"), "engine.torch.precision.cuda": ("fp32", "bf16"),
    "gpu.uuid": "GPU-9292ab31-1111", "os": "linux",
}  # fmt: skip
TWO_CARDS = ONE_CARD | {
    "engine.torch.unit": ("cpu", "cuda-0", "cuda", "cuda-1"), "engine.torch.precision.cuda-0": ("fp32", "bf16"),
    "engine.torch.precision.cuda-1": ("fp32", "fp16"), "gpu.uuid": ("GPU-aaaa", "GPU-bbbb"), "gpu.count": 2,
}  # fmt: skip
OLD_AGENT = {name: fact for name, fact in ONE_CARD.items() if name != "gpu.uuid"}


@pytest.mark.parametrize(
    ("unit", "facts", "lacking"),
    [
        ("cuda", ONE_CARD, []),
        ("cuda-0", ONE_CARD, []),
        ("cuda:GPU-9292ab31", ONE_CARD, []),
        ("cuda:9292ab31", ONE_CARD, []),
        ("cuda-0", TWO_CARDS, []),
        ("cuda", TWO_CARDS, []),
        ("cuda:GPU-bbbb", TWO_CARDS, []),
        ("cuda:GPU-9292ab31", TWO_CARDS, ["gpu.uuid GPU-9292ab31* (has GPU-aaaa, GPU-bbbb)"]),
        ("cuda-1", TWO_CARDS, ["engine.torch.precision.cuda-1 bf16 (has fp32, fp16)"]),
        ("cuda-0", {**ONE_CARD, "engine.torch.unit": "cpu"}, ["engine.torch.unit cuda-0 (has cpu)"]),
    ],
)
def test_a_unit_is_matched_by_its_kind_its_number_and_its_card(
    unit: str, facts: dict[str, Fact], lacking: list[str]
) -> None:
    (demand,) = demands(engine="torch", unit=unit, precision="bf16")
    assert told(demand, facts)[:1] == lacking


def test_a_second_card_is_not_looked_for_on_another_device() -> None:
    (demand,) = demands(engine="torch", unit="cuda-1")
    assert told(demand, ONE_CARD) == [
        "engine.torch.unit cuda-1 (has cpu, cuda): that is another card of one device; "
        "for a job on each device write unit: cuda and place.devices: each"
    ]


def test_a_named_card_is_not_looked_for_on_an_agent_that_does_not_report_its_cards() -> None:
    (demand,) = demands(engine="torch", unit="cuda:GPU-9292ab31")
    (lack,) = lacks(demand, OLD_AGENT)
    assert (lack.fact, lack.has) == ("gpu.uuid", None)
    assert lack.reason.endswith("update its Prony")
    assert not lacks(demand, {**OLD_AGENT, "gpu.count": 0})[0].reason


def service(**workload: Any) -> Demand:
    text = {"name": "a", "workload": {"kind": "service", **workload}}
    loaded = loads(str(text))
    return demand_of(loaded.jobs("e1")[0], loaded.recipe.place)


def script(**workload: Any) -> Demand:
    loaded = loads(str({"name": "a", "workload": {"kind": "script", "command": "python train.py", **workload}}))
    return demand_of(loaded.jobs("e1")[0], loaded.recipe.place)


ANY_CONTAINER = ("podman", "docker", "apptainer", "singularity", "prony-pod")


@pytest.mark.parametrize(
    ("demand", "service", "containers"),
    [
        (service(service="redis"), "redis", ()),
        (service(service="redis", settings={"image": "redis:7"}), None, ANY_CONTAINER),
        (service(service="redis", settings={"image": "redis:7", "program": "x"}), None, ANY_CONTAINER),
        (service(service="redis", settings={"program": "/opt/redis-server"}), None, ()),
        (service(service="vllm", settings={"model": "a"}), "vllm", ()),
        (service(service="vllm", settings={"model": "a", "python": "/opt/vllm/bin/python"}), None, ()),
        (service(service="command", settings={"command": "./serve {port}"}), None, ()),
        (service(endpoint="http://127.0.0.1:1", driver="http"), None, ()),
    ],
)
def test_a_load_demands_what_starts_its_service(
    demand: Demand, service: str | None, containers: tuple[str, ...]
) -> None:
    assert (demand.kind, demand.service, demand.containers) == ("service", service, containers)


def scored(**prompts: Any) -> Demand:
    plain = {"kind": "llm", "model": "zoo:llm-1m", "engine": "onnxruntime", "task": "qa", "prompts": prompts}
    loaded = loads(str({"name": "a", "workload": plain}))
    return demand_of(loaded.jobs("e1")[0], loaded.recipe.place)


@pytest.mark.parametrize(
    ("kinds", "advised"),
    [
        (("llm",), "llm,script"),
        (("model", "llm"), "model,llm,script"),
        (("llm", "script"), None),
        (("llm", "service"), None),
    ],
)
def test_a_scorer_is_a_command_that_the_agents_owner_must_allow(kinds: tuple[str, ...], advised: str | None) -> None:
    facts = FACTS | {"kinds": kinds}
    lacking = told(scored(scorer="python mine.py"), facts)
    assert lacking == [
        f"kinds script or service (has {', '.join(kinds)}): the job names a command of its own: "
        f"start its agent with --kinds {advised}"
    ] * (advised is not None)
    assert told(scored(), facts) == []


def test_a_demand_for_a_command_has_an_id_of_its_own() -> None:
    assert scored(scorer="python mine.py").id != scored().id
    assert "own_command" not in scored().model_dump_json(exclude_defaults=True)


ANY_ENGINE = ("podman", "docker", "apptainer", "singularity")


@pytest.mark.parametrize(
    ("demand", "launcher", "containers"),
    [
        (script(), None, ()),
        (script(image="a:1"), None, ANY_ENGINE),
        (script(image="a:1", container=False), None, ()),
        (script(server={"image": "a:1", "ports": [80]}), None, ANY_ENGINE),
        (script(launch={"kind": "mpirun"}), "mpirun", ()),
        (script(launch={"kind": "torchrun"}), "torchrun", ()),
        (script(launch={"kind": "mpirun", "fallback": "process"}), None, ()),
        (script(launch={"kind": "torchrun"}, command="/opt/torch/bin/python train.py"), None, ()),
        (script(launch={"kind": "mpirun"}, environment={"PATH": "/opt/mpi/bin"}), None, ()),
    ],
)
def test_a_script_demands_its_container_engine_and_launcher(
    demand: Demand, launcher: str | None, containers: tuple[str, ...]
) -> None:
    assert (demand.kind, demand.launcher, demand.containers) == ("script", launcher, containers)


ABLE = FACTS | {"kinds": ("model", "service", "script"), "service": ("redis", "nginx"), "launcher": "mpirun"}


@pytest.mark.parametrize(
    ("demand", "lacking"),
    [
        (service(service="redis"), []),
        (service(service="qdrant"), ["service qdrant (has redis, nginx)"]),
        (
            service(service="qdrant", settings={"image": "a"}),
            [f"container {' or '.join(ANY_CONTAINER[:-1])} (has none)"],
        ),
        (script(launch={"kind": "mpirun"}), []),
        (script(launch={"kind": "torchrun"}), ["launcher torchrun (has mpirun)"]),
    ],
)
def test_an_agent_lacks_a_program_that_the_job_starts(demand: Demand, lacking: list[str]) -> None:
    assert told(demand, ABLE) == lacking


def test_one_of_several_container_engines_is_enough() -> None:
    assert told(script(image="a:1"), ABLE | {"container": "apptainer"}) == []
    assert told(service(service="redis", settings={"image": "a"}), ABLE | {"container": "docker"}) == []
    assert told(service(service="redis", settings={"image": "a"}), ABLE | {"container": "apptainer"}) == []
    assert len(told(service(service="redis", settings={"image": "a"}), ABLE | {"container": "lxc"})) == 1


def test_the_reason_is_the_agents_own() -> None:
    reports = (
        AbilityReport(
            kind="service", name="qdrant", state="missing", reason="qdrant not found on PATH; to get it: unpack it"
        ),
        AbilityReport(kind="container", name="podman", state="missing", reason="podman is not on PATH"),
        AbilityReport(kind="container", name="docker", state="broken", reason="docker does not work: no daemon"),
    )
    offered = Capabilities(facts=ABLE, abilities=reports)
    assert list(map(str, lacks(service(service="qdrant"), offered.facts, offered.reason_for))) == [
        "service qdrant (has redis, nginx): qdrant not found on PATH; to get it: unpack it"
    ]
    assert lacks(script(image="a:1"), offered.facts, offered.reason_for)[0].reason == "docker does not work: no daemon"


def test_an_agent_of_an_older_prony_gets_nothing_that_needs_a_program_it_does_not_tell_of() -> None:
    old = Capabilities(facts=FACTS | {"kinds": ("service", "script")}, version="0.3.1")
    lacking = lacks(service(service="redis"), old.facts, old.reason_for)
    assert [lack.fact for lack in lacking] == ["service"]
    assert "does not report" in lacking[0].reason
    assert "0.3.1" in lacking[0].reason
    assert told(service(endpoint="http://127.0.0.1:1", driver="http"), dict(old.facts)) == []
    assert told(script(), dict(old.facts)) == []


def test_a_demand_that_was_stored_before_keeps_its_id() -> None:
    stored = Demand(kind="service", where={"os": "linux"})
    assert Demand.read_json('{"kind": "service", "where": {"os": "linux"}}').id == stored.id


def test_everything_that_is_lacking_is_told_at_once() -> None:
    demand = Demand(where={"os": "windows", "cpu.cores": ">=8"}, kind="script", scheme="file", engine="torch", unit="a")
    assert [lack.fact for lack in lacks(demand, FACTS)] == ["os", "cpu.cores", "kinds", "schemes", "engine"]


def test_an_agent_that_says_nothing_fits_nothing() -> None:
    assert told(demands()[0], {}) == [
        "os linux (has none)", "kinds model (has none)", "schemes zoo (has none)", "engine onnxruntime (has none)",
    ]  # fmt: skip


def test_a_unit_or_engine_is_not_guessed_from_a_part_of_a_name() -> None:
    facts: dict[str, Fact] = {"kinds": "model", "engine": "onnxruntime"}
    assert told(Demand(engine="onnx"), facts) == ["engine onnx (has onnxruntime)"]
    assert told(Demand(engine="onnxruntime"), facts) == []


def test_a_comparison_of_a_newer_prony_fits_nobody() -> None:
    assert told(Demand(where={"cpu.cores": "~4"})) == ["cpu.cores ~4 (has 4)"]
    assert told(Demand(where={"gpu.colour": "red"})) == ["gpu.colour red (has none)"]
    assert told(Demand(where={"gpu.colour": "red"}), FACTS | {"gpu.colour": "red"}) == []


def test_true_is_not_one() -> None:
    facts = FACTS | {"label.a": "1", "label.b": "true"}
    assert told(Demand(where={"label.a": 1, "label.b": True}), facts) == []
    assert told(Demand(where={"label.a": True, "label.b": 1}), facts) == [
        "label.a true (has 1)",
        "label.b 1 (has true)",
    ]


def test_a_long_list_of_values_is_shown_in_part() -> None:
    lack = lacks(Demand(where={"model": "zoo:x"}), FACTS | {"model": tuple(f"zoo:{n}" for n in range(20))})[0]
    assert lack == Lack(fact="model", wanted="zoo:x", has=", ".join(f"zoo:{n}" for n in range(8)) + " and 12 more")


def test_where_may_be_asked_alone() -> None:
    place = Place(where={"cpu.cores": ">=2"})
    assert lacks(Demand(where=place.where), {"cpu.cores": 2, "kinds": "model"}) == ()
