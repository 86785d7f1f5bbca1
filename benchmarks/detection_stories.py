"""Longer stories of one series, judged after every run: is each change told, closed, placed and sized right?"""

from __future__ import annotations

import math
import sys
from argparse import ArgumentParser
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import numpy as np

from benchmarks.detection_series import SEEDS, early, noisier, returning
from prony.analyse.history.changes_found import decisions, list_changes
from prony.analyse.history.confirmation import MORE, PAIRS, judge_pairs
from prony.analyse.history.detect import Rules
from prony.analyse.history.level_track import LevelTrack, follow_levels, select_numbers
from prony.model.estimate import Grade
from prony.model.history import OPEN, Change, ChangeState, Point, Series
from prony.stats.quantiles import Array

RULES = Rules()
_METRIC, _BEGIN = "inference_ms.p50", datetime(2026, 1, 1, tzinfo=UTC)
_SERIES = Series(
    id="s", name="n", title="t", machine="m", hardware_id="h", metric=_METRIC, unit="ms", better="lower"
)  # fmt: skip
_SURE = (ChangeState.FOUND, ChangeState.CONFIRMED)


@dataclass(frozen=True)
class Judged:
    """How a series stands after a run."""

    run: int
    changes: tuple[Change, ...]

    def regressions(self, states: tuple[ChangeState, ...]) -> list[Change]:
        return [one for one in self.changes if one.kind == "regression" and one.state in states]


def judge_each_run(values: Array, rules: Rules = RULES) -> Iterator[Judged]:
    """Judge a series after each of its runs, with what was known of it before."""
    points = [_point(place, value) for place, value in enumerate(values)]
    course, known = LevelTrack(), tuple[Change, ...]()
    for count in range(1, len(points) + 1):
        judged = select_numbers(points[:count], _METRIC, "lower")
        course = follow_levels(judged.turned, rules, course, decisions(judged, known), judged.speeds)
        known = list_changes(_SERIES, judged, course, known, rules).changes
        yield Judged(count - 1, known)


def _point(place: int, value: float) -> Point:
    return Point(
        series_id="s", job_id=f"j{place:04d}", experiment_id=f"e{place:04d}", grade=Grade.VALID,
        measured_at=_BEGIN + timedelta(days=place), values={_METRIC: float(value)},
    )  # fmt: skip


def place_of(change: Change) -> int:
    return int(change.job_id[1:])


def main(arguments: list[str]) -> int:
    parser = ArgumentParser(description=__doc__)
    parser.add_argument("--suite", choices=SEEDS, default="report")
    parser.add_argument("--count", type=int, default=40, help="histories of each story")
    options = parser.parse_args(arguments)
    seed, count = SEEDS[options.suite], options.count
    again = [_is_told_again(values, (seed, 104, place)) for place, values in enumerate(returning(seed, count))]
    told_again, in_turns = map(sum, zip(*again, strict=True))
    print(
        f"a regression that was mended and returns is told within 10 runs: {told_again} of {count} by the history "
        f"alone, {in_turns} with runs in turns"
    )
    ever, still = map(sum, zip(*(_opened(values) for values in noisier(seed, count)), strict=True))
    print(f"noise that rises alone opens a regression in {ever} of {count}, and in {still} it is open 115 runs later")
    placed = [found for change, values in early(seed, count) if (found := _placed(change, values)) is not None]
    errors, sizes = ([abs(one[index]) for one in placed] for index in (0, 1))
    print(
        f"a change of +10 % in the first runs is told in {len(placed)} of {count}, {np.mean(errors):.1f} runs "
        f"(at most {max(errors):.0f}) and {np.mean(sizes):.1%} (at most {max(sizes):.1%}) from where and what it is"
    )
    missed = in_turns < 0.95 * count or still > 0.05 * count or float(np.mean(errors)) > 1.2
    print("a bound was missed" if missed else "all bounds held")
    return int(missed)


def _is_told_again(values: Array, key: tuple[int, ...]) -> tuple[bool, bool]:
    """Say whether the history alone tells it, and whether it does where a server confirms suspects by turns."""
    looked = [judged for judged in judge_each_run(values) if 85 <= judged.run < 95]
    alone = any(_is_second(judged.regressions(_SURE)) for judged in looked)
    is_asked = any(_is_second(judged.regressions(OPEN)) for judged in looked)
    return alone, is_asked and _takes_turns(np.random.default_rng(key))


def _is_second(found: list[Change]) -> bool:
    # It may be placed a little before where it is.
    return any(place_of(one) >= 75 for one in found)


def _takes_turns(rng: np.random.Generator) -> bool:
    """Run pairs of both versions, as the server does for a suspect: 5 % apart, 2 % of noise each."""
    differences = np.log(1.05) + rng.normal(0, 0.02 * math.sqrt(2), PAIRS + MORE)
    said = judge_pairs(differences[:PAIRS], RULES)
    return (judge_pairs(differences, RULES) if said == "open" else said) == "confirmed"


def _opened(values: Array) -> tuple[bool, bool]:
    stands = list(judge_each_run(values))
    return any(one.regressions(_SURE) for one in stands), bool(stands[-1].regressions(OPEN))


def _placed(change: int, values: Array) -> tuple[float, float] | None:
    """Return by how many runs and by how much the change was misjudged in the end; None where it was not told."""
    *_, last = judge_each_run(values)
    found = last.regressions(_SURE)
    return None if not found else (place_of(found[0]) - change, found[0].effect - math.expm1(math.log(1.10)))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
