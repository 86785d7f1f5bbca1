"""Predict a fixed text token by token, and hold the predictions against those of a reference."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from prony.errors import InputError, SutError
from prony.kinds.llm.child.suite import load_session
from prony.ports.engine import Array, Engine
from prony.runner.child.loop import Stop
from prony.runner.child.readings import SuiteTest

_FEWEST = 16


class QualitySuite:
    """Teacher-forced predictions: the same ids for every engine, none of them its own.

    As a reference it tokenises the text and writes ids and log-probabilities; else it reads those, and compares.
    """

    device_id: str | None = None
    settles = False

    def __init__(self, options: Mapping[str, Any], engine: Engine) -> None:
        self.asked = options
        self.session = load_session(options, engine)

    def tests(self) -> Iterator[SuiteTest]:
        """Return the one test."""
        yield SuiteTest("quality", "", self._warm, float, read=self._read)

    def facts(self) -> dict[str, Any]:
        """Return what computed it."""
        effect = self.session.effect()
        return {"device": effect.device, "precision": effect.precision}

    def close(self) -> None:
        """Let go of the model."""
        del self.session

    def _warm(self, count: int) -> list[int]:
        begin_ns = time.perf_counter_ns()
        self.session.reset()
        self.session.prefill(np.full((1, 1), 3, np.int32))
        return [time.perf_counter_ns() - begin_ns] * count

    def _read(self, _: Stop) -> list[dict[str, Any]]:
        given = self.asked.get("reference_file")
        kept = np.load(given, mmap_mode="r") if given else None
        ids = np.load(self.asked["ids_file"]) if kept is not None else self._tokenize()
        logits = self.session.logits(ids[:-1])
        if logits.shape[0] != len(ids) - 1 or not np.isfinite(logits).all():
            hint = "try another precision or engine; check that the model file is complete"
            raise SutError("the model predicts NaN or infinity", hint=hint, code="not_finite")
        logs = log_probabilities(logits)
        found = {"nll": (-logs[np.arange(len(logs)), ids[1:]]).tolist()}
        if kept is None:
            np.save(self.asked["ids_file"], ids)
            if self.asked.get("write_file"):
                np.save(self.asked["write_file"], logs)
        else:
            found |= compare_predictions(kept, logs)
        return [found]

    def _tokenize(self) -> Array:
        ids = self.session.tokenize(self.asked["text"])[: self.asked["positions"] + 1]
        if len(ids) < _FEWEST:
            raise InputError(
                f"the text has only {len(ids)} tokens, but {_FEWEST} are needed",
                hint="check the model's tokenizer, or use a longer text",
                code="no_tokenizer",
            )
        return np.array(ids, np.int32)


def log_probabilities(logits: Array) -> Array:
    """Return the logarithms of the softmax of each row."""
    shifted = logits - logits.max(axis=1, keepdims=True)
    found: Array = shifted - np.log(np.exp(shifted).sum(axis=1, keepdims=True))
    return found


def compare_predictions(reference: Array, logs: Array) -> dict[str, list[float]]:
    """Return of each position the divergence from the reference, and whether the most likely token is the same."""
    if reference.shape[1] != logs.shape[1]:
        raise InputError(
            f"the vocabularies differ: {reference.shape[1]} tokens in the reference, {logs.shape[1]} in this model",
            hint="compare models with the same vocabulary", code="no_reference",
        )  # fmt: skip
    divergence = [float((np.exp(row) * (row - mine)).sum()) for row, mine in zip(reference, logs, strict=True)]
    same = np.asarray(reference).argmax(axis=1) == logs.argmax(axis=1)
    return {"kl": [max(0.0, one) for one in divergence], "top1": same.astype(float).tolist()}
