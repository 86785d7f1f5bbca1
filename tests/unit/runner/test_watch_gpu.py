"""The card of a repetition: when it is warm, which joules are its own, and what disturbs it."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, ClassVar

import pytest

from prony.model.result import GpuFacts
from prony.ports.probe import CardProbe
from prony.runner.watch_gpu import GpuWatch

OWN, OTHER = "GPU-own", "GPU-other"
S = 10**9


class TwoCards:
    """A machine whose second card is the job's; its counter steps when it is told to."""

    name: ClassVar[str] = "cards"

    def __init__(self) -> None:
        self.energy_uj: float | None = 0.0
        self.others: dict[str, float] | None = {}
        self.health: dict[str, float] = {"ecc_uncorrected_total": 2.0, "link_width": 16.0, "link_width_max": 16.0}

    def available(self) -> str | None:
        return None

    def read(self) -> dict[str, float]:
        return {}

    def watch(self, pids: Collection[int]) -> None:
        del pids

    def close(self) -> None:
        return None

    def find_card(self, device_id: str) -> str | None:
        return {OTHER: "gpu0", OWN: "gpu1"}.get(device_id)

    def card_digest(self, card: str) -> str:
        return f"digest of {card}"

    def read_energy_uj(self, card: str) -> float | None:
        assert card == "gpu1"
        return self.energy_uj

    def read_health(self, card: str) -> Mapping[str, float]:
        assert card == "gpu1"
        return dict(self.health)

    def read_others(self, card: str, since_us: int) -> Mapping[str, float] | None:
        assert card == "gpu1"
        assert since_us
        return self.others


def gauges(**changes: float) -> dict[str, float]:
    usual = {
        "sm_mhz": 1500.0,
        "power_w": 600.0,
        "mean_power_w": 600.0,
        "temperature_c": 60.0,
        "held_power_ns_total": 0.0,
    }
    return {f"gpu1_{name}": value for name, value in (usual | changes).items()} | {"gpu0_power_w": 70.0}


@pytest.fixture
def probe() -> TwoCards:
    return TwoCards()


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    now = [0]
    monkeypatch.setattr("prony.runner.watch_gpu.time.perf_counter_ns", lambda: now[0])
    return now


