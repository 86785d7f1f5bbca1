from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lanes import count_examples
from prony.analyse.history.confirmation import MORE, PAIRS, Repeats, judge_pairs, judge_repeats, last_good
from prony.analyse.history.detect import Rules
from prony.analyse.history.level_track import Decision, LevelTrack, follow_levels
from prony.analyse.history.machine_record import record_before
from prony.analyse.history.machine_speed import MachineSpeeds
from prony.stats.quantiles import Array

RULES = Rules()


def runs(seed: int = 1, count: int = 60, *, change: int | None = None, size: float = 0.06, sd: float = 0.01) -> Array:
    """Return logarithms of runs about 100, with a change from a run on."""
    values = 100 * (1 + np.random.default_rng(seed).normal(0, sd, count))
    if change is not None:
        values[change:] *= 1 + size
    return np.log(values)


class TestACourse:
    def test_a_regression_is_found_and_begins_a_level(self) -> None:
        course = follow_levels(runs(change=40), RULES)
        (noticed,) = course.changes
        assert noticed.finding.kind == "regression"
        assert noticed.position == pytest.approx(40, abs=1)
        assert noticed.at <= 45
        assert course.begin == noticed.position

    def test_an_improvement_is_the_same_turned(self) -> None:
        worse, better = follow_levels(runs(change=40), RULES), follow_levels(-runs(change=40), RULES)
        assert [one.position for one in better.changes] == [one.position for one in worse.changes]
        assert [one.finding.kind for one in better.changes] == ["improvement"]

    def test_runs_one_by_one_and_all_at_once_have_the_same_course(self) -> None:
        values, course = runs(change=40), LevelTrack()
        for end in range(1, values.size + 1):
            course = follow_levels(values[:end], RULES, course)
        assert course == follow_levels(values, RULES)

    def test_nothing_is_said_of_fewer_than_twenty(self) -> None:
        assert follow_levels(runs(count=19, change=10, size=0.5), RULES) == LevelTrack(seen=19)

    def test_a_spike_is_no_change(self) -> None:
        values = runs()
        values[[45, 52]] += 1.0
        assert follow_levels(values, RULES).changes == ()

    def test_one_result_far_from_the_others_is_suspicious_until_the_next(self) -> None:
        values = runs(count=40)
        values[-1] += 0.2
        apart = follow_levels(values, RULES).apart
        assert apart is not None
        assert apart > 2.5
        assert follow_levels(np.append(values, values[0]), RULES).apart is None

    def test_what_grows_little_by_little_is_drift(self) -> None:
        values = runs(count=60, sd=0.003) + np.linspace(0, 0.06, 60)
        course = follow_levels(values, RULES)
        assert course.changes == ()
        assert course.drift is not None

    def test_a_regression_that_was_mended_and_returns_is_told(self) -> None:
        values = runs(count=90, sd=0.005)
        for low, high in ((22, 42), (64, 90)):
            values[low:high] += 0.04
        found = follow_levels(values, RULES).changes
        assert [one.finding.kind for one in found] == ["regression", "improvement", "regression"]
        assert not any(one.finding.seen_before for one in found)
        assert found[-1].position == pytest.approx(64, abs=1)

    def test_a_visit_that_noise_made_is_forgotten_when_more_runs_are_known(self) -> None:
        values = runs(seed=126, count=92, sd=0.02)
        for low, high in ((40, 60), (85, 92)):
            values[low:high] += 0.05
        noticed, later = (follow_levels(values[:count], RULES).changes[-1] for count in (88, 92))
        assert noticed.position == later.position == pytest.approx(85, abs=1)
        assert (noticed.finding.seen_before, later.finding.seen_before) == (True, False)

    def test_a_level_that_was_visited_and_left_repeatedly_is_only_suspected(self) -> None:
        values = runs(count=112, sd=0.005)
        for low, high in ((22, 34), (50, 64), (80, 96)):
            values[low:high] += 0.04
        kinds = [(one.finding.kind, one.finding.seen_before) for one in follow_levels(values, RULES).changes]
        assert kinds[0] == ("regression", False)
        assert kinds[2] == ("regression", False)
        assert ("regression", True) in kinds[3:]

    def test_a_change_in_the_first_runs_is_placed_where_it_was(self) -> None:
        for change in (4, 5, 6, 7, 8, 10):
            (found,) = follow_levels(runs(count=40, change=change, size=0.1), RULES).changes
            assert found.position == change
            assert found.finding.shift == pytest.approx(np.log(1.1), abs=0.02)

    def test_a_visit_that_was_a_real_change_does_not_excuse_the_next(self) -> None:
        values = runs(count=94, sd=0.005)
        for low, high in ((22, 34), (50, 64), (80, 94)):
            values[low:high] += 0.04
        assert follow_levels(values, RULES).changes[-1].finding.seen_before
        decided = [Decision(place, place + 5, is_real=True) for place in (22, 34, 50, 64)]
        last = follow_levels(values, RULES, decisions=decided).changes[-1]
        assert last.position == pytest.approx(80, abs=1)
        assert not last.finding.seen_before

    def test_what_was_rejected_is_not_told_again_at_once(self) -> None:
        values = runs(change=40)
        (noticed,) = follow_levels(values, RULES).changes
        rejected = [Decision(noticed.position, noticed.at + 10, is_real=False)]
        assert follow_levels(values, RULES, decisions=rejected).changes == ()

    def test_a_change_too_small_to_matter_is_not_told(self) -> None:
        assert follow_levels(runs(change=40, size=0.012, sd=0.001), RULES).changes == ()

    @pytest.mark.parametrize("count", range(8))
    def test_hardly_any_runs_are_no_trouble(self, count: int) -> None:
        assert follow_levels(runs(count=count), RULES).seen == count

    def test_a_constant_is_steady_and_a_step_of_constants_a_change(self) -> None:
        assert follow_levels(np.zeros(60), RULES).changes == ()
        stepped = np.concatenate((np.zeros(40), np.full(20, 0.1)))
        assert [one.position for one in follow_levels(stepped, RULES).changes] == [40]


