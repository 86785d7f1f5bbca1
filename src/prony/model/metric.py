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
    name: str
    unit: str
    better: Better
    meaning: str


_Row = tuple[str, str, Better, str]

# Latencies begin when a request was due (open load) or sent (closed load), and are those of successes.
LOAD_TABLE: tuple[_Row, ...] = (
    ("e2e_ms", "ms", "lower", "one request from due (open load) or sent (closed load) to the last byte of its reply"),
    ("e2e_with_failures_ms", "ms", "lower", "the same where a failed request counts as one that never ended"),
    ("service_ms", "ms", "lower", "one request from sent to the last byte of its reply, in an open load"),
    ("sent_late_ms", "ms", "lower", "sent less due: how late the client itself was, in an open load"),
    ("ttfb_ms", "ms", "lower", "from due or sent to the first byte of the reply"),
    ("ttft_ms", "ms", "lower", "from due or sent to the first piece with a token, of any channel"),
    ("ttft_content_ms", "ms", "lower", "from due or sent to the first piece of the answer that is no reasoning"),
    ("itl_ms", "ms", "lower", "real gap between two pieces with tokens of one reply, over all gaps of a run"),
    ("tpot_ms", "ms", "lower", "of a request: (end to end less ttft) / (tokens - 1)"),
    ("tokens_per_s_per_user", "1/s", "higher", "of a request: output tokens a second once the first is there"),
    (
        "request_rate_per_s",
        "1/s",
        "neither",
        "requests due (open load) or sent (closed load) in the window, by its time",
    ),
    (
        "goodput_per_s",
        "1/s",
        "higher",
        "successes that ended in the window and met every limit of a request, by its time",
    ),
    ("goodput_share", "1", "higher", "share of the window's requests, failed ones too, that met every such limit"),
    ("output_tokens_per_s", "1/s", "higher", "tokens of the answers that ended in the window, by its time"),
    ("input_tokens_per_s", "1/s", "higher", "tokens asked by the requests that ended in the window, by its time"),
    ("total_tokens_per_s", "1/s", "higher", "input and output tokens together"),
    ("cached_share", "1", "neither", "share of the prompts' tokens that the replies say came from the server's cache"),
    ("cache_hit_share", "1", "neither", "the same by the server's own counters, over the whole run"),
    ("items_per_s", "1/s", "higher", "rows, vectors or objects of the requests that ended in the window, by its time"),
    ("bytes_per_s", "B/s", "higher", "bytes of the replies that ended in the window, by its time"),
    ("in_flight", "1", "neither", "requests on their way at a time, the mean over the window"),
    ("quality", "1", "higher", "recall or exact match of one reply, as its driver judges it"),
    (
        "rouge_1",
        "1",
        "higher",
        "F-measure of the words that a summary shares with its reference, the mean of items",
    ),
    ("rouge_2", "1", "higher", "the same of pairs of neighbouring words"),
    ("rouge_l", "1", "higher", "the same of the longest common subsequence of words"),
    ("rouge_lsum", "1", "higher", "the same sentence by sentence"),
    ("exact_match", "1", "higher", "share of answers that are a reference, case, punctuation and articles aside"),
    ("token_f1", "1", "higher", "F1 of the words that an answer shares with its reference, the mean of questions"),
    ("label_match", "1", "higher", "share of answers that name the right label and no other"),
    ("token_nll", "nat", "lower", "negative log-likelihood of a text's tokens, the mean over texts; exp is perplexity"),
    ("bits_per_byte", "bit", "lower", "negative log-likelihood of a text by its bytes: compares tokenizers too"),
    ("own_score", "1", "higher", "what a scorer of your own says of an answer, the mean of items"),
    ("cut_share", "1", "lower", "share of scored answers that the limit on their tokens cut off"),
    ("highest_load", "1", "higher", "the highest load of a search that held its SLO: users, or requests a second"),
    ("error_rate", "1", "lower", "share of the window's requests that failed, all runs together"),
)

