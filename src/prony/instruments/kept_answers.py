"""Read and write the answers that a result folder keeps to be scored, and what a scorer of the user's own said of them.

`outputs.jsonl` has a line for each answer. `scores.jsonl` has one for each item that the user's own scorer scored, with
the numbers under `scores` by name.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path

from pydantic import ValidationError

from prony.errors import StoreError
from prony.model.answer import ItemScores, KeptAnswer
from prony.ports.driver import ItemAnswer

OUTPUTS = "outputs.jsonl"
SCORES = "scores.jsonl"
_HINT = "restore it from a copy, or run the job again"


@dataclass(frozen=True)
class WholeAnswer:
    """All parts of the answer to one item in one round of one run, in order."""

    repetition: int
    round: int
    parts: tuple[KeptAnswer, ...]

    @property
    def item(self) -> str:
        return self.parts[0].item

    @property
    def is_whole(self) -> bool:
        """Was every part asked and answered? An empty answer is one."""
        return len(self.parts) == self.parts[0].parts and not any(one.failed for one in self.parts)

    @property
    def is_cut(self) -> bool:
        return any(one.finish == "length" for one in self.parts)

    @property
    def output(self) -> str:
        return "\n".join(one.output for one in self.parts)

    @property
    def answer(self) -> ItemAnswer:
        return ItemAnswer(self.item, self.output, self.parts[0].references)


def append_answers(folder: Path, answers: Iterable[KeptAnswer]) -> None:
    """Keep the answers of one run; those of earlier runs stay."""
    text = "".join(f"{one.model_dump_json()}\n" for one in answers)
    try:
        with (folder / OUTPUTS).open("a", encoding="utf-8") as file:
            file.write(text)
    except OSError as exc:
        raise StoreError(f"cannot write {folder / OUTPUTS}: {exc.strerror}", hint="check the free disk space") from exc


def read_answers(folder: Path) -> list[WholeAnswer]:
    """Return the answers of a result folder, run by run; none where none were kept."""
    kept = [_read_answer(folder, number, line) for number, line in _lines(folder / OUTPUTS)]
    kept.sort(key=lambda one: (one.repetition, one.round, one.item, one.part))
    groups = groupby(kept, key=lambda one: (one.repetition, one.round, one.item))
    return [WholeAnswer(key[0], key[1], tuple(parts)) for key, parts in groups]


def pair_scores(answers: Sequence[WholeAnswer], scores: Sequence[Mapping[str, float]]) -> tuple[ItemScores, ...]:
    """Return the numbers of a scorer with the answers that they are of."""
    return tuple(
        ItemScores(repetition=one.repetition, round=one.round, item=one.item, scores=dict(said))
        for one, said in zip(answers, scores, strict=True)
    )


def write_scores(folder: Path, scores: Sequence[ItemScores]) -> None:
    """Keep what a scorer said of each answer; what one said before is replaced."""
    unfinished = folder / f".{SCORES}.tmp"
    try:
        unfinished.write_text("".join(f"{one.model_dump_json()}\n" for one in scores), encoding="utf-8")
        unfinished.replace(folder / SCORES)
    except OSError as exc:
        raise StoreError(f"cannot write {folder / SCORES}: {exc.strerror}", hint="check the free disk space") from exc


def read_scores(folder: Path) -> dict[tuple[int, int, str], dict[str, float]]:
    """Return by repetition, round and item what the user's own scorer said; nothing where there was none."""
    found = {}
    for number, line in _lines(folder / SCORES):
        try:
            one = ItemScores.read_json(line)
        except ValidationError as exc:
            reason = exc.errors()[0]["msg"]
            raise StoreError(f"{folder / SCORES}, line {number} is damaged: {reason}", hint=_HINT) from exc
        found[one.repetition, one.round, one.item] = dict(one.scores)
    return found


def _lines(path: Path) -> Iterator[tuple[int, str]]:
    """Yield the lines that are there to their end: whoever wrote the last may have been killed."""
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        return
    except (OSError, UnicodeDecodeError) as exc:
        raise StoreError(f"{path} cannot be read: {exc}", hint=_HINT) from exc
    for number, line in enumerate(text.split("\n")[:-1], start=1):
        if line.strip():
            yield number, line


def _read_answer(folder: Path, number: int, line: str) -> KeptAnswer:
    try:
        return KeptAnswer.read_json(line)
    except ValidationError as exc:
        raise StoreError(f"{folder / OUTPUTS}, line {number} is damaged", hint=_HINT) from exc
