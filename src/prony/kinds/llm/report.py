"""Show what a language model does: prefill and decode rates, latencies, memory, and what was used."""

from __future__ import annotations

from collections.abc import Sequence

from prony.analyse.peaks import find_peak
from prony.kinds.llm.claims import describe_batches, describe_quality
from prony.kinds.llm.plots import BOUND_HEADLINES, plot_llm
from prony.kinds.llm.schema import LlmWorkload
from prony.model.experiment_data import Entry
from prony.model.job_plot import JobPlot, OtherReading
from prony.model.section import ColumnSpec, Fact, Section
from prony.ports.workload import SETTINGS, Report
from prony.report import entry_fields
from prony.report.answer_sections import answer_sections

# What says nothing of a task.
_OF_IDS = ("prompt", "generate", "batch", "depth")


class LlmReport(Report):
    """Numbers to documents."""

    # Beside those of the glossary.
    columns = (
        ColumnSpec("decode_tok_s", "decode", 100),
        ColumnSpec("prefill_tok_s", "prefill", 99),
        ColumnSpec("rss_peak_mib", "memory", 85),
        ColumnSpec("accept_rate", "accepted guesses", 98),
        ColumnSpec("tokens_per_step", "tokens per step", 69),
        ColumnSpec("energy_j_per_token", "energy per token", 83),
        ColumnSpec("energy_j_per_output_token", "energy per output token", 83),
        ColumnSpec("mbu", "of bandwidth", 82),
        ColumnSpec("mfu", "of arithmetic", 70),
        ColumnSpec("rouge_1.mean", "ROUGE-1", 90),
        ColumnSpec("rouge_2.mean", "ROUGE-2", 87),
        ColumnSpec("rouge_l.mean", "ROUGE-L", 89),
        ColumnSpec("rouge_lsum.mean", "ROUGE-Lsum", 86),
        ColumnSpec("exact_match.mean", "exact match", 89),
        ColumnSpec("token_f1.mean", "F1", 90),
        ColumnSpec("label_match.mean", "correct labels", 90),
        ColumnSpec("bits_per_byte.mean", "bits per byte", 89),
        ColumnSpec("token_nll.mean", "nat per token", 70),
        ColumnSpec("own_score.mean", "own score", 88),
        ColumnSpec("cut_share.mean", "cut answers", 71),
        ColumnSpec("kl_nat.mean", "KL", 81),
        ColumnSpec("top1_agreement.mean", "top-1", 80),
        ColumnSpec("perplexity.mean", "perplexity", 79),
        ColumnSpec("perplexity_ratio.mean", "vs. reference", 50),
        ColumnSpec("kl_nat.p99", "KL p99", 35),
        ColumnSpec("tpot_ms", "tpot", 38),
        ColumnSpec("weights_mib", "weights", 37),
        ColumnSpec("kv_peak_mib", "KV cache", 36),
        ColumnSpec("kv_kib_per_token", "KV per token", 34),
    )
    example = "llm.yaml"
    method = (
        "Each run is a fresh process that loads the model; a run's number is the median over its passes, and intervals "
        "come from the spread between runs.",
        "Before each prompt, the cache is emptied and then filled to the given depth.",
        "Without a task, token ids are seeded and the same for every engine; decoding is greedy. A run fails if the "
        "engine writes more or fewer tokens than requested.",
        "A task's prompts are read one after the other, each into an empty cache, and answered greedily until the end "
        "token or the limit; the rates of a run cover all its prompts and tokens.",
    )

    def sections(self, entry: Entry) -> tuple[Section, ...]:
        effective, model = entry.result.effective, entry.result.model
        work = entry.job.work(LlmWorkload)
        left_out = _OF_IDS if work.task is not None else ()
        asked = work.model_dump(exclude_none=True)
        facts: list[Fact] = [
            (name, str(value)) for name, value in asked.items() if name not in left_out and value not in ({}, False)
        ]
        if effective is not None:
            facts += [
                ("effective engine", f"{effective.engine} {effective.engine_version}"),
                ("effective device", effective.device), ("effective precision", effective.precision),
                ("effective threads", None if effective.threads is None else str(effective.threads)),
                *((name, text) for name, text in effective.details.items() if text), *_peaks(entry),
            ]  # fmt: skip
        if model is not None:
            facts += [("files", ", ".join(model.files[:8])), ("sha256", model.sha256)]
        details = effective.details if effective is not None else {}
        answers = answer_sections(entry, work.task, work.prompts, details)
        return (*answers, Section(title=SETTINGS, facts=tuple(facts)))

    bounds = BOUND_HEADLINES

    def plots(self, entries: Sequence[Entry], readings: Sequence[OtherReading]) -> tuple[JobPlot, ...]:
        return plot_llm(entries, readings)

    def programs(self, entry: Entry) -> tuple[Fact, ...]:
        return entry_fields.engine_facts(entry)

    def settings(self, workload: LlmWorkload) -> dict[str, str]:
        return {
            "engine": workload.engine, "unit": workload.unit, "batch_size": str(workload.batch),
            "threads_asked": "" if workload.threads is None else str(workload.threads),
            "precision_asked": workload.precision,
        }  # fmt: skip

    def answers(self, entries: Sequence[Entry]) -> list[str]:
        return describe_batches(entries) + describe_quality(entries)

    def same_work(self, entry: Entry) -> str:
        work = entry.job.work(LlmWorkload)
        if work.task is not None:
            return f"{work.model}\n{work.task}\n{work.prompts}"
        return f"{work.model}\n{work.prompt}\n{work.generate}\n{work.batch}\n{work.depth}"


def _peaks(entry: Entry) -> tuple[Fact, ...]:
    """Return the shares of the card's published peaks, each with its peak and where that stands."""
    effective = entry.result.effective
    assert effective is not None
    metrics = {"mbu": ("copy_gb_s", "GB/s"), "mfu": (f"gemm_{effective.precision}_tflops", "TFLOP/s")}
    found: list[Fact] = []
    for name, (metric, unit) in metrics.items():
        share, peak = entry.summary.estimates.get(f"{name}.p50"), find_peak(effective.device, metric)
        if share is not None and peak is not None:
            found.append((name, f"{share.value * 100:.3g} % of {peak.value:g} {unit} ({peak.source})"))
    return tuple(found)


PART = LlmReport()
