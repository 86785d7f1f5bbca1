"""Parse an alarm's condition and test events against it."""

from __future__ import annotations

import math
import re
from functools import lru_cache
from typing import Annotated, Literal, Self

from pydantic import AfterValidator, Field

from prony.model.base import Noun
from prony.model.metric import METRICS, STATISTICS, key_of, publish_name

Kind = Literal[
    "threshold", "regression", "suspect", "gate_failed", "agent_lost", "schedule_missed", "experiment_failed"
]
# As they are written; a comparison is a threshold.
WORDS: dict[str, Kind] = {
    "regression": "regression",
    "suspect": "suspect",
    "gate failed": "gate_failed",
    "agent lost": "agent_lost",
    "schedule missed": "schedule_missed",
    "experiment failed": "experiment_failed",
}
# Before the name of a number that only its script knows.
_OF_SCRIPT = "script:"
_NUMBER = r"[+-]?(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d+)?"
_COMPARISON = re.compile(rf"(?P<key>\S+)\s*(?P<sign>>=|<=|>|<)\s*(?P<limit>{_NUMBER})\s*(?P<unit>\S*)", re.IGNORECASE)


class Condition(Noun):
    """`key`, `sign` and `limit` belong to a threshold; the limit is in the metric's own unit."""

    kind: Kind
    key: str = ""
    sign: Literal["", ">", ">=", "<", "<="] = ""
    limit: float = 0.0

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read a condition; a ValueError says what is wrong with it."""
        words = " ".join(text.split())
        if words.lower() in WORDS:
            return cls(kind=WORDS[words.lower()])
        found = _COMPARISON.fullmatch(words)
        if found is None:
            known = ", ".join(repr(word) for word in WORDS)
            raise ValueError(f"{text[:80]!r} is no condition: write a threshold as 'inference_ms.p99 > 20', or {known}")
        if found["key"].startswith(_OF_SCRIPT):
            key, limit = _script_key(found["key"].removeprefix(_OF_SCRIPT)), _script_limit(found)
        else:
            _check_key(found["key"])
            key, limit = found["key"], _limit(float(found["limit"]), found["unit"], found["key"])
        return cls.model_validate({"kind": "threshold", "key": key, "sign": found["sign"], "limit": limit})

    def holds(self, value: float, low: float | None, high: float | None) -> bool | None:
        """Tell whether a number is beyond the threshold for certain, or within it; None where nobody can say.

        Beyond is only what is so with the whole interval; within is what is so with the value itself.
        """
        near = low if self.sign.startswith(">") else high
        if near is not None and self._is_beyond(near):
            return True
        return None if math.isnan(value) or self._is_beyond(value) else False

    def _is_beyond(self, value: float) -> bool:
        match self.sign:
            case ">":
                return value > self.limit
            case ">=":
                return value >= self.limit
            case "<":
                return value < self.limit
            case _:
                return value <= self.limit


@lru_cache(maxsize=1024)
def condition_of(text: str) -> Condition:
    return Condition.parse(text)


def _check_key(text: str) -> None:
    key = key_of(text)
    if key.metric not in METRICS:
        from difflib import get_close_matches

        near = get_close_matches(key.metric, METRICS, n=1)
        hint = f": did you mean {near[0]}?" if near else f"; what a script calls its own is {_OF_SCRIPT}{key.metric}"
        raise ValueError(f"no metric is called {key.metric!r}{hint}")
    rest = text.removeprefix(key.metric)
    if not key.statistic and not key.operation and rest:
        raise ValueError(f"{rest.lstrip('.')!r} is no statistic: one of {', '.join(STATISTICS)}")


def _script_key(text: str) -> str:
    """Return the key of what a script calls its own: any name, and its median where no statistic is said."""
    key = key_of(text)
    rest = "" if key.operation else text.removeprefix(key.metric)
    if key.metric != publish_name(key.metric) or rest not in ("", f".{key.statistic}"):
        raise ValueError(
            f"{text!r} is no number of a script: its name has letters, digits and '_', and after a dot comes one of "
            f"{', '.join(STATISTICS)}"
        )
    return text if key.statistic else f"{text}.p50"


def _script_limit(found: re.Match[str]) -> float:
    if found["unit"]:
        raise ValueError(f"what {found['key']} is in, its script says: write the threshold without {found['unit']}")
    return float(found["limit"])


def _limit(value: float, unit: str, key: str) -> float:
    own = METRICS[key_of(key).metric].unit
    if unit == "%" and own == "1":
        return value / 100
    if unit not in ("", own):
        raise ValueError(f"{key_of(key).metric} is in {own}, so its threshold is too: not in {unit}")
    return value


def _good_condition(text: str) -> str:
    Condition.parse(text)
    return " ".join(text.split())


When = Annotated[
    str,
    Field(min_length=1, max_length=300, examples=["inference_ms.p99 > 20", "experiment failed"]),
    AfterValidator(_good_condition),
]