_TABLE: tuple[_Row, ...] = (
    (
        "load_ms",
        "ms",
        "lower",
        "file on disk to ready to run, graph compilation included, in a fresh process",
    ),
    (
        "first_inference_ms",
        "ms",
        "lower",
        "wall time of the first inference after loading, apart from the warm ones",
    ),
    ("cold_start_ms", "ms", "lower", "load and first inference together, of the same process"),
    (
        "inference_ms",
        "ms",
        "lower",
        "wall time of one warm inference: inputs bound, outputs ready; a GPU's stay there unless the recipe says host",
    ),
    (
        "throughput_per_s",
        "1/s",
        "higher",
        "items of inferences, or successful requests, that ended in the measured window, by its wall time",
    ),
    ("inference_cpu_ms", "ms", "lower", "CPU time of all threads of the process for one warm inference"),
    ("import_ms", "ms", "lower", "time to import the engine into a fresh interpreter"),
    ("memory_mib", "MiB", "lower", "peak resident memory while measuring, less the baseline after import"),
    ("rss_baseline_mib", "MiB", "lower", "resident memory of the process after importing the engine"),
    ("rss_load_peak_mib", "MiB", "lower", "kernel's high-water mark of resident memory while loading"),
    ("rss_peak_mib", "MiB", "lower", "kernel's high-water mark of resident memory while measuring"),
    ("rss_anon_mib", "MiB", "lower", "anonymous resident memory at the end of measuring"),
    ("rss_file_mib", "MiB", "lower", "file-backed resident memory at the end of measuring"),
    ("vram_peak_mib", "MiB", "lower", "highest device memory in use by the process while measuring"),
    ("energy_j", "J", "lower", "energy counters' difference over the measured window for one inference"),
    ("power_w", "W", "lower", "energy counters' difference over the measured window, by its wall time"),
    ("cpu_percent", "%", "neither", "CPU time of the job's own processes by wall time: 100 is one core, 200 are two"),
    ("client_cpu_percent", "%", "neither", "the same of the processes that sent a load"),
    ("machine_cpu_percent", "%", "neither", "CPU time that anybody used on the machine, of that of all its cores"),
    ("gpu_percent", "%", "neither", "share of the time in which the card computed, by its driver"),
    ("gpu_memory_percent", "%", "neither", "share of the time in which the card's memory was read or written"),
    ("gpu_sm_percent", "%", "neither", "share of the card's processors that worked, in the mean"),
    ("gpu_tensor_percent", "%", "neither", "share of the time in which the card's tensor cores worked, in the mean"),
    ("gpu_dram_percent", "%", "neither", "what the card's memory carried, of what it can"),
    ("device_ms", "ms", "lower", "one warm inference by the device's own marks, from its first work to its last"),
    ("launch_ms", "ms", "lower", "wall time until one warm inference is queued on the device, nothing waited for"),
    ("launch_share", "1", "lower", "launch_ms of inference_ms: near 1, the host is slower than the device"),
    ("hot_ms", "ms", "lower", "wall time of one inference where each is queued without waiting for the one before"),
    ("copy_in_ms", "ms", "lower", "copying the inputs of one inference from the host to the device, alone"),
    ("copy_out_ms", "ms", "lower", "copying the outputs of one inference from the device to the host, alone"),
    ("copy_in_gb_s", "GB/s", "higher", "bytes of the inputs by copy_in_ms"),
    ("copy_out_gb_s", "GB/s", "higher", "bytes of the outputs by copy_out_ms"),
    ("roundtrip_ms", "ms", "lower", "inputs copied to the device, one inference, outputs copied back"),
    ("compile_ms", "ms", "lower", "compiling the model and its run that sets it off, inside the first inference"),
    ("capture_ms", "ms", "lower", "capturing the model as a graph of the device, inside the first inference"),
    ("vram_weights_mib", "MiB", "lower", "device memory of the model's weights"),
    ("vram_run_peak_mib", "MiB", "lower", "highest device memory of live tensors while measuring, by the allocator"),
    ("vram_reserved_mib", "MiB", "lower", "highest device memory that the engine's allocator held while measuring"),
    ("vram_device_mib", "MiB", "lower", "highest device memory in use by everybody on the card while measuring"),
    ("energy_net_j", "J", "lower", "energy_j less what the idle card would have used in the same time"),
    ("idle_power_w", "W", "lower", "power of the card before the model was loaded"),
    ("gpu_clock_mhz", "MHz", "neither", "clock of the card while measuring, the median of the readings"),
    ("gpu_temperature_c", "C", "lower", "temperature of the card at the end of measuring"),
    ("gpu_held_power", "1", "lower", "share of the time in which the power cap held the card's clock down"),
    ("gpu_held_thermal", "1", "lower", "share of the time in which heat held the card's clock down"),
    *LOAD_TABLE,
    (
        "wall_s",
        "s",
        "lower",
        "wall time of one whole execution of a script, from its start to the end of its last process",
    ),
    ("cpu_s", "s", "lower", "CPU time of all processes of one whole execution of a script"),
    ("load_rate_per_s", "1/s", "higher", "short requests a second that one client process sends here, 64 in flight"),
    ("load_request_cpu_us", "us", "lower", "CPU time of a client process for one short request"),
    ("load_sent_late_ms", "ms", "lower", "how late requests are sent at half of that rate, the 99th percentile"),
    ("load_ttft_error_ms", "ms", "lower", "reported less true time to the first token at the median, 32 streams"),
    ("load_itl_error_ms", "ms", "lower", "reported less true 99th percentile of the gaps between tokens, 32 streams"),
    ("clock_resolution_ns", "ns", "lower", "smallest step that the clock shows"),
    ("clock_cost_ns", "ns", "lower", "time that one reading of the clock takes"),
    ("harness_overhead_us", "us", "lower", "time that Prony's loop adds inside the timer to one inference"),
    ("repetition_cost_ms", "ms", "lower", "wall time of one repetition of an engine that does nothing"),
    ("kernel_ms", "ms", "lower", "a fixed kernel of arithmetic, the canary of this machine's speed"),
    (
        "kernel_noise",
        "1",
        "lower",
        "robust coefficient of variation of the fixed kernel between fresh processes",
    ),
    (
        "run_noise",
        "1",
        "lower",
        "robust coefficient of variation of equal runs of a deep calibration: it decides the noise class",
    ),
    (
        "session_spread",
        "1",
        "lower",
        "how far whole results of five such runs lie apart, beyond what their runs vary by",
    ),
    ("run_lag1", "1", "neither", "correlation of each of these runs with the next; above 0.3 they are not independent"),
    ("run_drift", "1", "neither", "how far these runs moved from the first to the last, of their median"),
    ("false_alarm_rate", "1", "lower", "share of splits of equal runs that the rule of a comparison calls different"),
    ("seen_with_5_runs", "1", "lower", "smallest change that two sets of 5 runs show here four times in five"),
    ("seen_with_10_runs", "1", "lower", "the same with 10 runs on each side"),
    ("seen_with_20_runs", "1", "lower", "the same with 20 runs on each side"),
    ("seen_with_30_runs", "1", "lower", "the same with 30 runs on each side"),
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
