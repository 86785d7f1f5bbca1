"""How a text in another program's format becomes a recipe, whoever's format it is."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from prony.errors import RecipeError
from prony.kinds.model.schema import ModelWorkload
from prony.recipe import dialects, loads
from prony.recipe.dialects.translated_document import Draft, Translation
from prony.recipe.positions import Parsed

TEXT = """\
subject: zoo:mobilenet-v2
colour: blue
size: 8
"""


def _translate(parsed: Parsed) -> Translation:
    draft = Draft(parsed)
    draft.set("name", "translated")
    draft.set("workload.kind", "model", ("subject",))
    draft.set("workload.model", parsed.document["subject"], ("subject",))
    draft.set("workload.engine", "onnxruntime")
    draft.set("workload.batch_size", parsed.document["size"], ("size",))
    draft.note(("colour",), "has no meaning here", "leave it out")
    if parsed.document["colour"] == "red":
        draft.refuse(("colour",), "is not allowed")
    return draft.translation()


class _PlainDialect:
    title = "a plain note"
    keeps_folder_name = False

    def fits(self, document: Mapping[str, Any]) -> bool:
        return "subject" in document

    def translate(self, parsed: Parsed) -> Translation:
        return _translate(parsed)


@pytest.fixture(autouse=True)
def dialect(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dialects, "known_dialects", lambda: {"plain": _PlainDialect()})


def test_a_document_with_a_workload_is_never_a_dialect() -> None:
    assert dialects.recognise({"workload": {}, "subject": "x"}) is None
    assert dialects.recognise({"something": "else"}) is None


def test_a_dialect_becomes_a_recipe_with_notes_that_name_the_line() -> None:
    loaded = loads(TEXT, "yaml", "their.yaml")
    assert (loaded.dialect, loaded.recipe.name, loaded.recipe.work(ModelWorkload).model) == (
        "plain",
        "translated",
        "zoo:mobilenet-v2",
    )
    assert loaded.notes == ("their.yaml:2: colour: has no meaning here (leave it out)",)
    assert loaded.text == TEXT


def test_overrides_are_of_the_recipe_that_it_became() -> None:
    assert loads(TEXT, "yaml", "their.yaml", ["workload.batch_size=2"]).recipe.work(ModelWorkload).batch_size == 2


def test_a_problem_names_the_line_of_the_text_as_it_was_written() -> None:
    with pytest.raises(RecipeError) as found:
        loads(TEXT.replace("8", "0").replace("blue", "red"), "yaml", "their.yaml")
    assert [(one["line"], one["path"]) for one in found.value.problems] == [(2, "colour"), (3, "size")]
    assert found.value.problems[1]["hint"] == "it becomes workload.batch_size"
    assert found.value.hint == "it was read as a plain note"


def test_a_problem_of_an_override_stays_one_of_the_recipe() -> None:
    with pytest.raises(RecipeError) as found:
        loads(TEXT, "yaml", "their.yaml", ["workload.batch_size=0"])
    assert [one["path"] for one in found.value.problems] == ["workload.batch_size"]
