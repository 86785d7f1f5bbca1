"""Any typo is understood, and no text at all brings anything down."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lanes import count_examples
from prony.errors import InputError, RecipeError
from prony.model.fact import comparing
from prony.plugins.services.redis import Redis
from prony.recipe import loads
from prony.recipe.formats import Format

from .strategies import toml

DOCUMENT: dict[str, Any] = {
    "name": "whole",
    "description": "every key that there is",
    "workload": {
        "kind": "model",
        "model": "zoo:tiny",
        "checksum": "sha256:" + "0" * 64,
        "engine": "onnxruntime",
        "unit": "cpu",
        "batch_size": 2,
        "threads": 2,
        "precision": "fp32",
        "inputs": {
            "axes": {"seq": 8},
            "shapes": {"x": [1, 2]},
            "values": {"x": {"low": 0.0, "high": 1.0}, "y": {"constant": 1}, "z": {"file": "z.npy"}},
            "seed": 3,
        },
        "options": {"a": 1},
    },
    "matrix": {"workload.engine": ["onnxruntime", "openvino"], "exclude": [{"workload.engine": "openvino"}]},
    "measure": {
        "runs": 10,
        "warmup": 5,
        "repeats": 5,
        "cold_starts": 3,
        "until": {"ci": "2%", "max_repeats": 20},
        "page_cache": "warm",
        "isolation": "exec",
        "max_time": "10s",
        "check": False,
    },
    "limits": {"timeout": "5m", "memory": "2GiB"},
    "place": {"where": {"os": "linux", "cpu.cores": ">=4"}, "devices": "each", "priority": 5, "attempts": 2},
    "labels": {"team": "search"},
}
# Maps in which the user's own names stand cannot have a typo; the matrix has a test of its own.
FREE = {("workload", "options"), ("labels",), ("matrix",), ("place", "where")} | {
    ("workload", "inputs", name) for name in ("axes", "shapes", "values")
}


def named_keys(tree: dict[str, Any], place: tuple[str, ...] = ()) -> list[tuple[str, ...]]:
    own = [] if place in FREE else [(*place, key) for key in tree]
    inner = [named_keys(value, (*place, key)) for key, value in tree.items() if isinstance(value, dict)]
    return own + [path for paths in inner for path in paths]


def renamed(tree: dict[str, Any], place: tuple[str, ...], to: str) -> dict[str, Any]:
    head, *rest = place
    if not rest:
        return {to if key == head else key: value for key, value in tree.items()}
    return {key: renamed(value, tuple(rest), to) if key == head else value for key, value in tree.items()}


@st.composite
def typos(draw: st.DrawFn, word: str) -> str:
    """One slip of the finger: a letter lost, doubled, swapped with its neighbour, or another one."""
    at = draw(st.integers(0, len(word) - 1))
    other = draw(st.sampled_from("aeqxz_"))
    slips = [word[:at] + word[at] + word[at:], word[:at] + other + word[at + 1 :]]
    slips += [word[:at] + word[at + 1 :]] if len(word) > 2 else []
    slips += [word[:at] + word[at + 1] + word[at] + word[at + 2 :]] if at + 1 < len(word) else []
    return draw(st.sampled_from(slips))


def test_the_whole_document_is_right_before_it_is_bent() -> None:
    assert loads(json.dumps(DOCUMENT), "json").recipe.name == "whole"


@settings(max_examples=count_examples(300), deadline=None, derandomize=True)
@given(st.data())
def test_a_typo_in_any_key_is_answered_with_the_right_key(data: st.DataObject) -> None:
    place = data.draw(st.sampled_from(named_keys(DOCUMENT)))
    slip = data.draw(typos(place[-1]).filter(lambda word: word != place[-1]))
    bent = renamed(DOCUMENT, place, slip)
    form: Format = data.draw(st.sampled_from(["yaml", "toml", "json"]))
    text = toml(bent) if form == "toml" else json.dumps(bent, indent=2)
    with pytest.raises(RecipeError) as caught:
        loads(text, form, "r")
    told = [problem for problem in caught.value.problems if problem["path"] == ".".join((*place[:-1], slip))]
    assert [problem["hint"] for problem in told] == [f"did you mean {place[-1]}?"]
    line = text.splitlines()[int(str(told[0]["line"])) - 1]
    assert json.dumps(slip) in line


@settings(max_examples=count_examples(100), deadline=None, derandomize=True)
@given(st.data())
def test_a_typo_in_an_axis_is_answered_with_the_right_path(data: st.DataObject) -> None:
    field = data.draw(st.sampled_from(["threads", "batch_size", "precision", "engine"]))
    slip = data.draw(typos(field).filter(lambda word: word != field))
    bent = DOCUMENT | {"matrix": {f"workload.{slip}": [1]}}
    with pytest.raises(RecipeError) as caught:
        loads(json.dumps(bent), "json")
    assert caught.value.hint == f"did you mean workload.{field}?"


@settings(max_examples=count_examples(100), deadline=None, derandomize=True)
@given(st.data())
def test_a_typo_in_a_fact_is_answered_with_the_right_fact(data: st.DataObject) -> None:
    fact = data.draw(st.sampled_from(["cpu.cores", "memory_gib", "gpu.vendor", "virtualization", "hardware_id"]))
    slip = data.draw(typos(fact).filter(lambda word: comparing(word) is None))
    form: Format = data.draw(st.sampled_from(["yaml", "toml", "json"]))
    bent = DOCUMENT | {"place": {"where": {"os": "linux", slip: "a"}}}
    text = toml(bent) if form == "toml" else json.dumps(bent, indent=2)
    with pytest.raises(RecipeError) as caught:
        loads(text, form, "r")
    assert (caught.value.problems[0]["path"], caught.value.hint) == (f"place.where.{slip}", f"did you mean {fact}?")
    assert json.dumps(slip) in text.splitlines()[int(str(caught.value.problems[0]["line"])) - 1]


def survives(text: str, form: Format) -> None:
    """Load it; the only exception that may come out is one for the person who wrote it."""
    message = "fine"
    try:
        loads(text, form)
    except InputError as exc:
        message = exc.message
    assert message.encode()


FORMATS: st.SearchStrategy[Format] = st.sampled_from(["yaml", "toml", "json"])


@settings(max_examples=count_examples(300), deadline=None, derandomize=True)
@given(st.text(max_size=80), FORMATS)
def test_random_text_raises_nothing_but_input_errors(text: str, form: Format) -> None:
    survives(text, form)


@settings(max_examples=count_examples(300), deadline=None, derandomize=True)
@given(st.text("{}[]:,\"'&*!<-#|>%@=.\n\t name0", max_size=40), FORMATS)
def test_random_syntax_raises_nothing_but_input_errors(text: str, form: Format) -> None:
    survives(text, form)


@settings(max_examples=count_examples(200), deadline=None, derandomize=True)
@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
        lambda inner: (
            st.lists(inner, max_size=3)
            | st.dictionaries(
                st.sampled_from([*DOCUMENT, *DOCUMENT["workload"], "low", "exclude", ""]), inner, max_size=4
            )
        ),
        max_leaves=20,
    )
)
def test_any_tree_of_values_under_known_keys_raises_nothing_but_input_errors(tree: object) -> None:
    survives(json.dumps(tree), "json")
    survives(json.dumps(DOCUMENT | {"workload": tree, "matrix": tree}), "json")
    survives(json.dumps(DOCUMENT | {"matrix": {"workload.threads": tree, "exclude": tree}}), "yaml")
    survives(json.dumps(DOCUMENT | {"place": tree}), "json")
    survives(json.dumps(DOCUMENT | {"place": {"where": tree}}), "yaml")
    survives(json.dumps(DOCUMENT | {"place": {"where": {"os": tree, "label.a": tree}}}), "json")


@settings(max_examples=count_examples(150), deadline=None, derandomize=True)
@given(st.data())
def test_a_recipe_with_one_character_bent_raises_nothing_but_input_errors(data: st.DataObject) -> None:
    form: Format = data.draw(FORMATS)
    text = toml(DOCUMENT) if form == "toml" else json.dumps(DOCUMENT, indent=1)
    at = data.draw(st.integers(0, len(text) - 1))
    survives(text[:at] + data.draw(st.characters()) + text[at + 1 :], form)


@settings(max_examples=count_examples(200), deadline=None, derandomize=True)
@given(st.text(max_size=20), st.text(max_size=20))
def test_a_random_option_raises_nothing_but_input_errors(path: str, value: str) -> None:
    for option in (f"{path}={value}", f"workload.{path}={value}", f"matrix.{path}={value}", f"labels.{path}={value}"):
        try:
            loads(json.dumps(DOCUMENT), "json", overrides=[option])
        except InputError as exc:
            exc.message.encode()


@pytest.mark.parametrize(
    ("slo", "said"),
    [
        ({"ttft_m": 20}, "ttft_m is not a limit of one request"),
        ({"inference_ms": 20}, "inference_ms is not a limit of one request"),
        ({"ttft_ms.p98": 20}, "ttft_ms.p98 is not a metric with a statistic"),
    ],
)
def test_a_limit_that_nothing_could_meet_is_refused(slo: dict[str, float], said: str) -> None:
    workload = {"kind": "service", "endpoint": "http://127.0.0.1:1", "driver": "http"}
    with pytest.raises(RecipeError) as caught:
        loads(json.dumps({"name": "a", "workload": workload, "load": {"slo": slo}}), "json")
    assert "load.slo" in caught.value.message
    assert said in caught.value.message


@pytest.mark.parametrize("key", ["itl_ms", "itl_ms.p99", "throughput_per_s.p50", "e2e_ms.mean", "ttft_ms.sd"])
def test_a_search_for_what_no_probe_could_show_is_refused(key: str) -> None:
    workload = {"kind": "service", "endpoint": "http://127.0.0.1:1", "driver": "http"}
    load = {"search": {"over": "rate", "low": 1, "high": 2}, "slo": {key: 20}}
    with pytest.raises(RecipeError, match=rf"a search cannot use {key}: it uses e2e_ms"):
        loads(json.dumps({"name": "a", "workload": workload, "load": load}), "json")


def test_an_option_of_a_container_engine_is_no_image() -> None:
    workload = {"kind": "script", "command": "python train.py", "image": "--privileged"}
    with pytest.raises(RecipeError, match=r"workload.image: '--privileged' is an option, not the name of an image"):
        loads(json.dumps({"name": "x", "workload": workload}), "json", "the test")
    with pytest.raises(ValueError, match="is an option, not the name of an image"):
        Redis.Options.model_validate({"image": "--volume=/:/host"})
