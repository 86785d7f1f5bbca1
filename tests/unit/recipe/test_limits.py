"""Texts that are made to keep a parser busy: refused in one pass, with the place and what to do."""

from __future__ import annotations

import time
from itertools import pairwise

import pytest

from prony.errors import RecipeError
from prony.recipe import loads
from prony.recipe.limits import DEEPEST, MOST_VALUES

WORKLOAD = 'name: x\nworkload: {kind: model, model: "zoo:tiny", engine: "null"}\n'
LETTERS = "abcdefghij"
DEEP = {
    "toml dotted key": ("toml", ".".join(["a"] * 250_000) + " = 1"),
    "toml dotted key with spaces": ("toml", " . ".join(["a"] * 100_000) + " = 1"),
    "toml quoted parts": ("toml", '."b"'.join(["a"] * 80_000) + " = 1"),
    "toml table": ("toml", "[" + ".".join(["a"] * 250_000) + "]"),
    "toml array of tables": ("toml", "[[" + ".".join(["a"] * 250_000) + "]]"),
    "toml arrays": ("toml", "a = " + "[" * 250_000),
    "toml inline tables": ("toml", "a = " + "{a = " * 100_000),
    "toml dotted keys in inline tables": ("toml", "a.a.a.a.a.a.a.a = {" * 40_000),
    "json lists": ("json", "[" * 250_000),
    "json maps": ("json", '{"a":' * 100_000),
    "yaml flow": ("yaml", "[" * 250_000),
    "yaml flow maps": ("yaml", "{a: " * 100_000),
    "yaml lists": ("yaml", "- " * 250_000),
    "yaml keys": ("yaml", "? " * 250_000),
}
FULL = {
    "toml keys": ("toml", "".join(f"a{n} = 1\n" for n in range(60_000))),
    "toml list": ("toml", f"a = {list(range(120_000))}"),
    "json keys": ("json", "{" + ",".join(f'"a{n}":1' for n in range(60_000)) + "}"),
    "json list": ("json", f'{{"a": {list(range(120_000))}}}'),
    "yaml keys": ("yaml", "".join(f"a{n}: 1\n" for n in range(60_000))),
    "yaml list": ("yaml", f"a: {list(range(120_000))}"),
    "yaml aliases": (
        "yaml",
        "a: &a [x, x, x, x, x, x, x, x, x]\n"
        + "".join(f"{b}: &{b} [{','.join([f'*{a}'] * 9)}]\n" for a, b in pairwise(LETTERS)),
    ),
    "yaml merges": (
        "yaml",
        f"b: &b {{{', '.join(f'k{n}: 1' for n in range(10_000))}}}\nx: {{<<: [{', '.join(['*b'] * 60_000)}]}}\n",
    ),
}


def refusal(form: str, text: str) -> RecipeError:
    """Return why a text is refused, and see that it took no more than a pass over it."""
    begin = time.process_time()
    with pytest.raises(RecipeError) as refused:
        loads(text, form)  # type: ignore[arg-type]
    assert time.process_time() - begin < 10
    return refused.value


@pytest.mark.parametrize("what", list(DEEP))
def test_a_text_that_is_nested_too_deeply_is_refused_with_its_place(what: str) -> None:
    error = refusal(*DEEP[what])
    assert "<text>:1: " in error.message
    assert f"is nested too deeply: the most is {DEEPEST} levels" in error.message


@pytest.mark.parametrize("what", list(FULL))
def test_a_text_with_too_many_values_is_refused_with_its_place(what: str) -> None:
    error = refusal(*FULL[what])
    assert "<text>:" in error.message
    assert f"{MOST_VALUES:,}" in error.message


def test_directives_are_counted_before_the_parser_compares_them() -> None:
    text = "".join(f"%TAG !a{n}! tag:x\n" for n in range(20_000)) + "--- {}\n"
    assert "<text>:11: holds more than 10 YAML directives" in refusal("yaml", text).message


def test_a_matrix_with_too_many_axes_is_refused() -> None:
    axes = "".join(f"  workload.zz{n}: [1, 2]\n" for n in range(15_000))
    assert "15,000 axes are too many: the most is 64" in refusal("yaml", f"{WORKLOAD}matrix:\n{axes}").message


def test_jobs_that_are_too_large_together_are_refused() -> None:
    text = f'{WORKLOAD}description: "{"x" * 300_000}"\nmatrix: {{workload.batch_size: {list(range(1, 10_001))}}}\n'
    assert "10,000 jobs of 30" in refusal("yaml", text).message


@pytest.mark.parametrize("text", ['\\"""\n' * 50_000, "'''\\'''\n" * 50_000, '"""' * 100_001, "''''" * 50_000])
def test_quotes_that_never_close_take_one_pass(text: str) -> None:
    refusal("toml", text)


@pytest.mark.parametrize(
    ("form", "text"),
    [
        (
            "toml",
            'name = "a.b.c.[[[[{{{{"\n# [[[[ . . . .\ntext = """\n[[[[ "" {{{ """\nmore = \'\'\'[[[ \'\' \'\'\'\n',
        ),
        ("json", '{"name": "[[[[[ {{{{ \\" :::: ,,,,", "a": [1.5, -2.5e3]}'),
    ],
)
def test_brackets_and_dots_in_texts_and_comments_do_not_count(form: str, text: str) -> None:
    deep = text.replace("[[[[", "[" * 200).replace("{{{", "{" * 200)
    assert "nested" not in refusal(form, deep).message
