"""Everything one job produced, as the runner saw it: the contents of `result.json`."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum
from typing import Literal

from pydantic import field_validator

from prony.error_codes import RENAMED_CODES
from prony.model.base import Noun
from prony.model.clients import CacheFacts, ClientSide, ClientTiming, ServiceFacts
from prony.model.target import PlacementNote


class ResultState(StrEnum):
    """Whether all repetitions that were wanted, some, or none have numbers."""

    COMPLETE = "complete"
    PARTIAL = "partial"
    FAILED = "failed"


class Failure(Noun):
    """Why a repetition, or the whole job, has no number: the phase, the decoded reason, what to do."""

    code: str
    message: str
    hint: str = ""
    phase: str = ""
    signal: str | None = None
    detail: str = ""
    # Whose move it is, as in the error tree: another repetition would only say the same of `input` and `capacity`.
    whose: Literal["input", "capacity", "sut", "prony"] = "sut"

    @field_validator("code")
    @classmethod
    def _rename(cls, code: str) -> str:
        """Give a code of an older Prony its name of today."""
        return RENAMED_CODES.get(code, code)


class Phase(Noun):
    """One phase of a repetition, with the kernel's own high-water mark of its memory."""

    begin_ns: int
    end_ns: int
    cpu_ns: int
    count: int = 0
    rss_peak_kib: int | None = None
    rss_anon_kib: int | None = None
    rss_file_kib: int | None = None


# Other programs that use more of the CPU than this while most runs are measured make the result void.
FOREIGN_CPU_VOIDS = 0.20


class Noise(Noun):
    """What else the machine did while the measured phase ran; None where the system does not tell."""

    foreign_cpu: float | None = None
    steal: float | None = None
    pressure_cpu: float | None = None
    pressure_memory: float | None = None
    pressure_io: float | None = None
    quota_throttled_ms: float | None = None
    thermal_events: int | None = None
    swapped_pages: int | None = None
    # How long the counters were watched, and the share of CPU below which they cannot tell anything from nothing.
    window_s: float | None = None
    cpu_resolution: float | None = None
    # Who else used the most of the machine's CPU, by the program's name.
    busiest: dict[str, float] = {}
    # What could not be watched, and why: of this machine where `foreign_cpu` is None, else of the service's.
    unwatched: str = ""


class MachineUse(Noun):
    """What was in use while the measured phase ran; None where the system does not tell."""

    # Of a load: how many cores the service's processes used, where they run on this machine.
    service_cores: float | None = None
    # Share of the time of all cores, whoever used it.
    machine_cpu: float | None = None
    # Of the job's own card, or of the busiest where none is known to be its own: the share of the time in which it
    # computed, and in which its memory was read or written.
    gpu: float | None = None
    gpu_memory: float | None = None
    # How much of it worked in the mean, of all its processors and tensor cores, and of what its memory can carry.
    gpu_sm: float | None = None
    gpu_tensor: float | None = None
    gpu_dram: float | None = None


class CanaryReading(Noun):
    """How long two fixed pieces of work took on this machine just then: one of the processor, one of memory.

    And two on the job's GPU, where its engine can; `gpu_held_up` is the share of their time in which they waited for
    other work of the card.
    """

    compute_ms: float
    memory_ms: float
    gpu_compute_ms: float | None = None
    gpu_memory_ms: float | None = None
    gpu_held_up: float | None = None


class Refusal(Noun):
    """What a script told that is no number: which name, why, and how often."""

    name: str
    reason: str
    count: int = 1


class RankEnd(Noun):
    """How one process of a script ended: its exit code, or less than 0 for the signal that ended it; and when."""

    rank: int
    status: int
    end_ns: int | None = None


class GpuFacts(Noun):
    """The card of a job while it was measured. Shares, clock and heat are of the measured and the sustained phase."""

    # As the counters in telemetry.parquet call it, and a digest of its serial number; empty where it was not found.
    card: str = ""
    uuid_hash: str = ""
    # Of its board, while it worked back to back; `energy_note` says why there is none.
    energy_j: float | None = None
    energy_window_s: float | None = None
    energy_note: str = ""
    # Before the model was loaded.
    idle_power_w: float | None = None
    clock_mhz: float | None = None
    temperature_begin_c: float | None = None
    temperature_end_c: float | None = None
    # Share of the time in which the clock was held down, by cause.
    held_back: dict[str, float] = {}
    # The link to the host at the end, under load; `errors` are those of memory and link that came while measuring.
    link_generation: int | None = None
    link_width: int | None = None
    link_width_max: int | None = None
    errors: dict[str, int] = {}
    # What other processes used of it, by their numbers: share of its time.
    others: dict[str, float] = {}
    # By the engine's allocator; then by the driver: of all that uses the card.
    weights_mib: float | None = None
    allocated_peak_mib: float | None = None
    reserved_peak_mib: float | None = None
    device_peak_mib: float | None = None
    # What one inference copies from and to the host, where it does, and between which memory.
    bytes_in: int | None = None
    bytes_out: int | None = None
    host_memory: str = ""


