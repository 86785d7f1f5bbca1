"""Short forms become recipes by the rules of the commands that they stand for, and the store is checked over HTTP."""

from __future__ import annotations

import pytest

from prony.app.draft_recipe import draft_recipe, list_recipe_forms
from prony.app.hardware_recipe import HardwareRequest, draft_hardware_recipe
from prony.client import Client
from prony.errors import InputError, NotFoundError
from prony.model.recipe_form import FilledForm
from prony.recipe import LoadedRecipe, loads

from .house import House

FORMS = {one.name: one for one in list_recipe_forms()}
NEW = [name for name, one in FORMS.items() if not one.changes_recipe]
TINY = 'name: tiny\nworkload: {kind: model, model: "zoo:tiny", engine: onnxruntime}  # a comment\n'
DIGITS = "9" * 5000


def draft(form: str, **changed: str) -> LoadedRecipe:
    """Return the recipe of a form's own answers with some of them changed; `__` stands for a dot."""
    answers = {one.path: one.value for one in FORMS[form].fields}
    answers |= {path.replace("__", "."): text for path, text in changed.items()}
    return loads(draft_recipe(FilledForm(form=form, answers=answers)))


@pytest.mark.parametrize("form", NEW)
def test_the_answers_that_a_form_begins_with_make_a_good_recipe(form: str) -> None:
    assert draft(form).jobs("e1")


def test_there_is_a_form_for_each_command_that_writes_a_recipe() -> None:
    assert {"bench", "llm", "hardware", "command", "service", "duet"} <= set(FORMS)


def test_hardware_is_what_the_command_writes() -> None:
    written = draft_hardware_recipe(HardwareRequest(units=("disk", "cuda-0", "cuda-1"), repeats=7))
    found = draft("hardware", workload__unit="disk, cuda-0, cuda-1", measure__repeats="7")
    assert found.document["matrix"] == written["matrix"]
    assert found.recipe.measure.repeats == 7


def test_two_models_run_in_turns_and_the_device_is_asked_for() -> None:
    found = draft("bench", workload__model="zoo:tiny, zoo:mlp", place__where__device="rack-7").recipe
    assert found.duet is not None
    assert (found.duet.a, found.duet.pairs) == ({"workload.model": "zoo:tiny"}, 10)
    assert found.place.where == {"device": "rack-7"}


def test_an_engine_that_loads_the_language_model_is_chosen() -> None:
    found = draft("llm", workload__model="hf:a/b/c.gguf", workload__prompt="16, 32").document
    assert found["workload"]["engine"] == "llamacpp"
    assert found["matrix"] == {"workload.prompt": [16, 32]}


def test_each_line_is_a_command() -> None:
    found = draft("command", workload__command="echo a, b\necho c\n").recipe
    assert found.duet is not None
    assert found.duet.b == {"workload.command": "echo c"}


@pytest.mark.parametrize(
    ("form", "answers", "told"),
    [
        ("bench", {"workload.model": ""}, "name a model"),
        ("llm", {"workload.model": "x.unknown", "workload.engine": "a", "workload.prompt": "many"}, "Prompt lengths"),
        ("hardware", {"workload.unit": "disk", "workload.test": "cpu-gemm"}, "has none of these tests"),
        ("hardware", {"measure.repeats": "5, 6"}, "one number"),
        ("hardware", {"workload.colour": "red"}, "no field workload.colour"),
        ("command", {"workload.command": "  \n"}, "the field Command is empty"),
    ],
)
def test_an_answer_that_cannot_be_used_is_refused_with_its_reason(
    form: str, answers: dict[str, str], told: str
) -> None:
    with pytest.raises(InputError, match=told):
        draft_recipe(FilledForm(form=form, answers=answers))


def test_a_form_that_is_not_there_is_not_found() -> None:
    with pytest.raises(NotFoundError, match="no recipe form has the name 'dream'"):
        draft_recipe(FilledForm(form="dream"))


def test_a_duet_is_made_of_the_recipe_that_is_there(house: House) -> None:
    answers = {"duet.a": "threads=1", "duet.b": "threads=2\nbatch_size=4", "duet.pairs": "12"}
    with Client(house.url) as client:
        found = client.recipes.draft(FilledForm(form="duet", answers=answers, text=TINY)).text
        assert client.recipes.forms().items == list_recipe_forms()
    duet = loads(found).recipe.duet
    assert duet is not None
    assert (duet.a, duet.pairs) == ({"workload.threads": 1}, 12)
    assert duet.b == {"workload.threads": 2, "workload.batch_size": 4}


@pytest.mark.parametrize(
    ("answers", "text", "told"),
    [
        ({"duet.a": "threads=1"}, "", "a duet needs a recipe"),
        ({"duet.a": ""}, TINY, "both sides are the same"),
        ({"duet.a": "threads"}, TINY, "side a: threads is not PATH=VALUE"),
        ({"duet.a": "threads=1", "duet.pairs": DIGITS}, TINY, "Runs of each side: a number has more than 18 digits"),
        ({"duet.b": f"batch_size=[{'1,' * 4990}1]"}, TINY, r"cannot be submitted: overrides\.0"),
        ({"duet.b": "\n".join(f"labels.a{n}=1" for n in range(700))}, TINY, r"cannot be submitted: overrides\.0"),
        ({"duet.a": "threads=1"}, f"# {'x' * 600_000}\n{TINY}", "cannot be submitted: text"),
        ({"duet.a": "workload.colour=1"}, TINY, "unknown key"),
    ],
)
def test_a_duet_that_cannot_be_made_is_refused_with_its_reason(
    house: House, answers: dict[str, str], text: str, told: str
) -> None:
    with Client(house.url) as client, pytest.raises(InputError, match=told) as refused:
        client.recipes.draft(FilledForm(form="duet", answers=answers, text=text))
    assert refused.value.hint


def test_a_number_that_python_does_not_read_is_refused_over_http(house: House) -> None:
    answers = {"workload.model": "zoo:tiny", "workload.engine": "onnxruntime", "workload.batch_size": DIGITS}
    answer = house.client.post("/api/v1/recipes/draft", json={"form": "bench", "answers": answers})
    assert (answer.status_code, answer.json()["hint"]) == (422, "for example 8")
    assert answer.json()["detail"] == "Batch sizes: a number has more than 18 digits"


def test_an_answer_without_end_is_refused(house: House) -> None:
    endless = FilledForm.model_construct(form="hardware", answers={"workload.unit": "cpu," * 10_000})
    with Client(house.url) as client, pytest.raises(InputError, match=r"10,?000"):
        client.recipes.draft(endless)


def test_an_admin_has_the_store_checked(house: House) -> None:
    with Client(house.url) as client:
        found = client.server.check_store()
    assert found.damages == ()