def beside(*canary: Array) -> MachineSpeeds:
    return MachineSpeeds(("compute_ms", "memory_ms")[: len(canary)], canary)


def canary(seed: int = 8, count: int = 60) -> Array:
    """Return a canary of a machine that does not change."""
    return np.random.default_rng(seed).normal(0, 0.003, count)


class TestTheMachine:
    def test_a_change_that_the_canary_shows_too_is_of_the_machine(self) -> None:
        step = np.where(np.arange(60) < 44, 0.0, np.log(1.06))
        course = follow_levels(runs(sd=0.01) + step, RULES, speeds=beside(canary() + step))
        assert course.changes == ()
        assert course.machine is not None
        assert course.machine.position == pytest.approx(44, abs=1)
        assert course.machine.finding.canary == "compute_ms"

    def test_a_regression_is_told_beside_a_canary_that_did_not_move(self) -> None:
        course = follow_levels(runs(change=44), RULES, speeds=beside(canary()))
        assert [one.position for one in course.changes] == [44]
        assert course.changes[0].finding.canary is None

    def test_a_regression_is_told_although_the_machine_changed_too(self) -> None:
        step = np.where(np.arange(60) < 40, 0.0, np.log(1.06))
        values = runs(change=48, size=0.08, sd=0.005) + step
        course = follow_levels(values, RULES, speeds=beside(canary() + step))
        (found,) = course.changes
        assert found.position == pytest.approx(48, abs=1)
        assert found.finding.shift == pytest.approx(np.log(1.08), abs=0.02)

    def test_on_a_machine_that_drifts_the_canary_shows_a_change_that_is_hidden_otherwise(self) -> None:
        mood = 0.04 * np.sin(np.arange(60) / 6)
        values = runs(change=50, size=0.05, sd=0.004) + mood
        assert all(abs(one.position - 50) > 2 for one in follow_levels(values, RULES).changes)
        (found,) = follow_levels(values, RULES, speeds=beside(canary() + mood)).changes
        assert found.position == pytest.approx(50, abs=1)
        assert found.finding.canary == "compute_ms"

    def test_the_canary_that_helps_is_used_of_several(self) -> None:
        mood = 0.04 * np.sin(np.arange(60) / 6)
        values = runs(change=50, size=0.05, sd=0.004) + mood
        (found,) = follow_levels(values, RULES, speeds=beside(canary(), canary(9) + mood)).changes
        assert found.finding.canary == "memory_ms"

    def test_a_canary_that_was_not_timed_beside_every_run_of_the_window_is_not_used(self) -> None:
        step = np.where(np.arange(60) < 44, 0.0, np.log(1.06))
        some = canary() + step
        some[10] = np.nan
        assert len(follow_levels(runs() + step, RULES, speeds=beside(some)).changes) == 1

    def test_one_result_that_the_canary_explains_is_not_suspicious(self) -> None:
        values, beside_it = runs(count=40), canary(count=40)
        values[-1] += 0.2
        assert follow_levels(values, RULES, speeds=beside(beside_it)).apart is not None
        beside_it[-1] += 0.2
        assert follow_levels(values, RULES, speeds=beside(beside_it)).apart is None


