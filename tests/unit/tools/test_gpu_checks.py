"""The checks of a GPU that need no GPU to be tried: power by two ways."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from benchmarks.gpu import CHECKS, compare_power


class FakeCard:
    """A card of constant power, whose counter moves every 0.1 s; its clock runs while somebody sleeps."""

    def __init__(self, power_w: float, told_w: float) -> None:
        self.now_s = 0.03
        self._power_w, self._told_w = power_w, told_w

    def clock(self) -> float:
        return self.now_s

    def sleep(self, seconds: float) -> None:
        self.now_s += seconds

    def read(self) -> dict[str, float]:
        return {"gpu0_power_w": self._told_w}

    def read_energy_uj(self, card: str) -> float:
        assert card == "gpu0"
        return self._power_w * int(self.now_s * 10) / 10 * 1e6


def test_energy_counter_in_steps_gives_the_power_of_a_window() -> None:
    card = FakeCard(power_w=80, told_w=90)
    counted_w, instant_w = compare_power(card, "gpu0", 10, card.clock, card.sleep)
    assert counted_w == pytest.approx(80, rel=0.01)
    assert instant_w == pytest.approx(90)


def test_energy_counter_that_stands_still_is_told() -> None:
    card = FakeCard(power_w=0, told_w=80)
    with pytest.raises(TimeoutError, match="did not move"):
        compare_power(card, "gpu0", 10, card.clock, card.sleep)


def test_page_of_costs_says_what_the_hand_loop_of_small_calls_took() -> None:
    page = (Path(__file__).parents[3] / "docs" / "performance.md").read_text()
    (item,) = (one for one in page.split("\n- ") if one.startswith("`small`"))
    ours, by_hand = (float(one) for one in re.findall(r"(?:eager|by hand) ([\d.]+) ms", item))
    assert abs(ours / by_hand - 1) <= 0.1 or "missed" in item


def test_idle_power_and_zeros_are_checks_of_their_own() -> None:
    assert {"idle", "zeros"} <= set(CHECKS)
