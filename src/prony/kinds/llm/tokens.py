"""Token stamps of a language model: its metrics, its rows in `samples.parquet`, and one number a run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from prony.model.metric import METRICS, QUALITY_METRICS, Better, Metric

if TYPE_CHECKING:
    import numpy as np
    import polars as pl

_Row = tuple[str, str, Better, str]
_TABLE: tuple[_Row, ...] = (
    ("prefill_tok_s", "tok/s", "higher", "prompt tokens divided by the time from ids in to the first ids out"),
    (
        "decode_tok_s",
        "tok/s",
        "higher",
        "(tokens - 1) x sequences, divided by the time from the first to the last timestamp",
    ),
    (
        "output_tokens_per_s",
        "1/s",
        "higher",
        "tokens of a task's answers, divided by the total time of the answers",
    ),
    ("ttft_ms", "ms", "lower", "time from prompt ids in to the first token id on the host, without tokenization"),
    ("itl_ms", "ms", "lower", "time between two tokens"),
    ("tpot_ms", "ms", "lower", "(last timestamp - first timestamp) / (tokens - 1)"),
    ("accept_rate", "1", "higher", "speculative decoding: share of guessed tokens that the model itself chose"),
    ("tokens_per_step", "1", "higher", "speculative decoding: tokens written for each step of the model"),
    ("load_ms", "ms", "lower", "time to load the model from its files"),
    ("rss_peak_mib", "MiB", "lower", "highest resident memory of the process while it was measured"),
    ("vram_run_peak_mib", "MiB", "lower", "highest memory of the GPU by the engine's allocator while it was measured"),
    ("weights_mib", "MiB", "lower", "size of the weights, reported by the engine"),
    ("kv_peak_mib", "MiB", "lower", "largest size of the key-value cache, reported by the engine"),
    ("kv_kib_per_token", "KiB", "lower", "growth of the key-value cache for each token of a sequence"),
    (
        "energy_j_per_token",
        "J",
        "lower",
        "energy of the measured phase divided by its tokens, for prompts or for answers alone",
    ),
    (
        "energy_j_per_output_token",
        "J",
        "lower",
        "energy of the measured phase, with that of the prompts, divided by the tokens written",
    ),
    ("power_w", "W", "lower", "mean power over the measured phase"),
    (
        "mbu",
        "1",
        "higher",
        "bytes of weights and cache read per second of decoding, divided by the published bandwidth",
    ),
    ("mfu", "1", "higher", "2 x parameters x prompt tokens per second, divided by the published peak of the precision"),
    (
        "kl_nat",
        "nat",
        "lower",
        "KL divergence of the predictions from the reference's, over positions of a text that comes with Prony",
    ),
    ("top1_agreement", "1", "higher", "share of positions with the same most likely token as the reference"),
    ("perplexity", "1", "lower", "exp of the mean negative log-likelihood of Prony's own text, or of a task's texts"),
    ("perplexity_ratio", "1", "lower", "perplexity divided by that of the reference"),
)
LLM_METRICS: dict[str, Metric] = {
    name: Metric(name=name, unit=unit, better=better, meaning=meaning) for name, unit, better, meaning in _TABLE
}
METRIC_UNITS: dict[str, str] = {name: metric.unit for name, metric in LLM_METRICS.items()}
METRIC_UNITS |= {name: METRICS[name].unit for name in (*QUALITY_METRICS, "cut_share")}
_PREFILL, _DECODE, _QUALITY = "prefill_ms", "token_ms", "quality"
# Of a task's prompts: how many tokens each has, when it was given, and how long its answer took.
_INPUT, _ANSWER = "input_tokens", "answer_ms"
# Of speculative decoding: how many tokens each step wrote, and how many were guessed for it.
_STEP, _DRAFTED = "step_tokens", "drafted_tokens"


def token_frame(
    repetition: int, readings: Sequence[Mapping[str, Any]], quality: Mapping[str, Sequence[float]] | None = None
) -> pl.DataFrame:
    """Return a row for each prompt and each token of one run: when it was there, and the time since the one before.

    The name of a token has the number of its pass behind a slash. `quality` has a row for each position of the text.
    """
    from prony.instruments.samples import value_frame

    rows = [row for number, one in enumerate(readings) for row in _rows(number, one)]
    rows += [(f"{_QUALITY}/{name}", 0, value) for name, values in (quality or {}).items() for value in values]
    return value_frame(repetition, rows)


def _rows(number: int, reading: Mapping[str, Any]) -> list[tuple[str, int, float]]:
    rows = []
    if reading["prefill"]:
        begin_ns, end_ns = reading["prefill"]
        rows.append((f"{_PREFILL}/{number}", end_ns, (end_ns - begin_ns) / 1e6))
    before = reading["decode_begin_ns"]
    for stamp_ns in reading["stamps"]:
        rows.append((f"{_DECODE}/{number}", stamp_ns, (stamp_ns - before) / 1e6))
        before = stamp_ns
    for at_ns, tokens, drafted in reading.get("steps", ()):
        rows.append((f"{_STEP}/{number}", at_ns, float(tokens)))
        rows.append((f"{_DRAFTED}/{number}", at_ns, float(drafted)))
    if "input_tokens" in reading:
        begin_ns, ended_ns = reading["prefill"][0], reading["ended_ns"]
        rows.append((f"{_INPUT}/{number}", begin_ns, float(reading["input_tokens"])))
        rows.append((f"{_ANSWER}/{number}", ended_ns, (ended_ns - begin_ns) / 1e6))
    return rows


class TokenTimes:
    """The times of one run: `prefill_ms` of each pass, and of each pass the stamps of its tokens."""

    def __init__(self, rows: pl.DataFrame) -> None:
        import polars as pl

        parts = rows.with_columns(pl.col("name").str.split("/").list.first().alias("part"))
        self.prefill_ms = parts.filter(pl.col("part") == _PREFILL)["value"].to_numpy()
        tokens = parts.filter(pl.col("part") == _DECODE)
        self.stamps_ns = [one["at_ns"].to_numpy() for one in tokens.partition_by("name", maintain_order=True)]
        self.step_tokens, self.drafted = (
            parts.filter(pl.col("part") == one)["value"].to_numpy() for one in (_STEP, _DRAFTED)
        )
        self.inputs = parts.filter(pl.col("part") == _INPUT)
        self.ended_ns = parts.filter(pl.col("part") == _ANSWER)["at_ns"].to_numpy()

    @property
    def gaps_ms(self) -> np.ndarray[Any, np.dtype[np.float64]]:
        """Gaps between tokens, with speculative decoding between steps; before the first there is none."""
        import numpy as np

        none: np.ndarray[Any, np.dtype[np.float64]] = np.zeros(0)
        stamps = [np.unique(one) for one in self.stamps_ns] if self.step_tokens.size else self.stamps_ns
        return np.concatenate([np.diff(one) / 1e6 for one in stamps]) if stamps else none

    def _spans(self) -> list[tuple[int, float]]:
        """Return of each pass how many tokens came after the first stamp, and how many milliseconds they took."""
        is_speculative = bool(self.step_tokens.size)
        return [
            (int((one > one[0]).sum()) if is_speculative else len(one) - 1, float(one[-1] - one[0]) / 1e6)
            for one in self.stamps_ns
        ]

    def _step_numbers(self) -> dict[str, float]:
        if not self.step_tokens.size:
            return {}
        found = {"tokens_per_step": float(self.step_tokens.mean())}
        if guessed := float(self.drafted.sum()):
            found["accept_rate"] = float((self.step_tokens - 1).sum()) / guessed
        return found

    def numbers(self, *, prompt: int, batch: int) -> dict[str, float]:
        """Return the run's numbers: the median over its passes; of a task, what all its prompts and answers have."""
        import numpy as np

        if self.inputs.height:
            return self._answer_numbers()
        found: dict[str, float] = {}
        if self.prefill_ms.size:
            found["prefill_tok_s"] = float(np.median(1000 * prompt * batch / self.prefill_ms))
            found["ttft_ms"] = float(np.median(self.prefill_ms))
        if self.stamps_ns:
            each_ms = [lasts / tokens for tokens, lasts in self._spans() if tokens] or [0.0]
            found["tpot_ms"] = float(np.median(each_ms))
            found["decode_tok_s"] = float(np.median([1000 * batch / one for one in each_ms if one] or [0.0]))
        return found | self._step_numbers()

    def _answer_numbers(self) -> dict[str, float]:
        """Return rates over all prompts and all tokens, because prompts and answers differ in length."""
        import numpy as np

        found = {
            "prefill_tok_s": 1000 * float(self.inputs["value"].sum()) / float(self.prefill_ms.sum()),
            "ttft_ms": float(np.median(self.prefill_ms)),
        }
        answers = [one for one in self._spans() if one[0]]
        if lasted_ms := sum(lasts for _, lasts in answers):
            found["decode_tok_s"] = 1000 * sum(steps for steps, _ in answers) / lasted_ms
            found["tpot_ms"] = float(np.median([lasts / steps for steps, lasts in answers]))
        taken_ns = int(self.ended_ns.max()) - int(self.inputs["at_ns"].to_numpy().min())
        if self.stamps_ns:  # texts that were only read have none
            found["output_tokens_per_s"] = 1e9 * sum(map(len, self.stamps_ns)) / taken_ns
        return found | self._step_numbers()


def quality_values(samples: pl.DataFrame) -> dict[str, np.ndarray[Any, np.dtype[np.float64]]]:
    """Return what was found of each position of the text: `nll`, and beside a reference `kl`, `top1`, its `nll`."""
    import polars as pl

    if "name" not in samples.columns:
        return {}
    rows = samples.filter(pl.col("name").str.starts_with(f"{_QUALITY}/"))
    parts = rows.partition_by("name", maintain_order=True)
    return {str(one["name"][0]).partition("/")[2]: one["value"].to_numpy() for one in parts}


def times_by_run(samples: pl.DataFrame) -> dict[int, TokenTimes]:
    """Return the times of every run that has any."""
    if "name" not in samples.columns:
        return {}
    parts = samples.partition_by("repetition", maintain_order=True)
    return {int(one["repetition"][0]): TokenTimes(one) for one in parts if one.height}
