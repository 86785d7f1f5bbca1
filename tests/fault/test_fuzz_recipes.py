"""Recipes in three formats, spoilt at random: read or refused within a time limit, and never with a fault of Prony.

`PRONY_TEST_FUZZ` (12) times 8 are how many are tried of each format.
"""

from __future__ import annotations

import json
import os
import random
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

import pytest
import yaml

from prony.errors import InputError
from prony.recipe import loads
from prony.recipe.formats import Format

EXAMPLES = 8 * int(os.environ.get("PRONY_TEST_FUZZ", "12"))
# Of CPU time, so that a busy machine makes nothing late; the largest text that is let through takes some seconds.
LONGEST_S = 20.0
RECIPES = Path(__file__).parents[2] / "recipes"
DESCRIPTOR = """
spec_version = "0.1.0"
[info]
description = "x"
scheduling = "*/5 * * * *"
[hardware]
instance_type = "local"
[env]
docker_image = "python:3"
[ml]
benchmark_code = "python3 /x.py"
[[data.sources]]
src = "s3://bucket/key"
path = "/data"
"""
TOML = """
name = "x"
labels = {a = "b", "c.d" = 'e'}
[workload]
kind = "model"
model = "zoo:tiny"
engine = "null"
[matrix]
workload.batch_size = [1, 2, 4]
"measure.runs" = [5, 10]
[[matrix.exclude]]
workload.batch_size = 4
"""
PIECES = (
    "[", "]", "{", "}", ",", ":", ": ", "- ", "? ", "&a ", "*a", "<<: *a", "!!str ", "!x ", "|\n", ">\n", "\t", "\n",
    "\n\n", "  ", '"', '"""', "'", "'''", "\\", "\\u0000", "\\ud800", "#", "%TAG ! x\n", "---\n", "...\n", ".", "=",
    "[[a]]\n", "[a.b]\n", "a.b.c = 1\n", "1e999", "-0", "0x", "9" * 5000, "1979-05-27T07:32:00Z", ".inf", "nan", "null",
    "\ufeff", "\0", "\x85", "\u2028", "é", "matrix", "exclude", "duet: ", "workload.batch_size: [1, 2]\n",
)  # fmt: skip


def sound_texts(form: Format) -> list[str]:
    written = {path: path.read_text() for path in sorted(RECIPES.glob("*.yaml"))}
    if form == "yaml":
        return list(written.values())
    if form == "json":
        return [json.dumps(yaml.safe_load(text), default=str) for text in written.values()]
    return [TOML, DESCRIPTOR]


def spoil(chance: random.Random, texts: list[str]) -> str:
    """Return a recipe with pieces cut out, moved or put in, some of them very many times."""
    text = chance.choice(texts)
    for _ in range(chance.randrange(1, 6)):
        at = chance.randrange(len(text) + 1)
        until = min(len(text), at + chance.randrange(1, 60))
        match chance.randrange(5):
            case 0:
                text = text[:at] + text[until:]
            case 1:
                text = text[:at] + chance.choice(PIECES) + text[at:]
            case 2:
                text = text[:at] + chance.choice(PIECES) * chance.choice((2, 50, 5000, 100_000)) + text[at:]
            case 3:
                text = text[:at] + text[at:until] * chance.choice((2, 100, 3000)) + text[until:]
            case _:
                text = text[:at] + chance.choice(texts) + text[at:]
    return text[: 600 * 1024]


class TooSlowError(Exception):
    """The time is over."""


@contextmanager
def limited(seconds: float) -> Iterator[None]:
    """Raise when this process has used so much CPU time."""

    def stop(_number: int, _frame: FrameType | None) -> None:
        raise TooSlowError

    earlier = signal.signal(signal.SIGVTALRM, stop)
    signal.setitimer(signal.ITIMER_VIRTUAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, earlier)


@pytest.mark.parametrize("form", ["yaml", "toml", "json"])
def test_a_spoilt_recipe_is_read_or_refused_in_time(form: Format) -> None:
    chance, texts = random.Random(f"recipes {form}"), sound_texts(form)
    outcomes = {"read": 0, "refused": 0}
    for number in range(EXAMPLES):
        # Few that are spoilt can still be read, so that some stay as they are.
        text = chance.choice(texts) if number % 16 == 15 else spoil(chance, texts)
        overrides = [f"name={text[:50]}"] if number % 10 == 0 else []
        try:
            with limited(LONGEST_S):
                loads(text, form, "spoilt", overrides)
            outcomes["read"] += 1
        except InputError:
            outcomes["refused"] += 1
        except TooSlowError:
            pytest.fail(f"number {number} took more than {LONGEST_S:g} s of CPU time: {text[:300]!r}, {len(text)} long")
        except Exception as exc:
            raise AssertionError(f"number {number}, {len(text)} long, begins {text[:2000]!r}") from exc
    assert all(outcomes.values()), outcomes
