"""Rules of a model on a device that works beside the host: what bounds it, which copies are counted, and its state."""

from __future__ import annotations

from collections.abc import Iterator

from prony.analyse.verdict import Evidence, Rule, note, percent, suspect, void
from prony.kinds.model.schema import ModelWorkload
from prony.model.estimate import Reason
from prony.model.result import GpuFacts

# Of the median of a call: above the first the host is what takes the time, below the second it is not.
_LAUNCH_BOUND, _DEVICE_BOUND = 0.7, 0.5
_DEVICE_WORKS = 0.8
# A host that takes most of the time varies from the pass with marks to the one without: more is allowed there.
_UNWAITED, _UNWAITED_LAUNCH = 1.1, 1.5
_CAPPED, _CAPPED_UNEVENLY = 0.2, 0.2


def check_waited(evidence: Evidence) -> Iterator[Reason]:
    """A call that returns before the device is done was not timed to its end."""
    call, launch, device = _times(evidence)
    if call is None or device is None:
        return
    is_launch_bound = launch is not None and launch >= _LAUNCH_BOUND * call
    if device > (_UNWAITED_LAUNCH if is_launch_bound else _UNWAITED) * call:
        yield void(
            "not_waited",
            f"A call returned after {call:.4g} ms, but the device's own timestamps show {device:.4g} ms of work: "
            "the engine did not wait for it. Use another version of the engine, or another engine.",
        )


def _times(evidence: Evidence) -> tuple[float | None, float | None, float | None]:
    """Return the median of a call, of what the host does for it, and of the device's own marks."""
    return (
        _value(evidence, "inference_ms.p50"), _value(evidence, "launch_ms.p50"), _value(evidence, "device_ms.p50"),
    )  # fmt: skip


def describe_bound(evidence: Evidence) -> Iterator[Reason]:
    """Say in words whether the host or the device decides."""
    call, launch, device = _times(evidence)
    if call is None or launch is None:
        return
    share = launch / call
    times = f"of {call:.4g} ms, the host takes {launch:.4g} ms to queue the work"
    if device is not None:
        times += f", and the device works for {device:.4g} ms"
    if share >= _LAUNCH_BOUND:
        yield note("launch_bound", f"Launch-bound: {times}. {_advise(evidence)}")
    elif share <= _DEVICE_BOUND and (device is None or device >= _DEVICE_WORKS * call):
        yield note("device_bound", f"Device-bound: {times}.")
    else:
        yield note("mixed_bound", f"Neither launch-bound nor device-bound: {times}.")


def _advise(evidence: Evidence) -> str:
    if evidence.job.work(ModelWorkload).options.get("mode", "eager") == "eager":
        return "A larger batch, or options.mode: graph or compile of the torch engine, saves launches."
    return "A larger batch saves launches."


def describe_copies(evidence: Evidence) -> Iterator[Reason]:
    """Say which copies a timed call holds."""
    work, effective = evidence.job.work(ModelWorkload), evidence.result.effective
    if work.unit == "cpu" or effective is None or not evidence.runs:
        return
    if effective.outputs_at is None:
        if evidence.result.version >= 2:
            yield note(
                "host_copies",
                f"{effective.engine} on {work.unit} leaves its outputs on the host, so the times include the copies.",
            )
        return
    told = [name for name, where in (("inputs", work.inputs.at), ("outputs", work.outputs)) if where == "host"]
    if told:
        yield note(
            "host_copies", f"Every timed call copies its {' and '.join(told)} between host and device, as requested."
        )


def describe_energy(evidence: Evidence) -> Iterator[Reason]:
    """Say why a device has no energy."""
    notes = {gpu.energy_note for gpu in _cards(evidence) if gpu.energy_note}
    for text in sorted(notes):
        yield note("no_energy", f"The energy of the GPU is unknown: {text}.")


def check_power_cap(evidence: Evidence) -> Iterator[Reason]:
    """A power cap is the usual state at hard work, unless it holds some runs back and others not."""
    shares = [gpu.held_back["power"] for gpu in _cards(evidence) if "power" in gpu.held_back]
    if not shares or max(shares) < _CAPPED:
        return
    if max(shares) - min(shares) > _CAPPED_UNEVENLY:
        yield suspect(
            "power_cap",
            f"The power cap lowered the GPU's clock for {percent(min(shares))} to {percent(max(shares))} of the "
            "time: the runs did not have the same conditions.",
        )
    else:
        clock = _value(evidence, "gpu_clock_mhz.p50")
        at = "" if clock is None else f", at {clock:.0f} MHz"
        yield note(
            "power_cap",
            f"The power cap lowered the GPU's clock for {percent(max(shares))} of the time{at}; usual under full load.",
        )


def describe_link(evidence: Evidence) -> Iterator[Reason]:
    """Say that the link to the host is narrower than it could be, and that memory errors were corrected."""
    narrow = {
        (gpu.link_width, gpu.link_width_max)
        for gpu in _cards(evidence)
        if gpu.link_width is not None and gpu.link_width_max is not None and gpu.link_width < gpu.link_width_max
    }
    for width, most in sorted(narrow):
        yield note("narrow_link", f"The GPU's link to the host uses {width} of {most} lanes: copies are slower.")
    if corrected := _count_errors(evidence, "ecc_corrected"):
        yield note("ecc_corrected", f"{corrected} memory errors of the GPU were corrected during the measurement.")
    if again := _count_errors(evidence, "pcie_replay"):
        yield note(
            "pcie_replay", f"{again} packets between the host and the GPU were sent again during the measurement."
        )


def _count_errors(evidence: Evidence, name: str) -> int:
    return sum(gpu.errors.get(name, 0) for gpu in _cards(evidence))


def _cards(evidence: Evidence) -> list[GpuFacts]:
    return [one.gpu for one in evidence.selection.used if one.gpu is not None]


def _value(evidence: Evidence, key: str) -> float | None:
    found = evidence.estimates.get(key)
    return None if found is None else found.value


DEVICE_RULES: tuple[Rule, ...] = (
    check_waited, describe_bound, describe_copies, describe_energy, check_power_cap, describe_link,
)  # fmt: skip
