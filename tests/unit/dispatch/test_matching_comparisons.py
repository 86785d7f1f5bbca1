"""The grammar of `place.where`: what each comparison means, for every value that a fact can have."""

from __future__ import annotations

import fnmatch
import operator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from packaging.version import Version

from lanes import count_examples
from prony.model.fact import FACTS, SIGNS, Value, advise_fact, comparing, looks_like_comparison, parse_comparison

ORDERS: dict[str, Any] = {">=": operator.ge, "<=": operator.le, ">": operator.gt, "<": operator.lt}
EVERY = {**ORDERS, "==": operator.eq, "!=": operator.ne}
NUMBERS = st.integers(-(10**15), 10**15) | st.decimals(-10000, 10000, places=3).map(float)
SPACES = st.sampled_from(["", " ", "  ", "\t"])
VERSIONS = st.builds(
    lambda release, tail: ".".join(map(str, release)) + tail,
    st.lists(st.integers(0, 40), min_size=1, max_size=4),
    st.sampled_from(["", "", "", "rc1", "rc2", "a1", "b3", ".dev4"]),
)
# Letters whose cases are one to one, and no sign at the beginning.
WORDS = st.from_regex(r"[A-Za-z0-9 ._:/()@-]{1,20}", fullmatch=True).filter(lambda word: word == word.strip())
VALUES: st.SearchStrategy[Value] = st.booleans() | st.integers() | st.floats() | st.text(max_size=30)


def fits(name: str, wanted: Value, *values: Value) -> bool:
    return parse_comparison(name, wanted).fits(values)


@settings(derandomize=True, deadline=None)
@given(NUMBERS, st.sampled_from(SIGNS), NUMBERS, SPACES, SPACES)
def test_numbers_compare_as_numbers(has: float, sign: str, number: float, before: str, after: str) -> None:
    assert fits("cpu.cores", f"{before}{sign}{after}{number}{before}", has) is EVERY[sign](has, number)


@settings(derandomize=True, deadline=None)
@given(NUMBERS, NUMBERS)
def test_a_bare_number_is_equal_to_itself_alone(has: float, number: float) -> None:
    assert fits("memory_gib", number, has) is (has == number)
    assert fits("memory_gib", str(number), has) is (has == number)


@settings(max_examples=count_examples(400), derandomize=True, deadline=None)
@given(VERSIONS, st.sampled_from(SIGNS), VERSIONS)
def test_versions_compare_as_packages_do(has: str, sign: str, version: str) -> None:
    assert fits("engine.onnxruntime", sign + version, has) is EVERY[sign](Version(has), Version(version))


@settings(derandomize=True, deadline=None)
@given(VERSIONS, st.sampled_from(list(ORDERS)), VERSIONS, st.sampled_from(["+cu121", "-22982-e213-releases/4", " LTS"]))
def test_what_stands_behind_a_version_does_not_change_its_order(has: str, sign: str, version: str, tail: str) -> None:
    assert fits("engine.torch", sign + version, has + tail) is fits("engine.torch", sign + version, has)


@settings(derandomize=True, deadline=None)
@given(WORDS, WORDS)
def test_text_is_equal_in_any_case(has: str, word: str) -> None:
    same = has.casefold() == word.casefold()
    for spelt in (has, has.upper(), has.lower()):
        assert fits("cpu.model", word, spelt) is same
        assert fits("cpu.model", f"=={word}", spelt) is same
        assert fits("cpu.model", f"!={word}", spelt) is not same


@settings(derandomize=True, deadline=None)
@given(st.text("abA*?[]-!", min_size=1, max_size=8), st.text("abAB-[]*", max_size=8))
def test_wildcards_are_those_of_a_shell(pattern: str, has: str) -> None:
    if looks_like_comparison(pattern):
        return
    matches = fnmatch.fnmatchcase(has.lower(), pattern.lower()) or has.lower() == pattern.lower()
    assert fits("gpu", pattern, has) is matches
    assert fits("gpu", f"!={pattern}", has) is not matches
    assert fits("gpu", f"=={pattern}", has) is (has.lower() == pattern.lower())


@settings(derandomize=True, deadline=None)
@given(st.sampled_from([*FACTS, "label.a", "engine.b", "engine.b.unit"]), VALUES, st.lists(VALUES, max_size=4))
def test_any_value_is_compared_or_refused_and_nothing_else(name: str, wanted: Value, has: list[Value]) -> None:
    try:
        compared = parse_comparison(name, wanted)
    except ValueError:
        return
    one = [compared.fits([value]) for value in has]
    assert compared.fits(has) is (all(one) if compared.is_not else any(one))


