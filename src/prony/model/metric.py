"""Every metric that Prony publishes: its unit, its meaning, which way is better and whether it depends on the machine.

Times, rates, power and memory depend on the machine. A loss or an accuracy is computed: the same script reports the
same number on a busy machine, only later.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from types import MappingProxyType
from typing import Literal

from prony.model.base import Noun

Better = Literal["lower", "higher", "neither"]


class Metric(Noun):
    """What a number is of: its unit, and which direction is better."""

    name: str
    unit: str
    better: Better
    meaning: str


_Row = tuple[str, str, Better, str]

# Latencies begin when a request was due (open load) or sent (closed load), and are those of successes.
LOAD_TABLE: tuple[_Row, ...] = (
    ("e2e_ms", "ms", "lower", "due (open load) or sent (closed load) to the last byte of the reply"),
    (
        "e2e_with_failures_ms",
        "ms",
        "lower",
        "e2e_ms with failed requests as infinite; absent at percentiles that they reach",
    ),
    ("service_ms", "ms", "lower", "sent to last byte, in an open load: without the client's delay"),
    ("sent_late_ms", "ms", "lower", "sent minus due, in an open load: the client's own delay"),
    ("ttfb_ms", "ms", "lower", "due or sent to the first byte of the reply"),
    ("ttft_ms", "ms", "lower", "due or sent to the first piece with a token, including reasoning"),
    ("ttft_content_ms", "ms", "lower", "due or sent to the first piece that is not reasoning"),
    ("itl_ms", "ms", "lower", "gap between two pieces with tokens of one reply; percentiles over all gaps of a run"),
    ("tpot_ms", "ms", "lower", "per request: (e2e_ms - ttft_ms) / (tokens - 1); a stall shows only in itl_ms"),
    ("tokens_per_s_per_user", "1/s", "higher", "per request: 1000 / tpot_ms"),
    (
        "request_rate_per_s",
        "1/s",
        "neither",
        "requests due (open load) or sent (closed load) in the window, including failed ones",
    ),
    ("goodput_per_s", "1/s", "higher", "successes that met every per-request limit of load.slo"),
    (
        "goodput_share",
        "1",
        "higher",
        "share of requests, including failed ones, that met every such limit; Wilson interval for a single run",
    ),
    ("output_tokens_per_s", "1/s", "higher", "tokens of answers that ended in the window"),
    ("input_tokens_per_s", "1/s", "higher", "prompt tokens of requests that ended in the window"),
    ("total_tokens_per_s", "1/s", "higher", "input and output tokens together"),
    ("cached_share", "1", "neither", "share of prompt tokens from the server's cache, by the replies (usage)"),
    (
        "cache_hit_share",
        "1",
        "neither",
        "share of prompt tokens from the server's cache, by its counters (vLLM, SGLang, llama.cpp), for all "
        "its clients",
    ),
    ("items_per_s", "1/s", "higher", "rows, vectors or objects; absent if each request is one item"),
    ("bytes_per_s", "B/s", "higher", "reply bytes"),
    ("in_flight", "1", "neither", "mean number of requests in flight, including failed ones"),
    ("quality", "1", "higher", "recall or exact match of one reply, from its driver"),
    ("rouge_1", "1", "higher", "F-measure of words shared with the best reference; mean and interval over documents"),
    ("rouge_2", "1", "higher", "rouge_1 for word pairs"),
    ("rouge_l", "1", "higher", "rouge_1 for the longest common subsequence"),
    ("rouge_lsum", "1", "higher", "rouge_l, sentence by sentence"),
    (
        "exact_match",
        "1",
        "higher",
        "share of answers equal to a reference, ignoring case, punctuation and articles (SQuAD)",
    ),
    ("token_f1", "1", "higher", "F1 of words shared with the reference (SQuAD), mean over questions"),
    ("label_match", "1", "higher", "share of answers with the right label and no other"),
    (
        "token_nll",
        "nat",
        "lower",
        "negative log-likelihood of a token, mean and interval over texts; its exponential is the perplexity",
    ),
    ("bits_per_byte", "bit", "lower", "negative log-likelihood in bits per byte, to compare different tokenizers"),
    ("own_score", "1", "higher", "your scorer's score, mean over items; other names are own_score/NAME"),
    ("cut_share", "1", "lower", "share of scored answers cut by the token limit; absent if the server does not say"),
    (
        "highest_load",
        "1",
        "higher",
        "search: highest load that held the SLO, in users or requests per second; its high is the lowest that did not",
    ),
    (
        "error_rate",
        "1",
        "lower",
        "share of requests that began in the window and failed, all runs together, with a Wilson interval",
    ),
)

_TABLE: tuple[_Row, ...] = (
    (
        "load_ms",
        "ms",
        "lower",
        "file on disk to ready, with graph compilation, in a fresh process with the engine imported",
    ),
    ("first_inference_ms", "ms", "lower", "first inference after loading"),
    ("cold_start_ms", "ms", "lower", "load_ms + first_inference_ms of the same process"),
    (
        "inference_ms",
        "ms",
        "lower",
        "wall time of one warm inference: inputs bound, outputs ready; on a GPU they stay there, unless the "
        "recipe has outputs: host",
    ),
    (
        "throughput_per_s",
        "1/s",
        "higher",
        "items (inferences × batch size) per second in the steady part of the window; for a load, successes "
        "that ended in the window",
    ),
    ("inference_cpu_ms", "ms", "lower", "CPU time of all threads for one inference"),
    ("import_ms", "ms", "lower", "importing the engine into a fresh interpreter"),
    ("memory_mib", "MiB", "lower", "peak resident memory while measuring minus the baseline after import"),
    ("rss_baseline_mib", "MiB", "lower", "resident memory after importing the engine, before loading"),
    ("rss_load_peak_mib", "MiB", "lower", "peak resident memory while loading"),
    ("rss_peak_mib", "MiB", "lower", "peak resident memory while measuring"),
    ("rss_anon_mib", "MiB", "lower", "anonymous memory at the end"),
    ("rss_file_mib", "MiB", "lower", "file-backed and shared memory at the end"),
    ("vram_peak_mib", "MiB", "lower", "highest reading of the process's device memory (NVIDIA)"),
    ("energy_j", "J", "lower", "energy of one inference, or of one run of a script, in the measured phase"),
    ("power_w", "W", "lower", "energy / wall time of the measured phase"),
    (
        "cpu_percent",
        "%",
        "neither",
        "CPU time of the job's processes / wall time: 100 is one core. For a load: the service, if it runs "
        "here. For several nodes: the sum",
    ),
    ("client_cpu_percent", "%", "neither", "CPU time of the processes that sent a load / wall time: 100 is one core"),
    ("machine_cpu_percent", "%", "neither", "CPU time used by all programs: 100 is all cores"),
    (
        "gpu_percent",
        "%",
        "neither",
        "share of time that the card computed, by its driver; for scripts and services, the busiest card",
    ),
    ("gpu_memory_percent", "%", "neither", "share of time that the card read or wrote its memory, by its driver"),
    ("gpu_sm_percent", "%", "neither", "mean share of the card's processors that worked; Hopper and newer"),
    ("gpu_tensor_percent", "%", "neither", "mean share of time that tensor cores worked; Hopper and newer"),
    ("gpu_dram_percent", "%", "neither", "memory traffic as a share of the theoretical maximum; Hopper and newer"),
    ("device_ms", "ms", "lower", "one inference by the device's own events, in a separate pass"),
    ("launch_ms", "ms", "lower", "time to queue one inference, for the same calls as inference_ms"),
    ("launch_share", "1", "lower", "launch_ms / inference_ms; near 1, the host is the limit"),
    (
        "hot_ms",
        "ms",
        "lower",
        "one inference without waiting for the previous one; throughput_per_s uses the same pass",
    ),
    ("copy_in_ms", "ms", "lower", "copying inputs to the device, from pinned memory"),
    ("copy_out_ms", "ms", "lower", "copying outputs to the host, into pinned memory"),
    ("copy_in_gb_s", "GB/s", "higher", "input bytes / copy_in_ms"),
    ("copy_out_gb_s", "GB/s", "higher", "output bytes / copy_out_ms"),
    ("roundtrip_ms", "ms", "lower", "inputs in, one inference, outputs out"),
    ("compile_ms", "ms", "lower", "compiling the model (also on CPUs); part of first_inference_ms"),
    ("capture_ms", "ms", "lower", "capturing the model as a graph; part of first_inference_ms"),
    ("vram_weights_mib", "MiB", "lower", "device memory of the weights"),
    ("vram_run_peak_mib", "MiB", "lower", "peak of live tensors while measuring, by the engine's allocator"),
    (
        "vram_reserved_mib",
        "MiB",
        "lower",
        "peak of what that allocator held; the rest of vram_peak_mib is context and workspaces",
    ),
    ("vram_device_mib", "MiB", "lower", "highest memory in use on the card, by all processes"),
    ("energy_net_j", "J", "lower", "energy_j minus what the idle card would have used"),
    ("idle_power_w", "W", "lower", "power of the card before loading"),
    ("gpu_clock_mhz", "MHz", "neither", "median clock of the card while measuring"),
    ("gpu_temperature_c", "C", "lower", "temperature of the card at the end"),
    ("gpu_held_power", "1", "lower", "share of time that the power cap lowered the clock, by the driver"),
    (
        "gpu_held_thermal",
        "1",
        "lower",
        "share of time that heat lowered the clock, by the driver; any of it is a disturbance",
    ),
    *LOAD_TABLE,
    ("wall_s", "s", "lower", "wall time of a script from its start to the end of its last process"),
    ("cpu_s", "s", "lower", "CPU time of all processes of a script"),
    ("load_rate_per_s", "1/s", "higher", "short requests per second of one client process, 64 in flight"),
    ("load_request_cpu_us", "us", "lower", "client CPU time of one short request"),
    ("load_sent_late_ms", "ms", "lower", "p99 of how late requests are sent at half of load_rate_per_s"),
    ("load_ttft_error_ms", "ms", "lower", "how far the reported median TTFT is from the true one, 32 streams"),
    ("load_itl_error_ms", "ms", "lower", "how far the reported p99 of token gaps is from the true one, 32 streams"),
    ("clock_resolution_ns", "ns", "lower", "smallest step of the clock"),
    ("clock_cost_ns", "ns", "lower", "time of one clock reading"),
    ("harness_overhead_us", "us", "lower", "time that Prony's loop adds to one inference, inside the timer"),
    ("repetition_cost_ms", "ms", "lower", "wall time of one repetition of an engine that does nothing"),
    ("kernel_ms", "ms", "lower", "a fixed arithmetic kernel: the canary of this machine's speed"),
    ("kernel_noise", "1", "lower", "robust coefficient of variation of that kernel between processes"),
    (
        "run_noise",
        "1",
        "lower",
        "robust coefficient of variation of the equal runs of a deep calibration; decides the noise class",
    ),
    (
        "session_spread",
        "1",
        "lower",
        "spread between whole results of five such runs, beyond their own variation; comparisons use it above 2 %",
    ),
    ("run_lag1", "1", "neither", "correlation of each run with the next; above 0.3 they are not independent"),
    ("run_drift", "1", "neither", "change from the first to the last run, relative to the median"),
    ("false_alarm_rate", "1", "lower", "share of splits of equal runs that a comparison calls different"),
    ("seen_with_5_runs", "1", "lower", "smallest change that 5 runs per side detect four times in five"),
    ("seen_with_10_runs", "1", "lower", "smallest change that 10 runs per side detect four times in five"),
    ("seen_with_20_runs", "1", "lower", "smallest change that 20 runs per side detect four times in five"),
    ("seen_with_30_runs", "1", "lower", "smallest change that 30 runs per side detect four times in five"),
)

METRICS: dict[str, Metric] = {
    name: Metric(name=name, unit=unit, better=better, meaning=meaning) for name, unit, better, meaning in _TABLE
}
# The statistics that follow a metric's name after a dot, as in `inference_ms.p50`.
STATISTICS = ("p50", "mean", "min", "max", "sd", "p90", "p95", "p99", "p99.9")
HEADLINE = "inference_ms.p50"
LOAD_HEADLINE = "e2e_ms.p50"
# What is said of answers, whatever the machine did meanwhile. A job has one number of each item.
QUALITY_METRICS = (
    "rouge_1", "rouge_2", "rouge_l", "rouge_lsum", "exact_match", "token_f1", "label_match", "token_nll",
    "bits_per_byte", "own_score",
)  # fmt: skip
# How they go together: of each family the one that stands for it, and all of them.
QUALITY_FAMILIES: dict[str, tuple[str, tuple[str, ...]]] = {
    "summaries": ("rouge_1.mean", ("rouge_1", "rouge_2", "rouge_l", "rouge_lsum")),
    "answers": ("token_f1.mean", ("exact_match", "token_f1")),
    "labels": ("label_match.mean", ("label_match",)),
    "predictions": ("token_nll.mean", ("token_nll", "bits_per_byte")),
    "your own score": ("own_score.mean", ("own_score",)),
}
# What is measured of a load, and what only a calibration of the instrument has.
LOAD_METRICS = tuple(row[0] for row in LOAD_TABLE)
INSTRUMENT_METRICS = (
    "load_rate_per_s", "load_request_cpu_us", "load_sent_late_ms", "load_ttft_error_ms", "load_itl_error_ms",
    "clock_resolution_ns", "clock_cost_ns", "harness_overhead_us", "repetition_cost_ms", "kernel_ms", "kernel_noise",
)  # fmt: skip


_UNPUBLISHED = re.compile(r"[^A-Za-z0-9_]+")


def publish_name(name: str) -> str:
    """Return what a script calls a number as keys, gates and columns have it: letters, digits and underscores."""
    return _UNPUBLISHED.sub("_", name).strip("_") or "metric"


class Key(Noun):
    """`e2e_ms/insert.p99` in its parts: a metric, the operation it is of (empty: all), and a statistic or nothing."""

    metric: str
    operation: str = ""
    statistic: str = ""


def key_of(text: str) -> Key:
    """Take a key apart; an operation may hold dots and slashes of its own, a metric and a statistic never do."""
    statistic = next((name for name in sorted(STATISTICS, key=len, reverse=True) if text.endswith(f".{name}")), "")
    head = text.removesuffix(f".{statistic}") if statistic else text
    metric, slash, operation = head.partition("/")
    if not slash:
        metric = metric.partition(".")[0]
    return Key(metric=metric, operation=operation, statistic=statistic)


def key_text(metric: str, statistic: str, operation: str = "") -> str:
    """Return the key under which an estimate is kept."""
    return f"{metric}/{operation}.{statistic}" if operation else f"{metric}.{statistic}"


def metric_of(key: str, own: Mapping[str, Metric] = MappingProxyType({})) -> Metric:
    """Return the metric behind a key such as `inference_ms.p99` or `e2e_ms/insert.p99`; `own` are those of a script."""
    name = key_of(key).metric
    return own[name] if name in own else METRICS[name]


_TIMES = (
    "ns us µs μs ms s sec secs second seconds min mins minute minutes h hr hour hours cycles ticks "
    "nanoseconds microseconds milliseconds"
)
_POWERS = "w mw kw j mj kj wh kwh watt watts joule joules v a hz khz mhz ghz c °c"
_MEMORIES = "b kb mb gb tb kib mib gib tib byte bytes kbyte mbyte gbyte page pages"
_RATES = "fps ips qps rps tps ops iops flops kflops mflops gflops tflops tops bps kbps mbps gbps per rate bpm rpm"
_UNITS = frozenset(f"{_TIMES} {_POWERS} {_MEMORIES} {_RATES}".split())
_MEASURES = (
    "time times timing duration latency delay elapsed wall throughput speed bandwidth memory mem rss vram ram power "
    "energy util utilization utilisation cpu gpu usage temperature ttft tpot itl e2e"
)
# Words of a name that has no unit: what looks like a measure of the machine is taken for one.
_WORDS = _UNITS - {"v", "a", "b", "c", "h", "j", "w", "page", "pages"} | frozenset(_MEASURES.split())
_SHARES = ("1", "%", "percent")
_PARTS = re.compile(r"[^a-z0-9°µμ]+")


# A busy machine makes a program slower, not larger.
_SIZES = ("MiB", "KiB", "bytes")


def is_size(metric: Metric) -> bool:
    """Is it a size, which the same program needs on every run?"""
    return metric.unit in _SIZES


def varies_by_itself(metric: Metric) -> bool:
    """Do two results of the same thing differ in it although nothing changed? Times and rates do; not sizes, and not
    what is computed."""
    return depends_on_machine(metric) and not is_size(metric) and metric.unit != "1"


def depends_on_machine(metric: Metric) -> bool:
    """Would another load on the machine change it? The unit decides where there is one, else the words of the name."""
    if metric.name in METRICS:
        return metric.name not in QUALITY_METRICS
    unit = metric.unit.strip().lower()
    if unit and unit not in _SHARES:
        return "/" in unit or not _UNITS.isdisjoint(_PARTS.split(unit))
    words = _WORDS - {"rate"} if unit else _WORDS  # a rate in percent is a share of something
    return not words.isdisjoint(_PARTS.split(metric.name.lower()))


_SPEEDS = frozenset(f"{_TIMES} {_RATES}".split())


def is_time_or_rate(unit: str) -> bool:
    """Does a slower processor make what has this unit worse?"""
    lower = unit.strip().lower()
    return "/" in lower or not _SPEEDS.isdisjoint(_PARTS.split(lower))
