"""Make the prompts of a task fit a model, and keep what it answered."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from prony.errors import InputError, SutError
from prony.instruments.kept_answers import append_answers
from prony.kinds.llm.runner.quality import Predictor
from prony.kinds.llm.schema import LlmWorkload
from prony.model.answer import KeptAnswer
from prony.model.job import Job
from prony.ports.driver import Prompt, ScoresAnswers, TextLikelihood, describe_cuts, format_likelihood
from prony.ports.find_task import find_task
from prony.runner.child.wire import ChildOrder, Message
from prony.runner.folder import ResultFolder
from prony.runner.host import Watch

ANSWERS = "prony.kinds.llm.child.answers:AnswerSuite"
_ENCODE = "prony.kinds.llm.child.answers:EncodeSuite"
_MOST_PROMPTS = 10_000
_CONTEXT = 64  # of the process that encodes: it reads nothing
_MARGIN = 2
# Words become tokens unevenly: how often texts are cut shorter until all fit, and by how much more than seems needed.
_TRIES = 6
_SHORTER = 0.95


@dataclass(frozen=True)
class AskedPrompts:
    """The prompts of a job, with the file in which its processes find their ids; `context` holds the longest."""

    prompts: tuple[Prompt, ...]
    options: Any
    file: Path
    context: int
    notes: dict[str, str]


@dataclass(frozen=True)
class _Encoded:
    """The ids of each prompt, in what form they are, and how many tokens the model was made for; 0: any."""

    ids: list[list[int]]
    form: str
    context: int


def encode_prompts(mine: Predictor, job: Job, scratch: Path) -> AskedPrompts:
    """Return what a job's task asks, as ids that fit the model.

    Texts that do not fit are cut or asked about in parts where the task's `fit` says so and no `longest` is given.

    Raises:
        InputError: A prompt is longer than the model was made for, and the task says nothing of that.
        SutError: The engine could not encode them.
    """
    work = job.work(LlmWorkload)
    _, options = find_task(work.task, work.prompts)
    notes: dict[str, str] = {}
    for _ in range(_TRIES):
        prompts = make_prompts(job, options)
        encoded = _encode(mine, prompts, job, scratch)
        limits = [0 if prompt.window else prompt.max_tokens or work.generate for prompt in prompts]
        read = [min(len(ids), prompt.window or len(ids)) for ids, prompt in zip(encoded.ids, prompts, strict=True)]
        sizes = [count + most + _MARGIN for count, most in zip(read, limits, strict=True)]
        if not encoded.context or max(sizes) <= encoded.context:
            break
        place = sizes.index(max(sizes))
        longest = _find_longest(prompts[place], len(encoded.ids[place]), encoded.context - limits[place] - _MARGIN)
        options = _shorten(options, longest, work.prompts, _name_excess(prompts[place], sizes[place], encoded))
        notes["longest"] = f"{longest} words per text, so that all prompts fit into {encoded.context} tokens"
    else:
        raise InputError(
            _name_excess(prompts[place], sizes[place], encoded),
            hint="shorten the prompt or its answer, or take a model with a longer context",
            code="context_exceeded",
        )
    file = scratch / f"prompts-{job.id}.json"
    given = [
        {"ids": ids, "most": most, "goes_on": prompt.exact_tokens, "window": prompt.window}
        for ids, most, prompt in zip(encoded.ids, limits, prompts, strict=True)
    ]
    file.write_text(json.dumps(given))
    notes |= {"prompt form": encoded.form, **describe_cuts(prompts)}
    return AskedPrompts(prompts, options, file, max(sizes), notes)


def make_prompts(job: Job, options: Any = None) -> tuple[Prompt, ...]:
    """Return what a job's task asks with these options, by default those of the recipe.

    Raises:
        InputError: Its data cannot be read, or there is none.
    """
    work = job.work(LlmWorkload)
    task, written = find_task(work.task, work.prompts)
    count = _MOST_PROMPTS if isinstance(task, ScoresAnswers) else work.passes
    seeds = {"prompts": work.seed, "lengths": work.seed}
    given = written if options is None else options
    prompts = tuple(task.prompts(given, count=count, seeds=seeds, base=Path(), lengths=None))
    if not prompts:
        raise InputError("the task has no prompts", hint="check that `prompts.file` is not empty")
    return prompts


def _encode(mine: Predictor, prompts: Sequence[Prompt], job: Job, scratch: Path) -> _Encoded:
    file = scratch / f"messages-{job.id}.json"
    file.write_text(json.dumps([[dict(one) for one in prompt.messages] for prompt in prompts]))
    options = {
        "model": str(mine.model), "unit": mine.unit, "threads": mine.threads, "precision": mine.precision, "batch": 1,
        "context": _CONTEXT, "options": mine.options, "messages_file": str(file), "cache": str(mine.cache),
        "are_texts": bool(prompts[0].window),
    }  # fmt: skip
    order = ChildOrder(op="tests", suite=_ENCODE, options=options, warmup=0)
    answer = mine.host.perform(order, Watch(timeout_ns=job.limits.timeout))
    if answer.failure is not None or answer.done is None:
        why = answer.failure
        raise SutError(
            f"{mine.host.name} could not encode the prompts: {'no answer' if why is None else why.message}",
            hint="" if why is None else why.hint, code="engine_error" if why is None else why.code,
        )  # fmt: skip
    readings = answer.done["readings"]
    return _Encoded([one["ids"] for one in readings], readings[0]["form"], answer.done["facts"]["context"])


def _find_longest(prompt: Prompt, tokens: int, room: int) -> int:
    """Return how many words of a text would fit, by how many tokens the words of this prompt have."""
    words = sum(len(one["content"].split()) for one in prompt.messages)
    return int(words * room / tokens * _SHORTER) - 10


def _shorten(options: Any, longest: int, written: dict[str, Any], excess: str) -> Any:
    """Return the task's options with shorter texts; refused where it takes none, or the recipe says how long."""
    fields = type(options).model_fields
    fixed = "longest" in written or "tokenizer" in written or written.get("fit") == "refuse"
    least = next((one.ge for one in fields["longest"].metadata if hasattr(one, "ge")), 1) if "longest" in fields else 1
    if "longest" not in fields or "fit" not in fields or fixed or longest < least:
        hint = "set prompts.longest or prompts.fit" if "longest" in fields else "use fewer or shorter texts"
        raise InputError(excess, hint=hint, code="context_exceeded")
    return options.model_copy(update={"longest": longest})


def _name_excess(prompt: Prompt, size: int, encoded: _Encoded) -> str:
    name = "a prompt" if prompt.item is None else f"the prompt of {prompt.item.name}"
    return f"{name} needs {size} tokens with its answer, but the model's context is {encoded.context}"


def keep_answers(folder: ResultFolder, asked: AskedPrompts, repetition: int, readings: Sequence[Message]) -> None:
    """Write down what one run answered; prompts that it did not come to have no line."""
    pairs = zip(asked.prompts, readings, strict=False)
    append_answers(folder.path, [
        KeptAnswer(
            repetition=repetition, item=prompt.item.name, part=prompt.item.part, parts=prompt.item.parts,
            input=prompt.messages[-1]["content"], output=_word_answer(prompt, one), references=prompt.item.references,
            finish=one["finish"], output_tokens=len(one["stamps"]), left_out_words=prompt.item.left_out_words,
        )
        for prompt, one in pairs if prompt.item is not None
    ])  # fmt: skip


def _word_answer(prompt: Prompt, reading: Message) -> str:
    if "nat" not in reading:
        return str(reading["text"])
    size = len(prompt.messages[-1]["content"].encode())
    return format_likelihood(TextLikelihood(reading["tokens"], size, reading["nat"]))