@pytest.mark.parametrize(
    ("name", "wanted", "has", "expected"),
    [
        ("engine.onnxruntime", ">=1.18", "1.9.0", False),
        ("engine.onnxruntime", ">=1.9", "1.18.0", True),
        ("engine.onnxruntime", "1.18", "1.18.0", True),
        ("engine.onnxruntime", "1.18", "1.18.1", False),
        ("engine.onnxruntime", "1.18.*", "1.18.1", True),
        ("engine.onnxruntime", ">=1.18", "1.18.0rc1", False),
        ("engine.torch", "2.4.0", "2.4.0+cu121", True),
        ("engine.torch", "2.4.0+cu118", "2.4.0+cu121", False),
        ("engine.torch", "!=2.4", "2.4.0+cu121", False),
        ("engine.torch", ">=2", "unknown", False),
        ("os.kernel", ">=6.1", "6.1.0-arm64", True),
        ("os.kernel", ">=6.1", "6.1.0-beta2", False),
        ("prony", 1, "1.0.0", True),
        ("prony", 1, "1.1", False),
        ("gpu.compute_capability", ">=8.0", "10.0", True),
        ("gpu.compute_capability", ">=8.0", "gfx942", False),
        ("gpu.compute_capability", "gfx9*", "gfx942", True),
        ("gpu", "AMD Navi 31 [Radeon RX 7900 XT]", "AMD Navi 31 [Radeon RX 7900 XT]", True),
        ("cpu.cores", ">=4", "8", False),
        ("cpu.cores", ">=1", True, False),
        ("label.floor", ">=3", "10", True),
        ("label.floor", ">0.5", "0.25", False),
        ("label.release", ">=1.9.1", "1.18.0", True),
        ("label.floor", ">=3", "cellar", False),
        ("label.floor", 3, "3.0", True),
        ("label.floor", 3, "cellar", False),
        ("label.shared", True, "TRUE", True),
        ("label.shared", True, "1", False),
        ("label.huge", 1e300, "cellar", False),
        ("label.huge", ">=3", 10**400, True),
    ],
)
def test_a_comparison_means(name: str, wanted: Value, has: Value, expected: bool) -> None:
    assert fits(name, wanted, has) is expected


def test_one_value_of_several_is_enough_and_for_unequal_none_may_be_equal() -> None:
    assert fits("gpu.memory_gib", ">=24", 8, 24)
    assert not fits("gpu.memory_gib", ">=24", 8, 16)
    assert not fits("gpu.vendor", "!=amd", "nvidia", "amd")
    assert fits("gpu.vendor", "!=amd", "nvidia", "intel")


def test_a_fact_that_is_unknown_fits_nothing_but_unequal() -> None:
    assert not fits("gpu", "*")
    assert not fits("cpu.cores", "<4")
    assert fits("gpu.vendor", "!=amd")


@pytest.mark.parametrize(
    ("name", "wanted", "said"),
    [
        ("cpu.cores", ">=four", "compares numbers, and 'four' is not a number"),
        ("cpu.cores", "", "has no value to compare with"),
        ("cpu.cores", ">= ", "has no value to compare with"),
        ("cpu.cores", "=>4", "is not a comparison: '=>4'; the signs are >=, <=, >, <, ==, !="),
        ("cpu.cores", ">>4", "is not a comparison: '>>4'; the signs are >=, <=, >, <, ==, !="),
        ("cpu.cores", "=4", "is not a comparison: '=4'; the signs are >=, <=, >, <, ==, !="),
        ("os", "!linux", "is not a comparison: '!linux'; the signs are >=, <=, >, <, ==, !="),
        ("cpu.cores", True, "must be a number, not true"),
        (
            "memory_gib", ">=16GiB",
            "compares numbers, and '16GiB' is not a number; write the number of GiB without a unit",
        ),
        ("cpu.cores", "4*", "compares numbers, and '4*' is not a number"),
        ("cpu.model", ">=3", "is text, which has no order: >= is for numbers and versions"),
        ("hardware_id", 1234, "is text: put 1234 in quotes"),
        ("engine.torch", ">=2.x", "compares versions, and '2.x' is not a version"),
        ("engine.torch", 1.2, "is a version, and a bare 1.2 may have lost a zero at its end: put it in quotes"),
    ],
)  # fmt: skip
def test_what_cannot_be_understood_is_refused_with_advice(name: str, wanted: Value, said: str) -> None:
    with pytest.raises(ValueError, match=r"\w") as caught:
        parse_comparison(name, wanted)
    assert str(caught.value) == said


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("os", "text"),
        ("memory_gib", "number"),
        ("label.a", "either"),
        ("label.a.b/c", "either"),
        ("engine.torch", "version"),
        ("engine.torch.unit", "text"),
        ("engine.torch.precision", "text"),
        ("engine.torch.precision.gpu.0", "text"),
        ("package.numpy", "version"),
        ("engine.torch.size", None),
        ("engine.torch.precision.", None),
        ("engine.", None),
        ("engine..unit", None),
        ("label", None),
        ("cpu", None),
        ("", None),
    ],
)
def test_a_name_tells_how_its_values_compare(name: str, kind: str | None) -> None:
    assert comparing(name) == kind


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("cpu.coers", "did you mean cpu.cores?"),
        ("cores", "did you mean cpu.cores?"),
        ("memory", "did you mean memory_gib?"),
        ("engin.onnxruntime", "did you mean engine.onnxruntime?"),
        ("engine.onnxruntime.unti", "did you mean engine.onnxruntime.unit?"),
        ("labels.rack", "did you mean label.rack?"),
        ("label", "known here: label.KEY"),
    ],
)
def test_the_nearest_name_is_told(name: str, said: str) -> None:
    assert advise_fact(name) == said


def test_where_nothing_is_near_every_name_is_told() -> None:
    assert advise_fact("zzz").startswith("known: os, os.version, ")
