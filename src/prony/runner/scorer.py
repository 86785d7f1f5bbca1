"""Run the user's own scorer over kept answers.

It gets `id`, `input`, `output`, `references` and `repetition` of each answer, and prints a number or an object of
numbers for each, in the same order. It ends with all that it started when its time is over, and before this returns.
"""

from __future__ import annotations

import json
import math
import os
import re
import shlex
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil

from prony.errors import PronyError, SutError
from prony.instruments.kept_answers import WholeAnswer, pair_scores, read_answers, write_scores
from prony.model.answer import ScoringOptions
from prony.runner import scorer_function
from prony.runner.commands import guard_processes
from prony.runner.services import process_tree
from prony.runner.services.site import with_own_programs

_PAUSE_S = 0.02
_MOST_BYTES = 64 * 2**20
_TAIL = 300
_PLAIN = "score"
_FUNCTION = re.compile(r"(.+\.py):([A-Za-z_]\w*)")


@dataclass(frozen=True)
class ScorerOrder:
    """`memory_bytes` is what its processes may have together; None: as much as there is."""

    command: str
    limit_s: float
    memory_bytes: int | None = None


def score_by_recipe(folder: Path, options: Any, memory_bytes: int | None, say: Callable[[str], None]) -> str:
    """Let the scorer that a recipe names look at the answers of a folder; return why there are no scores of it.

    One that fails costs its scores and nothing else.
    """
    if not isinstance(options, ScoringOptions) or options.scorer is None:
        return ""
    answers = [one for one in read_answers(folder) if one.is_whole]
    if not answers:
        return ""
    say(f"scoring {len(answers)} answers")
    order = ScorerOrder(options.scorer, options.scorer_limit / 1e9, memory_bytes)
    try:
        write_scores(folder, pair_scores(answers, run_scorer(order, answers)))
    except PronyError as exc:
        say(exc.message)
        return exc.message
    return ""


def run_scorer(order: ScorerOrder, answers: Sequence[WholeAnswer]) -> list[dict[str, float]]:
    """Return the numbers of each answer by name, a plain number as `score`.

    Raises:
        SutError: It cannot be started, failed, took too long, or printed something else.
    """
    with tempfile.TemporaryDirectory(prefix="prony-scorer-") as folder:
        given = Path(folder) / "answers.jsonl"
        given.write_text("".join(f"{json.dumps(_describe(one))}\n" for one in answers), encoding="utf-8")
        printed, said = Path(folder) / "printed", Path(folder) / "said"
        status = _run(order, given, printed, said)
        if status != 0:
            words = said.read_bytes()[-_TAIL:].decode(errors="replace").strip()
            raise _failure(f"it ended with {status}; its last output: {words or 'none'}")
        return _read_lines(printed.read_text(encoding="utf-8", errors="replace"), answers)


def _describe(one: WholeAnswer) -> dict[str, Any]:
    return {
        "id": one.item, "input": "\n".join(part.input for part in one.parts), "output": one.output,
        "references": one.parts[0].references, "repetition": one.repetition,
    }  # fmt: skip


def _run(order: ScorerOrder, given: Path, printed: Path, said: Path) -> int:
    with guard_processes() as token, given.open("rb") as lines, printed.open("wb") as out, said.open("wb") as words:
        environment = {**os.environ, "PATH": with_own_programs(os.environ.get("PATH", "")), process_tree.TOKEN: token}
        try:
            process = subprocess.Popen(
                _command_words(order.command), stdin=lines, stdout=out, stderr=words, env=environment,
                start_new_session=True,
            )  # fmt: skip
        except (OSError, ValueError) as exc:
            raise _failure(f"it cannot be started: {exc}") from exc
        try:
            _wait(order, process, printed)
        finally:
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
    return process.returncode


def _command_words(command: str) -> list[str]:
    """Return the words of a command; `FILE.py:FUNCTION` is called by this interpreter."""
    words = shlex.split(command)
    match = _FUNCTION.fullmatch(words[0]) if len(words) == 1 else None
    return words if match is None else [sys.executable, scorer_function.__file__, match[1], match[2]]


def _wait(order: ScorerOrder, process: subprocess.Popen[bytes], printed: Path) -> None:
    """Wait for its end, and end it where it takes more than it may."""
    deadline = time.monotonic() + order.limit_s
    while process.poll() is None:
        if time.monotonic() > deadline:
            raise _failure(f"it timed out after {order.limit_s:g} s", "raise prompts.scorer_limit")
        if printed.stat().st_size > _MOST_BYTES:
            raise _failure(f"it printed more than {_MOST_BYTES // 2**20} MiB and was killed")
        if order.memory_bytes is not None and _memory_bytes(process.pid) > order.memory_bytes:
            raise _failure("it exceeded its memory limit and was killed", "raise limits.memory")
        time.sleep(_PAUSE_S)


def _memory_bytes(pid: int) -> int:
    try:
        first = psutil.Process(pid)
        return sum(_rss_bytes(one) for one in (first, *first.children(recursive=True)))
    except psutil.Error:
        return 0


def _rss_bytes(process: psutil.Process) -> int:
    try:
        return int(process.memory_info().rss)
    except psutil.Error:
        return 0


def _read_lines(text: str, answers: Sequence[WholeAnswer]) -> list[dict[str, float]]:
    lines = [line for line in text.splitlines() if line.strip()]
    if len(lines) != len(answers):
        raise _failure(
            f"it printed {len(lines)} lines for {len(answers)} answers", "print one line of JSON for each answer"
        )
    return [
        _read_line(line, number, one.item) for number, (line, one) in enumerate(zip(lines, answers, strict=True), 1)
    ]


def _read_line(line: str, number: int, item: str) -> dict[str, float]:
    try:
        value = json.loads(line)
    except ValueError as exc:
        raise _failure(f"its line {number} is not JSON: {line[:80]}") from exc
    told: Mapping[str, Any] = value if isinstance(value, dict) else {_PLAIN: value}
    if "id" in told and told["id"] != item:
        raise _failure(f"its line {number} has the id {told['id']!r}, but answer {number} has {item!r}")
    found = {name: float(score) for name, score in told.items() if name != "id" and _is_number(score)}
    if not found or len(found) < len(told) - ("id" in told):
        raise _failure(f"its line {number} contains something that is not a finite number: {line[:80]}")
    return found


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def _failure(message: str, hint: str = "`prony docs quality` says what a scorer reads and prints") -> SutError:
    return SutError(f"the scorer failed: {message}", hint=hint, code="scorer_failed")
