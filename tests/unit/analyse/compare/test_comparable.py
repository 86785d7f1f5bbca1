"""Which jobs are compared with each other, what may differ between them, and what doubts about the machine do."""

from __future__ import annotations

import pytest

from prony.analyse.compare.compare import compare_entries
from prony.errors import InputError
from prony.model.clients import ServiceFacts
from prony.model.comparison import Comparison, Conclusion, Terms
from prony.model.estimate import Grade, Reason, Verdict
from prony.model.recipe import Measure

from .sides import P50, VOID, changed, entry, noisy, side


class TestMeasurement:
    def test_a_void_side_is_insufficient_in_one_sentence(self) -> None:
        found = compare_entries(
            [
                side("A", entry({P50: noisy(10, 8)})),
                side("B", entry({P50: noisy(20, 8)}, verdict=VOID, experiment="e2")),
            ],
            Terms(),
        )
        assert found.conclusion is Conclusion.INSUFFICIENT
        assert found.matches[0].contrasts[0].sentence == (
            "mlp was not decided: the candidate is void: Other programs took 90 % of the CPU."
        )

    def test_a_suspect_side_takes_part_and_is_named(self) -> None:
        verdict = Verdict(grade=Grade.SUSPECT, reasons=(Reason(code="x", text="It was warm.", grade=Grade.SUSPECT),))
        found = compare_entries(
            [
                side("A", entry({P50: noisy(10, 8)})),
                side("B", entry({P50: noisy(20, 8)}, verdict=verdict, experiment="e2")),
            ],
            Terms(),
        )
        assert found.conclusion is Conclusion.REGRESSION
        assert "mlp (e2-001) is suspect. It was warm." in found.notes

    def test_sides_that_did_not_take_turns_are_said_to_have_not(self) -> None:
        found = compare_entries(
            [side("A", entry({P50: noisy(10, 8)})), side("B", entry({P50: noisy(10, 8)}, experiment="e2"))], Terms()
        )
        assert found.notes[0].startswith("The sides were measured one after the other, so the spread")

    def test_jobs_of_one_experiment_are_compared_as_pairs_which_takes_a_drift_out(self) -> None:
        drift = [10 * 1.02**i for i in range(10)]
        first = entry({P50: drift}, number=1, cell={"workload.threads": 1})
        second = entry({P50: [1.04 * one * (1 + 0.002 * (i % 3)) for i, one in enumerate(drift)]}, number=2,
                       cell={"workload.threads": 2})  # fmt: skip
        found = compare_entries([side("A", first, second)], Terms(across=("threads",)))
        (match,) = found.matches
        assert match.interleaved
        assert match.contrasts[0].conclusion is Conclusion.REGRESSION
        assert match.contrasts[0].effect is not None
        assert match.contrasts[0].effect.method.startswith("paired")
        assert found.notes == ("threads was allowed to differ.",)

    def test_jobs_that_took_turns_and_have_nothing_in_common_are_compared_as_two_sets(self) -> None:
        first = entry({P50: noisy(10, 12, seed=3)}, number=1, cell={"workload.threads": 1})
        second = entry({P50: noisy(10, 12, seed=4)}, number=2, cell={"workload.threads": 2})
        (match,) = compare_entries([side("A", first, second)], Terms(across=("threads",))).matches
        assert match.interleaved
        assert match.contrasts[0].effect is not None
        assert match.contrasts[0].effect.method.startswith("Hodges-Lehmann ratio; permutation")


