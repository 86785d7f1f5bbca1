"""Show what was answered beside what it was held against, with the scores of each item."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from prony.errors import StoreError
from prony.instruments.kept_answers import WholeAnswer, read_answers
from prony.model.experiment_data import Entry
from prony.model.metric import key_of
from prony.model.section import Fact, Section, SectionTable
from prony.ports.driver import ScoresAnswers
from prony.ports.find_task import find_task

_MOST_ITEMS = 50
_LONGEST = 1200


def answer_sections(
    entry: Entry, task: str | None, prompts: Mapping[str, Any], notes: Mapping[str, str]
) -> tuple[Section, ...]:
    """Return the answers of the first run, worst first; nothing of a task that scores none.

    Args:
        entry: Whose answers they are.
        task: What was asked, as the recipe names it.
        prompts: The options of the task, as the recipe has them.
        notes: What was said of the prompts and the scorer when it ran.
    """
    items = entry.summary.items
    if not items or not entry.folder.is_dir():
        return ()
    try:
        answers = [one for one in read_answers(entry.folder) if one.is_whole]
    except StoreError as exc:
        return (Section(title="Answers and references", note=str(exc)),)
    first: dict[str, WholeAnswer] = {}
    for one in answers:
        first.setdefault(one.item, one)
    keys = list(items)
    ranked = sorted(first.values(), key=lambda one: (items[keys[0]].get(one.item, 0.0), one.item))[:_MOST_ITEMS]
    headings = ("item", *(_heading(key) for key in keys), "answer", "reference")
    rows = tuple(
        (one.item, *(_score(items[key].get(one.item)) for key in keys), _shorten(one.output), _references(one))
        for one in ranked
    )
    table = SectionTable(headings=headings, rows=rows, numeric=tuple(range(1, 1 + len(keys))))
    note = _note(entry, len(ranked))
    return (Section(title="Answers and references", note=note, facts=_facts(task, prompts, notes), tables=(table,)),)


def _note(entry: Entry, shown: int) -> str:
    count = max(len(values) for values in entry.summary.items.values())
    which = "All" if shown >= count else f"The {shown} worst of {count}"
    return f"{which} items, the worst first; scores are means over all runs; answers are from the first run."


def _facts(name: str | None, prompts: Mapping[str, Any], notes: Mapping[str, str]) -> tuple[Fact, ...]:
    task, options = find_task(name, prompts)
    facts: list[Fact] = [("scored by", task.scoring(options))] if isinstance(task, ScoresAnswers) else []
    return (*facts, *((name, notes[name]) for name in ("cut", "chunked", "scorer") if name in notes))


def _heading(key: str) -> str:
    found = key_of(key)
    return found.operation or found.metric


def _score(value: float | None) -> str:
    return "" if value is None else f"{value:.3f}"


def _shorten(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"


def _references(one: WholeAnswer) -> str:
    return _shorten(" / ".join(one.parts[0].references))
