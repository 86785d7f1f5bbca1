"""What a person writes for an id is found, or refused with what to write instead."""

from __future__ import annotations

import pytest

from prony.client.resolve_id import only_match
from prony.errors import InputError, NotFoundError


def test_the_only_match_is_the_id() -> None:
    assert only_match(["a1"], "a", "agent", "prony agents") == "a1"


@pytest.mark.parametrize(("noun", "several"), [("agent", "2 agents"), ("series", "2 series")])
def test_several_of_the_same_name_are_told_apart_by_their_ids(noun: str, several: str) -> None:
    with pytest.raises(InputError) as told:
        only_match(["a1", "b2"], "lab", noun, "prony agents")
    assert told.value.message == f"'lab' matches {several}: a1, b2"
    assert told.value.hint == "use the id of one of them; `prony agents` lists them"
    assert told.value.code == "ambiguous"


def test_nothing_that_matches_is_not_found() -> None:
    with pytest.raises(NotFoundError, match="no agent 'x'"):
        only_match([], "x", "agent", "prony agents")
