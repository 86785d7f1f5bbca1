"""What beats lives; what nobody looked at is not counted as silence."""

from __future__ import annotations

import pytest

from prony.dispatch.liveness import Pulse, forgive_gap, has_moved, is_silent, lost_after_s, take_pulse

TTL_S = 30.0


def test_a_beat_that_moves_lives_and_one_that_stays_grows_old() -> None:
    first = take_pulse(None, 7, now=100.0, heard_at=None)
    same = take_pulse(first, 7, now=120.0, heard_at=None)
    moved = take_pulse(same, 8, now=125.0, heard_at=None)
    assert [one.moved_at for one in (first, same, moved)] == [100.0, 100.0, 125.0]


def test_a_clock_that_is_set_back_makes_a_beat_no_older() -> None:
    assert take_pulse(Pulse(7, 100.0), 3, now=110.0, heard_at=None) == Pulse(3, 110.0)


def test_what_this_server_heard_itself_counts_before_the_database_has_it() -> None:
    assert take_pulse(Pulse(7, 100.0), 7, now=120.0, heard_at=118.0).moved_at == 118.0
    assert take_pulse(Pulse(7, 100.0), 7, now=120.0, heard_at=90.0).moved_at == 100.0


@pytest.mark.parametrize(("silent_s", "is_over"), [(30.0, False), (30.1, True)])
def test_a_lease_expires_after_its_life_and_an_agent_is_lost_after_three(silent_s: float, *, is_over: bool) -> None:
    assert is_silent(Pulse(1, 0.0), silent_s, TTL_S) is is_over
    assert is_silent(Pulse(1, 0.0), 3 * silent_s, lost_after_s(TTL_S)) is is_over


def test_an_agent_is_back_only_when_it_beats_after_a_look() -> None:
    assert not has_moved(None, 7)
    assert not has_moved(Pulse(7, 0.0), 7)
    assert has_moved(Pulse(7, 0.0), 8)


def test_time_in_which_nobody_looked_is_silence_of_nobody() -> None:
    pulses = {"a": Pulse(7, 100.0)}
    assert forgive_gap(pulses, gap_s=60.0, interval_s=1.0) == {"a": Pulse(7, 160.0)}
    assert forgive_gap(pulses, gap_s=3.0, interval_s=1.0) == pulses
