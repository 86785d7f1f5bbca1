"""Compute the cost per million items and the work per watt of jobs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from prony.analyse.estimates import across_runs
from prony.analyse.per_run_metrics import on_unit, power_w
from prony.model.estimate import Estimate
from prony.model.experiment_data import Entry
from prony.model.matrix import Price, Worth
from prony.model.recipe import CURRENCY_LABEL, PRICE_LABEL, Cost

_S_PER_HOUR = 3600.0
_MILLION = 1e6
NO_ENERGY = "no energy counter on this machine"
NO_PRICE = f"no price: neither `cost` in the recipe nor the label {PRICE_LABEL} of the machine"


def price_of(cost: Cost | None, labels: Mapping[str, str]) -> Price | None:
    """Return the price of the recipe, which wins, or of the machine's label; None where nobody names one."""
    told = _label(labels)
    if cost is not None:
        other = f" (the machine's label says {told.per_hour:g} {told.currency})" if told is not None else ""
        return Price(per_hour=cost.per_hour, currency=cost.currency, source=f"the recipe{other}")
    return told


def _label(labels: Mapping[str, str]) -> Price | None:
    try:
        per_hour = float(labels[PRICE_LABEL])
    except (KeyError, ValueError):
        return None
    if not 0 < per_hour < float("inf"):
        return None
    currency = labels.get(CURRENCY_LABEL, "USD")
    return Price(per_hour=per_hour, currency=currency, source=f"the machine's label {PRICE_LABEL}")


def worths_of(jobs: Sequence[Entry], price: Price | None) -> tuple[Worth, ...]:
    """Return what each kind of thing costs that these jobs, which are alike, bring about; tokens first."""
    kinds = [("output tokens", "output_tokens_per_s.p50"), (jobs[0].job.workload.unit_noun, "throughput_per_s.p50")]
    return tuple(found for things, key in kinds if (found := _worth(jobs, things, key, price)) is not None)


def _worth(jobs: Sequence[Entry], things: str, key: str, price: Price | None) -> Worth | None:
    rates = [value for job in jobs for value in job.summary.runs.get(key, ()) if value > 0]
    if not rates:
        return None
    watts = _watts(jobs)
    notes = [*([] if price is not None else [NO_PRICE]), *([] if watts else [NO_ENERGY])]
    money = None if price is None else price.per_hour / _S_PER_HOUR
    joules = [watt / rate for rate, watt in zip(rates, watts, strict=True)] if len(watts) == len(rates) else []
    currency = "" if price is None else price.currency
    return Worth(
        things=things, price=price,
        per_million=None if money is None else _make_estimate([money / rate * _MILLION for rate in rates], currency),
        per_money=None if money is None else _make_estimate([rate / money for rate in rates], f"1/{currency}"),
        power_w=_make_estimate(watts, "W") if watts else None,
        per_joule=_make_estimate([1 / one for one in joules], "1/J") if joules else None,
        joules_each=_make_estimate(joules, "J") if joules else None,
        note="; ".join(notes),
    )  # fmt: skip


def _make_estimate(values: Sequence[float], unit: str) -> Estimate:
    return across_runs(np.array(values), unit, "runs")


def _watts(jobs: Sequence[Entry]) -> list[float]:
    """Return the power of each run that counts, by measured energy alone; nothing where a run has none."""
    found: list[float] = []
    for job in jobs:
        work, known = job.job.workload, {one.index: one for one in job.result.repetitions}
        for index in job.summary.used:
            one = known[index]
            unit = getattr(work, "unit", None)  # a server's or a script's is not known: all counts that may be its own
            watt = power_w(on_unit(one, unit))
            if watt is None or watt <= 0:
                return []
            found.append(watt)
    return found
