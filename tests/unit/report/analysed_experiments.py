"""Accounts made by hand: a history with a regression in it, and a duet whose second side is slower."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from prony.model.comparison import Compared, Comparison, Conclusion, Contrast, Effect, Match, Terms
from prony.model.estimate import Grade, Verdict
from prony.model.experiment_data import AnalysedExperiment, ExperimentData
from prony.model.history import Change, ChangeState, History, Point, Segment, Series, SeriesLevel, SeriesState
from prony.model.matrix import Price, Worth

_AT = datetime(2026, 3, 1, tzinfo=UTC)
_OLD, _NEW = (
    SeriesLevel(median=10.0, low=9.9, high=10.1, runs=24),
    SeriesLevel(median=11.0, low=10.9, high=11.1, runs=6),
)


def history(experiment_id: str, title: str = "yolo") -> History:
    """Thirty results; the last six are slower, and the first of these is the experiment's."""
    values = [10 + 0.1 * (n % 3 - 1) + (1.0 if n >= 24 else 0.0) for n in range(30)]
    points = tuple(
        Point(
            series_id="s1", job_id=f"j{n}", experiment_id=experiment_id if n == 24 else f"e{n}",
            measured_at=_AT + timedelta(days=n), grade=Grade.VALID, value=value, values={"inference_ms.p50": value},
        )
        for n, value in enumerate(values)
    )  # fmt: skip
    about = {"metric": "inference_ms.p50", "unit": "ms", "better": "lower"}
    series = Series.read(
        about | {"id": "s1", "name": "yolo", "title": title, "machine": "rack7", "hardware_id": "h", "runs": 30,
                 "state": SeriesState.REGRESSION}
    )  # fmt: skip
    segments = (
        Segment(first_job_id="j0", last_job_id="j23", begin=0, end=24, level=_OLD),
        Segment(first_job_id="j24", last_job_id="j29", begin=24, end=30, level=_NEW),
    )
    told = f"Inference p50 of {title} on rack7 got worse by +10.0 % [+9.1 %, +10.9 %]."
    return History.read(
        about | {"series": series, "points": points, "segments": segments, "changes": (_change(experiment_id, told),),
                 "sentence": told}
    )  # fmt: skip


def _change(experiment_id: str, told: str) -> Change:
    return Change(
        id="c1", series_id="s1", name="yolo", title="yolo", machine="rack7", metric="inference_ms.p50", unit="ms",
        better="lower", kind="regression", state=ChangeState.FOUND, job_id="j24", experiment_id=experiment_id,
        measured_at=_AT, noticed_at=_AT, before=_OLD, after=_NEW, effect=0.1, low=0.091, high=0.109, p=0.0004,
        facts=("kernel from 6.1 to 6.5",), sentence=told,
    )  # fmt: skip


def comparison(experiment_id: str, title: str = "threads 2 against threads 1") -> Comparison:
    effect = Effect(value=1.2, low=1.15, high=1.25, confidence=0.99, p=0.0004, runs=(10, 10),
                    method="paired Hodges-Lehmann ratio; sign-flip test")  # fmt: skip
    said = f"{title}: Inference p50 got worse, +20.0 % [+15.0 %, +25.0 %]."
    one = Contrast(key="inference_ms.p50", unit="ms", better="lower", role="headline", family="latency", effect=effect,
                   conclusion=Conclusion.REGRESSION, sentence=said)  # fmt: skip
    sides = [
        Compared(experiment_id=experiment_id, job_id=f"{experiment_id}-{n}", title=title,
                 verdict=Verdict(grade=Grade.VALID))
        for n in (1, 2)
    ]  # fmt: skip
    match = Match(title=title, baseline=sides[0], candidate=sides[1], interleaved=True, contrasts=(one,))
    return Comparison(terms=Terms(), baseline="a", candidates=("b",), matches=(match,), notes=(title,),
                      conclusion=Conclusion.REGRESSION, sentence="1 regression among 1 headline metric.")  # fmt: skip


def analysis(data: ExperimentData, word: str = "yolo") -> AnalysedExperiment:
    """All of it at once; `word` stands wherever a stranger may have chosen the text."""
    mine = data.experiment.id
    price = Price(per_hour=3.6, currency="EUR", source=word)
    worths = {entry.job.id: (Worth(things="items", price=price, note=word),) for entry in data.entries}
    return AnalysedExperiment.of(data).model_copy(
        update={"histories": (history(mine, word),), "comparison": comparison(mine, word), "worths": worths,
                "methods": ("Judged by a permutation test.",), "untold": (f"Not compared: {word}.",)}
    )  # fmt: skip
