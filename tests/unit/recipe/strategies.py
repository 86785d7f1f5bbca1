"""Valid recipes of every shape, and their text in every format."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import strategies as st

from prony.model.recipe import Recipe

# Everything that UTF-8 can hold; YAML forbids most control characters even in its escapes' sources, JSON does not.
text = st.text(st.characters(codec="utf-8"), max_size=12)
words = st.text(st.characters(codec="utf-8"), min_size=1, max_size=12)
# Words that some YAML reader takes for something else.
traps = st.sampled_from(
    ["on", "no", "yes", "~", "null", "1e3", "0o17", "0x1F", "1_000", "10:00:00", "2024-01-01", ".inf", "<<", "=", ""]
)
names = st.from_regex(r"[A-Za-z0-9][A-Za-z0-9._-]{0,20}", fullmatch=True)
numbers = st.floats(allow_nan=False, allow_infinity=False)
integers = st.integers(-(2**63), 2**63 - 1)
scalars = st.one_of(text, traps, integers, numbers, st.booleans())
axis_names = st.from_regex(r"[a-z][a-z0-9_]{0,8}(\.[a-z0-9]{1,3})?", fullmatch=True)
durations = st.integers(1, 2**63 - 1).map(lambda value: f"{value}ns")
sizes = st.integers(1, 2**63 - 1).map(lambda value: f"{value}B")
shares = st.decimals("0.001", "99.999", places=3).map(lambda value: f"{value}%")


def _map(**optional: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    return st.fixed_dictionaries({}, optional=optional)


values = st.one_of(
    st.fixed_dictionaries({"constant": st.one_of(numbers, text, st.booleans())}),
    st.fixed_dictionaries({"file": words}),
    st.tuples(numbers, numbers).map(lambda pair: {"low": min(pair), "high": max(pair)}),
)
inputs = _map(
    axes=st.dictionaries(axis_names, st.integers(0, 4096), max_size=3),
    shapes=st.dictionaries(text, st.lists(st.integers(0, 64), max_size=4), max_size=2),
    values=st.dictionaries(text, values, max_size=2),
    seed=st.integers(0, 2**31),
)
workloads = st.fixed_dictionaries(
    {"kind": st.just("model"), "model": words, "engine": words},
    optional={
        "checksum": st.from_regex(r"sha256:[0-9a-f]{64}", fullmatch=True),
        "unit": words,
        "batch_size": st.integers(1, 64),
        "threads": st.integers(1, 64),
        "precision": st.sampled_from(["default", "fp32", "fp16", "bf16", "int8"]),
        "inputs": inputs,
        "options": st.dictionaries(st.one_of(text, traps), scalars, max_size=3),
    },
)
measures = _map(
    runs=st.integers(1, 1000),
    warmup=st.one_of(st.just("auto"), st.integers(0, 50)),
    repeats=st.integers(1, 6),
    cold_starts=st.integers(1, 9),
    until=st.fixed_dictionaries({"ci": shares}, optional={"max_repeats": st.integers(6, 60)}),
    page_cache=st.sampled_from(["as-is", "warm", "cold"]),
    isolation=st.sampled_from(["fork", "exec"]),
    max_time=durations,
    check=st.booleans(),
)

signs = st.sampled_from(["", "==", "!=", ">=", "<", "> "])
wanted_words = st.sampled_from(["linux", "NVIDIA*", "==a[b]", "!=on", "1.20", "null"])
wanted_numbers = st.one_of(st.integers(0, 999), st.builds("{}{}".format, signs, st.integers(0, 999)))


def _any_of(values: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return values | st.lists(values, min_size=1, max_size=3)


places = _map(
    where=_map(
        **{
            "os": _any_of(wanted_words),
            "cpu.cores": _any_of(wanted_numbers),
            "gpu.memory_gib": _any_of(wanted_numbers),
            "engine.onnxruntime": st.builds("{}{}.{}".format, signs, st.integers(0, 99), st.integers(0, 99)),
            "label.rack": _any_of(st.one_of(wanted_words, st.booleans(), st.integers(0, 9), st.just(0.5))),
        }
    ),
    devices=st.sampled_from(["any", "each"]),
    priority=st.integers(-100, 100),
    attempts=st.integers(1, 20),
)


def _axis(values: st.SearchStrategy[Any]) -> st.SearchStrategy[list[Any]]:
    return st.lists(values, min_size=1, max_size=3, unique=True)


matrices = _map(
    **{
        "workload.batch_size": _axis(st.integers(1, 9)),
        "workload.engine": _axis(words),
        "measure.runs": _axis(st.integers(1, 9)),
        "labels.side": _axis(text),
    }
)
documents = st.fixed_dictionaries(
    {"name": names, "workload": workloads},
    optional={
        "description": text,
        "matrix": matrices,
        "measure": measures,
        "limits": _map(timeout=durations, memory=sizes),
        "place": places,
        "labels": st.dictionaries(st.one_of(text, traps), st.one_of(text, traps), max_size=3),
    },
)


def recipe_of(document: dict[str, Any]) -> Recipe:
    """Return the noun by the shortest way, past everything that is under test."""
    return Recipe.model_validate_json(json.dumps(document), strict=True)


def toml(document: dict[str, Any]) -> str:
    """Write a document as TOML: a table for each section, all else inline."""
    head = [f"{_toml_key(key)} = {_toml(value)}" for key, value in document.items() if not isinstance(value, dict)]
    for section, content in document.items():
        if isinstance(content, dict):
            head += [
                f"[{_toml_key(section)}]",
                *(f"{_toml_key(key)} = {_toml(value)}" for key, value in content.items()),
            ]
    return "\n".join(head) + "\n"


def _toml(value: Any) -> str:
    if isinstance(value, dict):
        return "{" + ", ".join(f"{_toml_key(key)} = {_toml(item)}" for key, item in value.items()) + "}"
    if isinstance(value, list):
        return "[\n" + "".join(f"  {_toml(item)}, # an item\n" for item in value) + "]"
    return json.dumps(value).replace("\x7f", "\\u007f") if not isinstance(value, str) else _toml_key(value)


def _toml_key(key: str) -> str:
    return json.dumps(key, ensure_ascii=False).replace("\x7f", "\\u007f")