def worked(
    probe: TwoCards,
    clock: list[int],
    *,
    seconds: float = 3.0,
    watts: float = 600.0,
    at_end: dict[str, float] | None = None,
) -> tuple[GpuWatch, GpuFacts]:
    """Return what is seen of a card that works back to back for so long, with a counter of 100 ms."""
    watch = GpuWatch([probe])
    watch.note_idle(gauges(power_w=80.0))
    assert watch.is_settled({"device": OWN, "settle": False}, 0, gauges())
    begin_ns = clock[0] = S
    watch.enter("sustained", lambda: None)
    while clock[0] < begin_ns + seconds * S:
        watch.meter()
        clock[0] += 20_000_000
        if probe.energy_uj is not None:
            probe.energy_uj = watts * 1e6 * ((clock[0] - begin_ns) // 100_000_000) / 10
    watch.enter("copies", lambda: watch.take(clock[0], at_end or gauges()))
    done = {"phases": {"sustained": {"begin_ns": begin_ns, "end_ns": clock[0]}}, "device": {}}
    facts = watch.describe(done)
    assert facts is not None
    return watch, facts


def test_the_fake_is_what_the_watch_asks_for(probe: TwoCards) -> None:
    assert isinstance(probe, CardProbe)


def test_energy_is_the_own_cards_from_step_to_step(probe: TwoCards, clock: list[int]) -> None:
    _, facts = worked(probe, clock)
    assert facts.card == "gpu1"
    assert facts.uuid_hash == "digest of gpu1"
    assert facts.energy_j is not None
    assert facts.energy_window_s is not None
    assert facts.energy_j / facts.energy_window_s == pytest.approx(600)
    assert 2 <= facts.energy_window_s < 3
    assert facts.idle_power_w == 80.0
    assert facts.energy_note == ""


@pytest.mark.parametrize(("seconds", "has_counter", "words"), [(1.5, True, "2 s are needed"), (3.0, False, "MIG")])
def test_a_card_without_energy_says_why(
    probe: TwoCards, clock: list[int], seconds: float, has_counter: bool, words: str
) -> None:
    probe.energy_uj = 0.0 if has_counter else None
    _, facts = worked(probe, clock, seconds=seconds)
    assert facts.energy_j is None
    assert words in facts.energy_note


def test_a_card_that_the_driver_does_not_show_has_no_energy(probe: TwoCards) -> None:
    watch = GpuWatch([probe])
    assert watch.is_settled({"device": "GPU-unknown", "settle": True}, 0, gauges())
    facts = watch.describe({"phases": {}})
    assert facts is not None
    assert "does not show which GPU" in facts.energy_note


def test_a_job_on_the_cpu_has_no_card(probe: TwoCards) -> None:
    watch = GpuWatch([probe])
    assert watch.is_settled({}, 0, gauges())
    assert watch.describe({"phases": {}}) is None
    assert watch.contamination({}) == ()


def test_who_else_uses_the_card_disturbs_and_a_power_cap_does_not(probe: TwoCards, clock: list[int]) -> None:
    probe.others = {"77": 0.6, "78": 0.01}
    watch, facts = worked(probe, clock, at_end=gauges(held_power_ns_total=2.0 * S))
    assert watch.contamination({}) == ("foreign_gpu: other processes used the same GPU: process 77 60% of its time",)
    assert facts.held_back["power"] == pytest.approx(0.5, rel=0.01)


def test_how_busy_the_own_card_was_is_the_mean_from_the_first_inference_on(probe: TwoCards, clock: list[int]) -> None:
    watch, _ = worked(probe, clock, at_end=gauges(busy=0.75, memory_busy=0.5))
    assert watch.average_use() == {"gpu": 0.75, "gpu_memory": 0.5}
    assert GpuWatch([probe]).average_use() == {}


def test_errors_of_memory_and_a_link_that_narrows_disturb(probe: TwoCards, clock: list[int]) -> None:
    assert worked(probe, clock)[0].contamination({}) == ()
    watch = GpuWatch([probe])
    watch.is_settled({"device": OWN, "settle": False}, 0, gauges())
    probe.health = {"ecc_uncorrected_total": 5.0, "pcie_replay_total": 1.0, "link_width": 8.0, "link_width_max": 16.0}
    watch.enter("sustained", lambda: None)
    watch.enter("copies", lambda: watch.take(4 * S, gauges()))
    assert watch.contamination({}) == (
        "gpu_ecc: 3 memory errors of the GPU could not be corrected",
        "gpu_link: the GPU's link to the host changed from 16 to 8 lanes",
    )
    facts = watch.describe({"phases": {}})
    assert facts is not None
    assert (facts.errors, facts.link_width, facts.link_width_max) == ({"ecc_uncorrected": 3}, 8, 16)


def test_heat_that_holds_the_clock_down_disturbs(probe: TwoCards, clock: list[int]) -> None:
    watch = GpuWatch([probe])
    watch.is_settled({"device": OWN, "settle": False}, 0, gauges(held_thermal_ns_total=0.0))
    watch.enter("sustained", lambda: None)
    clock[0] = 4 * S
    watch.enter("copies", lambda: watch.take(4 * S, gauges(held_thermal_ns_total=1.0 * S)))
    assert watch.contamination({}) == ("gpu_thermal: heat lowered the GPU's clock for 25.0% of the time",)


def settle(probe: TwoCards, readings: Mapping[float, Mapping[str, float]]) -> list[bool]:
    """Ask at each of these seconds whether the card is settled."""
    watch, found = GpuWatch([probe]), []
    for second, values in readings.items():
        at_ns = round(second * S)
        if watch.card:
            watch.take(at_ns, gauges(**values))
        found.append(watch.is_settled({"device": OWN, "settle": True}, at_ns, gauges(**values)))
    return found


def test_a_card_is_settled_when_two_seconds_agree(probe: TwoCards) -> None:
    rising = {second: {"sm_mhz": 345.0 if second < 1 else 1980.0} for second in (0, 0.5, 1.0, 1.5, 2.0, 2.5, 3.0, 3.5)}
    assert settle(probe, rising) == [False] * 5 + [True] * 3


@pytest.mark.parametrize("name", ["sm_mhz", "mean_power_w", "temperature_c"])
def test_a_card_that_never_settles_is_measured_after_half_a_minute(probe: TwoCards, name: str) -> None:
    restless: dict[float, dict[str, float]] = {second / 2: {name: 100.0 + 10.0 * second} for second in range(63)}
    found = settle(probe, restless)
    assert not any(found[:60])
    assert found[60]


def test_what_the_engine_tells_of_its_memory_is_kept(probe: TwoCards) -> None:
    watch = GpuWatch([probe])
    watch.is_settled({"device": OWN, "settle": False}, 0, gauges())
    memory = {"weights": 2**20, "allocated_peak": 2**21, "reserved_peak": 2**22}
    told: dict[str, Any] = {"memory": memory, "bytes_in": 10, "bytes_out": 20, "host_memory": "pinned"}
    facts = watch.describe({"phases": {}, "device": told})
    assert facts is not None
    assert (facts.weights_mib, facts.allocated_peak_mib, facts.reserved_peak_mib) == (1, 2, 4)
    assert (facts.bytes_in, facts.bytes_out, facts.host_memory) == (10, 20, "pinned")
