"""Read the key of a metric as a person writes it."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from types import MappingProxyType

from prony.errors import InputError
from prony.model.metric import METRICS, Key, Metric, key_of

_NONE: Mapping[str, Metric] = MappingProxyType({})


def read_metric_key(text: str, own: Mapping[str, Metric] = _NONE) -> Key:
    """Take a key apart; `own` are the metrics of a script.

    Raises:
        InputError: There is no such metric.
    """
    key = key_of(text)
    if key.metric not in METRICS and key.metric not in own:
        from difflib import get_close_matches

        near = get_close_matches(key.metric, [*own, *METRICS], n=1)
        hint = f"did you mean {near[0]}?" if near else "`prony docs metrics` lists them"
        raise InputError(f"unknown metric {text!r}", hint=hint, code="unknown_metric")
    return key


def complete_key(text: str, known: Collection[str]) -> str:
    """Return the whole key that is meant, of those that are known, where no statistic is said; else the text."""
    whole = [text] if key_of(text).statistic else [f"{text}.p50", f"{text}.mean"]
    return next((one for one in whole if one in known), whole[0])