values = st.lists(st.floats(0.01, 1e6), min_size=0, max_size=45)


class TestEveryCourse:
    @settings(max_examples=count_examples(60), deadline=None)
    @given(values, st.sampled_from([1000.0, 1e-6, 60.0]))
    def test_the_unit_and_the_inverse_do_not_matter(self, numbers: list[float], unit: float) -> None:
        array = np.array(numbers)
        plain, other, inverse = (
            follow_levels(one, RULES) for one in (np.log(array), np.log(array * unit), -np.log(1 / array))
        )
        positions = [one.position for one in plain.changes]
        assert [one.position for one in other.changes] == positions
        assert [one.position for one in inverse.changes] == positions

    @settings(max_examples=count_examples(40), deadline=None)
    @given(st.lists(st.sampled_from([1.0, 1.01, 1.02, 1.3]), max_size=50))
    def test_ties_are_no_trouble_and_the_answer_is_always_the_same(self, numbers: list[float]) -> None:
        array = np.log(np.array(numbers))
        assert follow_levels(array, RULES) == follow_levels(array.copy(), RULES)


CALM = record_before(runs(9, 60), beside(canary(19, 60)), ())


class TestConfirming:
    def test_pairs_that_all_say_worse_confirm(self) -> None:
        assert judge_pairs(np.full(PAIRS, 0.05) + runs(3, PAIRS) - np.log(100), RULES) == "confirmed"

    def test_pairs_that_say_nothing_reject(self) -> None:
        assert judge_pairs(np.array([0.01, -0.01, 0.0, 0.002, -0.004, 0.001, -0.002]), RULES) == "rejected"

    def test_promising_pairs_ask_for_more_and_then_decide(self) -> None:
        some = np.array([0.04, 0.05, -0.01, 0.03, 0.04, -0.005, 0.05])
        assert judge_pairs(some, RULES) == "open"
        assert judge_pairs(np.concatenate((some, np.full(MORE, 0.04))), RULES) == "confirmed"

    def test_an_improvement_is_confirmed_by_the_other_direction(self) -> None:
        assert judge_pairs(np.full(PAIRS, -0.05), RULES, worse=False) == "confirmed"
        assert judge_pairs(np.full(PAIRS, -0.05), RULES) == "rejected"

    def test_runs_of_one_version_confirm_where_a_canary_vouches_for_the_machine(self) -> None:
        old, new = runs(1, 40), runs(2, PAIRS) + 0.06
        vouched = judge_repeats(
            Repeats(old, beside(canary(11, 40))), Repeats(new, beside(canary(12, PAIRS))), RULES, record=CALM
        )  # fmt: skip
        assert vouched == "confirmed"
        assert judge_repeats(Repeats(old), Repeats(new), RULES, record=CALM) == "unsettled"

    def test_runs_on_a_machine_that_changed_say_so_and_confirm_nothing(self) -> None:
        old = Repeats(runs(1, 40), beside(canary(11, 40)))
        new = Repeats(runs(2, PAIRS) + 0.06, beside(canary(12, PAIRS) + 0.06))
        assert judge_repeats(old, new, RULES, record=CALM) == "machine"

    def test_runs_at_the_old_level_reject_without_a_canary_too(self) -> None:
        assert judge_repeats(Repeats(runs(1, 40)), Repeats(runs(2, PAIRS)), RULES, record=CALM) == "rejected"

    def test_runs_of_a_series_whose_results_follow_each_other_settle_nothing(self) -> None:
        mood = np.cumsum(np.random.default_rng(4).normal(0, 0.004, 60))
        old = Repeats(runs(1, 60, sd=0.002) + mood - mood[-1], beside(canary(11, 60)))
        new = Repeats(runs(2, PAIRS, sd=0.002) + 0.08, beside(canary(12, PAIRS)))
        record = record_before(old.values, old.speeds, ())
        assert judge_repeats(old, new, RULES, record=record) == "restless"

    def test_the_old_version_is_taken_from_a_little_before_and_from_the_same_level(self) -> None:
        assert last_good(40, 0, is_alone=False) == 37
        assert last_good(40, 0, is_alone=True) == 34
        assert last_good(40, 39, is_alone=True) == 39
