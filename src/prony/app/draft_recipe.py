"""Write a recipe of the answers to a form, by the rules of the command or of the kind that it belongs to."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from pydantic import ValidationError

from prony.app.command_recipe import CommandRequest, draft_command_recipe
from prony.app.hardware_recipe import UNIT_TESTS, HardwareRequest, draft_hardware_recipe
from prony.app.llm_recipe import LlmRequest, draft_llm_recipe, fitting_engines
from prony.app.model_recipe import ModelRequest, draft_with_engines
from prony.app.quick_recipe import QuickRecipe
from prony.app.recipe_forms import (
    BENCH_FORM,
    COMMAND,
    COMMAND_FORM,
    DEVICE,
    DUET_FORM,
    ENGINE,
    HARDWARE_FORM,
    LLM_FORM,
    LLM_NUMBERS,
    MODEL,
    NAME,
    REPEATS,
    UNIT,
)
from prony.errors import InputError, NotFoundError
from prony.model.kind_card import FormField, KindForm
from prony.model.queue import Submission
from prony.model.recipe_form import FilledForm, RecipeForm
from prony.model.validation_words import describe_invalid
from prony.ports.workload import kind_names, shown_kind
from prony.recipe import yaml_text
from prony.recipe.duet_overrides import SIDES, read_side, write_duet
from prony.recipe.positions import with_value

Answers = Mapping[str, str]
# More than any number here needs; Python refuses to read thousands of them.
_MOST_DIGITS = 18


@dataclass(frozen=True)
class _Drafter:
    """A form, and how its answers become a recipe's text."""

    form: RecipeForm
    write: Callable[[Answers], str]


def list_recipe_forms() -> tuple[RecipeForm, ...]:
    """Return the forms that there are."""
    return (*(one.form for one in _drafters()), DUET_FORM)


def draft_recipe(filled: FilledForm) -> str:
    """Return the recipe that the answers of a form mean.

    Raises:
        NotFoundError: There is no such form.
        InputError: An answer cannot be used.
    """
    found = {one.form.name: one for one in _drafters()}
    if filled.form not in found:
        raise NotFoundError(
            f"no recipe form has the name {filled.form!r}", hint=f"use one of: {', '.join((*found, DUET_FORM.name))}"
        )
    _refuse_unknown(filled, found[filled.form].form)
    return found[filled.form].write(filled.answers)


def draft_duet(filled: FilledForm) -> Submission:
    """Return the recipe of a filled form with what makes it a duet; it was not read yet.

    Raises:
        InputError: There is no recipe, or an answer cannot be used.
    """
    _refuse_unknown(filled, DUET_FORM)
    if not filled.text.strip():
        raise InputError("a duet needs a recipe", hint="write or choose a recipe first")
    sides = {side: read_side(_lines(filled.answers, f"duet.{side}"), said_as=f"side {side}:") for side in SIDES}
    if not any(sides.values()):
        raise InputError("both sides are the same", hint="write what differs, for example threads=1 and threads=2")
    overrides = write_duet(sides, _number(filled.answers, "duet.pairs", "Runs of each side"))
    try:
        return Submission(text=filled.text, name=filled.name, overrides=tuple(overrides))
    except ValidationError as exc:
        hint = "shorten the recipe or its sides; its name ends in .yaml, .toml or .json"
        raise InputError(f"this duet cannot be submitted: {describe_invalid(exc)}", hint=hint) from exc


def _refuse_unknown(filled: FilledForm, form: RecipeForm) -> None:
    known = [one.path for one in form.fields]
    unknown = next((path for path in filled.answers if path not in known), None)
    if unknown is not None:
        raise InputError(f"the form {form.name} has no field {unknown}", hint=f"its fields: {', '.join(known)}")


def _drafters() -> Iterator[_Drafter]:
    yield _Drafter(BENCH_FORM, _write_model)
    yield _Drafter(LLM_FORM, _write_llm)
    yield _Drafter(HARDWARE_FORM, _write_hardware)
    yield _Drafter(COMMAND_FORM, _write_commands)
    for kind in kind_names():
        form = shown_kind(kind).report.form
        if form is not None:
            yield _Drafter(_form_of_kind(kind, form), partial(_write_kind, kind, form))


def _write_model(answers: Answers) -> str:
    models = _words(answers, MODEL)
    engines = _words(answers, ENGINE)
    if not models or not engines:
        raise InputError("name a model and an engine", hint="for example zoo:mobilenet-v2 on onnxruntime")
    request = ModelRequest(
        models=models, engines=engines, units=_words(answers, UNIT),
        batch_sizes=_numbers(answers, "workload.batch_size", "Batch sizes"),
        repeats=_number(answers, REPEATS, "Runs"),
    )  # fmt: skip
    return _write_quick(draft_with_engines(request, [engines] * len(models)), answers)