class TestComparable:
    before = entry({P50: noisy(10, 8, seed=1)})
    after = entry({P50: noisy(10, 8, seed=2)}, experiment="e2")

    def test_software_may_differ_and_is_shown(self) -> None:
        found = compare_entries([side("A", self.before), side("B", changed(self.after, kernel="7"))], Terms())
        (difference,) = found.matches[0].differences
        assert (difference.path, difference.baseline, difference.candidate) == ("software.kernel", "6", "7")
        assert difference.allowed

    def test_a_service_may_have_been_started_otherwise_and_that_is_shown(self) -> None:
        older, newer = (
            one.model_copy(update={"result": one.result.model_copy(update={"service": facts})})
            for one, facts in (
                (self.before, ServiceFacts(name="redis")),
                (self.after, ServiceFacts(name="redis", restart="each-run")),
            )
        )
        (difference,) = compare_entries([side("A", older), side("B", newer)], Terms()).matches[0].differences
        assert (difference.path, difference.baseline, difference.candidate) == ("service.restart", "once", "each-run")
        assert difference.allowed

    @pytest.mark.parametrize(
        ("other", "told"),
        [
            (changed(after, hardware_id="h2"), "hardware: hardware_id is h and h2"),
            (changed(after, sha256="1" * 64), f"model: model.sha256 is 0 and {'1' * 64}"),
            (changed(after, precision="fp16"), "settings: effective.precision is fp32 and fp16"),
            # A GPU's result of before version 2, whose times count a copy to the host, says nothing of its outputs.
            (changed(after, outputs_at="device"), "settings: effective.outputs_at is nothing and device"),
            # So does one of PyTorch of before version 3, which recorded gradients.
            (changed(after, gradients="off"), "settings: effective.gradients is nothing and off"),
            (entry({P50: [1.0]}, experiment="e2", threads=3), "settings: workload.threads is nothing and 3"),
        ],
    )
    def test_another_machine_model_or_setting_is_refused_with_each_difference(self, other: object, told: str) -> None:
        with pytest.raises(InputError, match="not comparable") as caught:
            compare_entries([side("A", self.before), side("B", other)], Terms())  # type: ignore[arg-type]
        assert caught.value.code == "not_comparable"
        assert told in caught.value.message

    @pytest.mark.parametrize(
        ("changes", "name"),
        [({"hardware_id": "h2"}, "device"), ({"sha256": "1" * 64}, "model"), ({"precision": "fp16"}, "precision")],
    )
    def test_a_refusal_names_what_would_allow_it(self, changes: dict[str, str], name: str) -> None:
        sides = [side("A", self.before), side("B", changed(self.after, **changes))]
        with pytest.raises(InputError, match="not comparable") as caught:
            compare_entries(sides, Terms())
        assert caught.value.hint is not None
        assert caught.value.hint.startswith(f"--across {name} allows a different {name};")
        assert compare_entries(sides, Terms(across=(name,))).matches

    def test_anyway_compares_and_keeps_the_difference(self) -> None:
        found = compare_entries(
            [side("A", self.before), side("B", changed(self.after, hardware_id="h2"))], Terms(anyway=True)
        )
        assert [one.allowed for one in found.matches[0].differences] == [False]

    def test_a_gpu_is_compared_with_the_cpu_wherever_its_outputs_are(self) -> None:
        other = changed(entry({P50: noisy(10, 8)}, experiment="e2", unit="cuda"), outputs_at="device")
        assert compare_entries([side("A", self.before), side("B", other)], Terms(across=("unit",))).matches

    def test_across_lets_one_setting_differ_and_no_other(self) -> None:
        other = entry({P50: noisy(10, 8)}, experiment="e2", threads=2)
        assert compare_entries([side("A", self.before), side("B", other)], Terms(across=("threads",))).matches
        both = entry({P50: noisy(10, 8)}, experiment="e2", threads=2, precision="fp16")
        with pytest.raises(InputError, match="precision"):
            compare_entries([side("A", self.before), side("B", both)], Terms(across=("threads",)))

    def test_how_many_samples_a_run_has_may_differ(self) -> None:
        job = self.after.job.model_copy(update={"measure": Measure(runs=7, repeats=9)})
        other = self.after.model_copy(update={"job": job})
        assert compare_entries([side("A", self.before), side("B", other)], Terms()).matches

    def test_a_device_may_differ_where_that_is_what_one_asks(self) -> None:
        other = changed(self.after, hardware_id="h2")
        assert compare_entries([side("A", self.before), side("B", other)], Terms(across=("device",))).matches

    def test_a_setting_that_nobody_has_is_refused_with_the_nearest(self) -> None:
        with pytest.raises(InputError, match="no job has 'enigne'") as caught:
            compare_entries([side("A", self.before), side("B", self.after)], Terms(across=("enigne",)))
        assert caught.value.hint == "did you mean engine?"


class TestMatching:
    def test_jobs_are_matched_by_their_cells_and_those_alone_are_named(self) -> None:
        def jobs(experiment: str, *threads: int) -> list[object]:
            return [
                entry({P50: noisy(10, 6)}, experiment=experiment, number=n, cell={"workload.threads": n})
                for n in threads
            ]

        found = compare_entries([side("A", *jobs("e1", 1, 2)), side("B", *jobs("e2", 3, 2))], Terms())  # type: ignore[arg-type]
        assert [match.title for match in found.matches] == ["threads=2"]
        assert found.unmatched == ("threads=1 is only in A", "threads=3 is only in B")

    def test_several_are_each_compared_with_the_first(self) -> None:
        sides = [side(name, entry({P50: noisy(10, 6)}, experiment=name)) for name in ("A", "B", "C")]
        found = compare_entries(sides, Terms())
        assert found.candidates == ("B", "C")
        assert [match.candidate.experiment_id for match in found.matches] == ["B", "C"]

    def test_one_alone_needs_to_be_told_along_what(self) -> None:
        with pytest.raises(InputError, match="only A was given"):
            compare_entries([side("A", entry({P50: [1.0]}))], Terms())

    def test_nothing_measured_is_nothing_to_compare(self) -> None:
        with pytest.raises(InputError, match="B has no result yet") as caught:
            compare_entries([side("A", entry({P50: [1.0]})), side("B")], Terms())
        assert "prony show ID" in caught.value.hint