class Repetition(Noun):
    """One fresh process. `index` is the run id that outliers and samples refer to."""

    index: int
    kind: Literal["measure", "load", "warmup"] = "measure"
    state: Literal["ok", "failed", "cancelled"] = "ok"
    started_at: datetime
    import_ns: int | None = None
    baseline_rss_kib: int | None = None
    page_cache: float | None = None
    phases: dict[str, Phase] = {}
    warm: bool | None = None
    # Did the measured durations settle on a level? None where it was not looked for.
    steady: bool | None = None
    stopped_by: Literal["runs", "ci", "time", "stop"] | None = None
    noise: Noise = Noise()
    use: MachineUse = MachineUse()
    energy_j: dict[str, float] = {}
    vram_peak_mib: float | None = None
    # Of a job on a device that works beside the host; None of any other, and in older results.
    gpu: GpuFacts | None = None
    contamination: tuple[str, ...] = ()
    # How fast the machine was right before and right after; None in older results.
    canary_before: CanaryReading | None = None
    canary_after: CanaryReading | None = None
    # Of a load: how its clients fared, and at which level a search held it.
    client: ClientSide | None = None
    level: float | None = None
    # Of a load on a service that was started for this run: what its program took until it served.
    service_start_ms: float | None = None
    # Of a load of an LLM: what is known of its server's cache.
    cache: CacheFacts | None = None
    # Of a load by commands: how many of its clients wrote no request down.
    silent_clients: int = 0
    # Of a script: what it told that is no number, how its processes ended, and how many it left behind.
    refused: tuple[Refusal, ...] = ()
    ends: tuple[RankEnd, ...] = ()
    strays: int = 0
    empty_start_ms: float | None = None  # of a script: what starting and ending an empty program took just before
    # Of one node of several that ran a script: its clock beside the server's.
    timing: ClientTiming | None = None
    failure: Failure | None = None

    @property
    def is_clean(self) -> bool:
        """May it stand for the job: it succeeded, nothing disturbed it, and it settled on a level?"""
        return self.state == "ok" and not self.contamination and self.steady is not False


class ModelFacts(Noun):
    """Which bytes were run."""

    source: str
    path: str
    format: str
    sha256: str
    size_bytes: int
    files: tuple[str, ...]
    parameters: int | None = None
    opset: int | None = None
    weight_types: dict[str, int] = {}


class InputFacts(Noun):
    """One input as it was really fed, with where each choice came from."""

    name: str
    dtype: str
    shape: tuple[int, ...]
    shape_source: str
    values_source: str
    sha256: str

    @property
    def chosen_axes(self) -> tuple[str, ...]:
        """The axes whose sizes Prony chose, because neither the model nor the recipe gives one: `height = 224`."""
        rules = (text.removeprefix("rule: ") for text in self.shape_source.split("; ") if text.startswith("rule: "))
        return tuple(text.replace(" -> ", " = ") for text in rules)

    @property
    def read_beside(self) -> tuple[str, ...]:
        """The files beside the model, or its metadata, that sizes were read from: `preprocessor_config.json, size`."""
        parts = self.shape_source.split("; ")
        return tuple(part.removeprefix("beside: ") for part in parts if part.startswith("beside: "))


class Effective(Noun):
    """What the engine says it does, asked after loading."""

    engine: str
    engine_version: str
    python: str
    device: str
    precision: str
    threads: int | None = None
    provider_coverage: dict[str, float] = {}
    details: dict[str, str] = {}
    # Where a device leaves the outputs of a timed call: `device`, or `pinned host`. None: in the host's ordinary
    # memory, as everywhere before version 2 of results.
    outputs_at: str | None = None
    # `off` of an engine that can record gradients and did not. None: it never does, or the result is of before version
    # 3, when PyTorch recorded them in every timed call.
    gradients: str | None = None


class OutputCheck(Noun):
    """Are the answers finite, and the same as the float32 reference's?"""

    finite: bool
    reference: str
    is_reference: bool = False
    compared: bool
    max_abs_error: float | None = None
    max_error_of_range: float | None = None
    cosine: float | None = None
    outputs: int = 0
    note: str = ""


class Reported(Noun):
    """Figures that another program measured and summed up itself: no sample behind them is here.

    `figures` have the keys of estimates, each of `count` inferences; `original` is the report as it came.
    """

    by: str
    figures: dict[str, float] = {}
    count: int
    original: str = ""


class Origin(Noun):
    """A run that another program measured and whose requests were brought in: what its files can and cannot say."""

    by: str
    # What it is called there.
    identity: str
    has_whole_seconds: bool = False
    # Did its clients start a process for each request?
    has_own_processes: bool = False
    # Lines that were no whole request, and successes that took no time.
    unread: int = 0
    timeless: int = 0
    # What its own summary says otherwise than its requests, and which of its columns nobody counted.
    differs: tuple[str, ...] = ()
    left_out: tuple[str, ...] = ()


class ScriptFacts(Noun):
    """What was executed: the words after every variable was filled in, and what of the recipe could not be honoured."""

    command: tuple[str, ...]
    program: str = ""
    directory: str = ""
    launcher: str = ""
    # The agents that were its nodes, in their order; none where it ran on one machine.
    nodes: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


class Result(Noun):
    """What a runner keeps of one job; its samples lie beside it."""

    # 2: on a device the outputs of a timed call stay there; before, they were copied to the host inside the timer.
    # 3: PyTorch records no gradients in a timed call; before, it did.
    version: int = 3
    prony_version: str
    job_id: str
    experiment_id: str
    state: ResultState
    started_at: datetime
    ended_at: datetime | None = None
    model: ModelFacts | None = None
    inputs: tuple[InputFacts, ...] = ()
    effective: Effective | None = None
    check: OutputCheck | None = None
    service: ServiceFacts | None = None
    script: ScriptFacts | None = None
    repetitions: tuple[Repetition, ...] = ()
    # Where somebody else measured, and told what came out.
    reported: Reported | None = None
    # Where another program measured.
    origin: Origin | None = None
    # Where it was measured at a target: the scheduler's own id and nodes, and when it was submitted and began.
    placement: PlacementNote | None = None
    failure: Failure | None = None
    # SHA-256 of the sample files, by name, as they were when the folder was finished; older results have none.
    checksums: dict[str, str] = {}