def _write_commands(answers: Answers) -> str:
    commands = _lines(answers, COMMAND)
    if not commands:
        raise InputError("the field Command is empty", hint="write a command there, such as: python3 -c 'print(1)'")
    request = CommandRequest(
        commands=commands, runs=_number(answers, REPEATS, "Executions"),
        warmup=_number(answers, "measure.warmup", "Warm-up") or 0, directory=None,
    )  # fmt: skip
    return _write_quick(draft_command_recipe(request), answers)


def _write_hardware(answers: Answers) -> str:
    request = HardwareRequest(
        units=_words(answers, UNIT) or tuple(UNIT_TESTS), tests=_words(answers, "workload.test"),
        library=answers.get("workload.library") or "numpy", repeats=_number(answers, REPEATS, "Runs") or 5,
    )  # fmt: skip
    return _write_quick(QuickRecipe(draft_hardware_recipe(request)), answers)


def _write_llm(answers: Answers) -> str:
    models = _words(answers, MODEL)
    if len(models) != 1:
        raise InputError("name one model", hint="for example zoo:llm-1m")
    lists: dict[str, tuple[Any, ...]] = {"engine": _words(answers, ENGINE) or tuple(fitting_engines(models[0])[:1])}
    lists |= {"unit": _words(answers, UNIT)}
    lists |= {name: _numbers(answers, f"workload.{name}", label) for name, label in LLM_NUMBERS.items()}
    asked = {name: values for name, values in lists.items() if values}
    request = LlmRequest(models[0], asked, runs=_number(answers, REPEATS, "Runs") or 5)
    return _write_quick(QuickRecipe(draft_llm_recipe(request)), answers)


def _write_kind(kind: str, form: KindForm, answers: Answers) -> str:
    document: dict[str, Any] = {NAME: form.name, "workload": {"kind": kind}}
    axes: dict[str, Any] = {}
    for field in form.fields:
        words = _words(answers, field.path) if field.takes_several else (answers.get(field.path, ""),)
        values = [
            one.strip() if field.is_text else yaml_text.parse(one.strip(), field.label).document
            for one in words
            if one.strip()
        ]
        if len(values) > 1:
            axes[field.path] = values
        elif values and words[0].strip() != field.default:
            document = with_value(document, tuple(field.path.split(".")), values[0])
    rest = {key: value for key, value in document.items() if key not in (NAME, "workload")}
    whole = {NAME: form.name, "workload": document["workload"], "matrix": axes} | rest
    return _write_quick(QuickRecipe(whole), answers)


def _write_quick(quick: QuickRecipe, answers: Answers) -> str:
    """Return the text of a recipe, with the name and the device that were asked for."""
    document = {key: value for key, value in quick.document.items() if value != {}}
    document |= {NAME: answers[NAME].strip()} if answers.get(NAME, "").strip() else {}
    document |= {"place": {"where": {"device": device}}} if (device := answers.get(DEVICE, "").strip()) else {}
    return QuickRecipe(document, quick.assumptions).text


def _words(answers: Answers, path: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(word for part in answers.get(path, "").split(",") if (word := part.strip())))


def _lines(answers: Answers, path: str) -> tuple[str, ...]:
    return tuple(line.strip() for line in answers.get(path, "").splitlines() if line.strip())


def _numbers(answers: Answers, path: str, label: str) -> tuple[int, ...]:
    words = _words(answers, path)
    wrong = next((word for word in words if not (word.isascii() and word.isdecimal())), None)
    if wrong is not None:
        raise InputError(f"{label}: {wrong!r} is not a whole number", hint="for example 8")
    if any(len(word) > _MOST_DIGITS for word in words):
        raise InputError(f"{label}: a number has more than {_MOST_DIGITS} digits", hint="for example 8")
    return tuple(int(word) for word in words)


def _number(answers: Answers, path: str, label: str) -> int | None:
    found = _numbers(answers, path, label)
    if len(found) > 1:
        raise InputError(f"{label}: one number, not {len(found)}", hint="for example 5")
    return found[0] if found else None


def _form_of_kind(kind: str, form: KindForm) -> RecipeForm:
    name = FormField(path=NAME, label="Name", value=form.name)
    return RecipeForm(name=kind, label=form.label, fields=(name, *form.fields))