DISTURBED = Verdict(
    grade=Grade.SUSPECT, reasons=(Reason(code="contaminated", text="Others took 12 %.", grade=Grade.SUSPECT),)
)
UNWATCHED = Verdict(grade=Grade.VALID, reasons=(Reason(code="unwatched", text="Nobody watched.", grade=Grade.VALID),))
BUSY_CLIENT = Verdict(
    grade=Grade.SUSPECT, reasons=(Reason(code="client_busy", text="A client was busy.", grade=Grade.SUSPECT),)
)
ERRORS = Verdict(grade=Grade.SUSPECT, reasons=(Reason(code="errors", text="5 % failed.", grade=Grade.SUSPECT),))


class TestDoubt:
    def compared(self, level: float, verdict: Verdict, *, key: str = P50, hours: float = 5) -> Comparison:
        before = entry({key: noisy(10, 10, seed=1)})
        after = entry({key: noisy(level, 10, seed=2)}, experiment="e2", verdict=verdict, hours=hours)
        return compare_entries([side("A", before), side("B", after)], Terms(metrics=(key,)))

    @pytest.mark.parametrize("verdict", [DISTURBED, BUSY_CLIENT])
    @pytest.mark.parametrize(("level", "apparent"), [(11, Conclusion.REGRESSION), (9, Conclusion.IMPROVEMENT)])
    def test_a_change_beside_a_suspect_side_is_inconclusive(
        self, level: float, apparent: Conclusion, verdict: Verdict
    ) -> None:
        found = self.compared(level, verdict)
        (one,) = found.headlines
        assert (found.conclusion, one.conclusion, one.apparent) == (*[Conclusion.INCONCLUSIVE] * 2, apparent)
        assert "so it is inconclusive: the candidate is suspect. " in one.sentence
        assert "got" not in one.sentence
        assert "prony duet" in one.doubt
        assert not found.fails(apparent)
        assert found.fails(Conclusion.INCONCLUSIVE)
        assert found.fails(apparent, doubtful=True)

    def test_a_regression_on_a_machine_that_nobody_watched_is_told_and_fails_no_build(self) -> None:
        found = self.compared(11, UNWATCHED)
        (one,) = found.headlines
        assert (one.conclusion, one.apparent) == (Conclusion.REGRESSION, None)
        assert "alone does not fail the build, because the candidate is unwatched. " in one.sentence
        assert not found.fails(Conclusion.REGRESSION)
        assert found.fails(Conclusion.REGRESSION, doubtful=True)

    def test_an_improvement_needs_nobody_who_watched(self) -> None:
        (one,) = self.compared(9, UNWATCHED).headlines
        assert (one.conclusion, one.doubt) == (Conclusion.IMPROVEMENT, "")

    def test_a_doubled_latency_fails_whatever_happened_to_the_machine(self) -> None:
        assert self.compared(20, DISTURBED).fails(Conclusion.REGRESSION)

    def test_what_the_program_did_itself_is_no_doubt_about_the_machine(self) -> None:
        assert self.compared(11, ERRORS).fails(Conclusion.REGRESSION)

    def test_a_busy_machine_does_not_make_a_program_larger(self) -> None:
        assert self.compared(11, DISTURBED, key="rss_peak_mib.p50").fails(Conclusion.REGRESSION)

    def test_sides_that_took_turns_were_disturbed_alike(self) -> None:
        first = entry({P50: noisy(10, 10, seed=1)}, number=1, cell={"workload.threads": 1}, verdict=DISTURBED)
        second = entry({P50: noisy(11, 10, seed=2)}, number=2, cell={"workload.threads": 2}, verdict=DISTURBED)
        found = compare_entries([side("A", first, second)], Terms(metrics=(P50,), across=("threads",)))
        assert found.matches[0].interleaved
        assert found.fails(Conclusion.REGRESSION)
