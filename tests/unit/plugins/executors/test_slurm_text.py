"""What Slurm prints, in the words of several releases, and whose move each refusal is."""

from __future__ import annotations

import time
from datetime import UTC, datetime

import pytest

from prony.errors import CapacityError, InputError, PronyError, TransportError
from prony.model.target import PlaceEnding, PlacePhase
from prony.plugins.executors.slurm import SlurmOptions, sbatch_options
from prony.plugins.executors.slurm_text import (
    STATES,
    SlurmJob,
    describe_stuck,
    describe_wait,
    explain_refusal,
    is_stuck,
    read_accounts,
    read_queue,
    read_start,
)

# In the format of squeue: another name, an array that waits, a part of a heterogeneous job, and an error between.
QUEUE = """\
12_[4-9%2]|prony-a-1-00000000|PENDING|N/A|N/A|0:00|5:00||Resources
13|prony-b-1-00000000|RUNNING|2026-11-17T19:25:08|2026-11-17T19:30:08|1:00|5:00|n1|None
14+0|prony-c-1-00000000|PENDING|2026-11-17T20:00:00|2026-11-17T20:05:00|0:00|5:00||Priority
9|prony-b-1-00000000|CANCELLED|2026-11-17T18:25:08|2026-11-17T18:25:10|0:02|5:00|n2|None
15|busy|RUNNING|2026-11-17T19:25:08|N/A|1:00|UNLIMITED|n[1-2]|None
slurm_load_jobs error: Socket timed out on send/recv operation
exit 0
"""


def test_the_queue_is_read_by_name_and_the_newest_of_a_name_counts() -> None:
    found = read_queue(QUEUE)
    assert {name: (job.id, job.state, job.nodes) for name, job in found.items()} == {
        "prony-a-1-00000000": ("12_[4-9%2]", "PENDING", ""),
        "prony-b-1-00000000": ("13", "RUNNING", "n1"),
        "prony-c-1-00000000": ("14+0", "PENDING", ""),
        "busy": ("15", "RUNNING", "n[1-2]"),
    }


@pytest.mark.parametrize(
    ("states", "together"),
    [
        (("RUNNING", "RUNNING"), "RUNNING"),
        (("COMPLETED", "COMPLETED"), "COMPLETED"),
        (("FAILED", "NODE_FAIL"), "NODE_FAIL"),
        (("PREEMPTED", "CANCELLED"), "PREEMPTED"),
        (("RUNNING", "NODE_FAIL"), "RUNNING"),  # the first part has not ended yet
    ],
)
@pytest.mark.parametrize("order", [1, -1])
def test_parts_of_a_heterogeneous_job_are_one_job_on_all_their_nodes(
    states: tuple[str, str], together: str, order: int
) -> None:
    lines = [f"7+{part}|prony-a|{state}|N/A|N/A|0:02|5:00|n{part}|None" for part, state in enumerate(states)]
    (job,) = read_queue("\n".join(lines[::order])).values()
    assert (job.id, job.nodes, job.state) == ("7+0", "n0,n1", together)


@pytest.mark.parametrize(
    ("line", "state", "reason"),
    [
        ("7|prony-a|CANCELLED by 1000|2026-11-17T19:25:08|n1|0:15|00:00:00", "CANCELLED", "by 1000"),
        ("7|prony-a|FAILED|2026-11-17T19:25:08|n1|2:0|00:00:00", "FAILED", "exit code 2:0"),
        ("7|prony-a|COMPLETED|2026-11-17T19:25:08|n1|0:0|00:00:00", "COMPLETED", ""),
        ("7|prony-a|OUT_OF_MEMORY|Unknown|n1|0:125|00:00:00", "OUT_OF_MEMORY", ""),
        ("7|prony-a|RUNNING,COMPLETING|2026-11-17T19:25:08|n1|0:0|00:00:00", "COMPLETING", ""),
    ],
)
def test_the_accounts_tell_how_a_job_ended(line: str, state: str, reason: str) -> None:
    job = read_accounts(line)["prony-a"]
    assert (job.state, job.reason) == (state, reason)


@pytest.mark.parametrize(
    ("line", "was_stopped"),
    [
        ("RUNNING|2026-11-17T20:33:25|2026-11-17T20:38:25|0:01|5:00", False),
        ("SUSPENDED|2026-11-17T20:33:25|2026-11-17T20:38:25|0:01|5:00", True),
        ("RUNNING|2026-11-17T20:33:25|2026-11-17T20:38:27|0:02|5:00", True),
        ("COMPLETING|2026-11-17T20:33:25|2026-11-17T20:33:29|0:02|5:00", True),
        ("COMPLETED|2026-11-17T20:33:25|2026-11-17T20:33:29|0:02|5:00", True),
        ("COMPLETED|2026-11-17T20:33:31|2026-11-17T20:33:32|0:01|5:00", False),
        ("COMPLETED|2026-11-16T20:33:31|2026-11-17T20:33:32|1-00:00:01|2-00:00:00", False),
    ],
)
def test_a_job_that_was_suspended_is_known_by_its_times_after_it_went_on(line: str, *, was_stopped: bool) -> None:
    assert read_queue(f"7|prony-a|{line}|n1|None")["prony-a"].was_stopped is was_stopped
    account = f"7|prony-a|COMPLETED|2026-11-17T20:33:25|n1|0:0|{'00:00:02' if was_stopped else '00:00:00'}"
    assert read_accounts(account)["prony-a"].was_stopped is was_stopped


def test_accounts_that_are_disabled_are_no_jobs() -> None:
    assert read_accounts("Slurm accounting storage is disabled\nexit 1\n") == {}


@pytest.mark.parametrize(
    ("reason", "words", "stuck"),
    [
        ("Resources", "no suitable node is free yet (Resources)", False),
        ("(Priority)", "jobs with a higher priority go first (Priority)", False),
        ("JobHeldUser", "its owner holds it (JobHeldUser)", True),
        ("BadConstraints", "no node meets its constraints (BadConstraints)", True),
        ("QOSMaxJobsPerUserLimit", "a limit of the account or the QOS is reached (QOSMaxJobsPerUserLimit)", False),
        ("AssocGrpCPUMinutesLimit", "a limit of the account or the QOS is reached (AssocGrpCPUMinutesLimit)", True),
        (
            "ReqNodeNotAvail, UnavailableNodes:n1",
            "a node that it needs is down, drained or reserved (ReqNodeNotAvail, UnavailableNodes:n1)",
            True,
        ),
        ("SomethingNew", "SomethingNew", False),
        ("None", "", False),
    ],
)
def test_why_a_job_waits_is_said_in_words(reason: str, words: str, stuck: bool) -> None:
    job = SlurmJob("1", "x", "PENDING", reason=reason)
    assert (describe_wait(job), is_stuck(job)) == (words, stuck)


def test_an_expected_start_is_said_in_the_zone_of_who_reads_it(monkeypatch: pytest.MonkeyPatch) -> None:
    job = SlurmJob("1", "x", "PENDING", start="2026-11-17T20:00:00", reason="Priority")
    with monkeypatch.context() as block:
        block.setenv("TZ", "CET-1")
        time.tzset()
        assert describe_wait(job).endswith("(Priority), expected to start at 2026-11-17 21:00:00 CET")
    time.tzset()
    assert describe_wait(SlurmJob("1", "x", "PENDING", start="N/A", reason="Priority")).endswith("(Priority)")


def test_a_start_is_read_as_utc_whatever_the_zone_of_this_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as block:
        block.setenv("TZ", "JST-9")
        time.tzset()
        assert read_start("2026-11-17T20:00:00") == datetime(2026, 11, 17, 20, tzinfo=UTC)
    time.tzset()
    assert read_start("Unknown") is None


@pytest.mark.parametrize(
    ("told", "kind", "words"),
    [
        ("sbatch: error: invalid partition: no\nsbatch: error: Batch job submission failed: Invalid partition "
         "name specified", InputError, "the option partition of the target x"),
        ("sbatch: error: Batch job submission failed: Invalid account or account/partition combination specified",
         InputError, "the option account"),
        ("sbatch: error: Batch job submission failed: Invalid generic resource (gres) specification", InputError,
         "the option gres"),
        ("sbatch: error: Batch job submission failed: Requested time limit is invalid (missing or exceeds some limit)",
         InputError, "the option minutes"),
        ("sbatch: error: Batch job submission failed: Requested node configuration is not available", CapacityError,
         "no room"),
        ("sbatch: error: Batch job submission failed: Job violates accounting/QOS policy (job submit limit, user's "
         "size and/or time limits)", CapacityError, "no room"),
        ("sbatch: error: Batch job submission failed: Unable to contact slurm controller (connect failure)",
         TransportError, "does not answer"),
        ("slurm_load_jobs error: Socket timed out on send/recv operation", TransportError, "does not answer"),
        ("sbatch: error: Batch job submission failed: Something new", InputError, "sbatch rejects it: Batch job"),
    ],
)  # fmt: skip
def test_a_refusal_says_whose_move_it_is(told: str, kind: type[PronyError], words: str) -> None:
    error = explain_refusal(told, "x")
    assert type(error) is kind
    assert words in error.message


def test_every_state_of_slurm_has_a_phase_and_every_end_an_ending() -> None:
    ended = {state for state, (phase, _) in STATES.items() if phase is PlacePhase.ENDED}
    assert {state for state, (_, ending) in STATES.items() if ending is not None} == ended
    elsewhere = {state for state, (_, ending) in STATES.items() if ending in (PlaceEnding.NODE, PlaceEnding.PREEMPTED)}
    assert elsewhere == {"NODE_FAIL", "BOOT_FAIL", "LAUNCH_FAILED", "RECONFIG_FAIL", "PREEMPTED"}
    assert STATES["TIMEOUT"][1] is PlaceEnding.TIME


def test_a_submission_asks_for_whole_nodes_and_is_told_in_time_that_it_ends() -> None:
    words = sbatch_options(SlurmOptions(partition="gpu", gres="gpu:1", minutes=30), "prony-a", ["n1", "n[3-4]"])
    assert {"--exclusive", "--mem=0", "--no-requeue", "--time=30", "--signal=B:TERM@180", "--job-name=prony-a"} < {
        *words
    }
    assert {"--partition=gpu", "--gres=gpu:1", "--exclude=n1,n[3-4]"} < {*words}
    assert "--signal=B:TERM@20" in sbatch_options(SlurmOptions(minutes=1), "prony-a")
    assert "--exclusive" not in sbatch_options(SlurmOptions(exclusive=False), "prony-a")


@pytest.mark.parametrize(
    ("reason", "told"),
    [
        ("JobHeldUser", "its owner holds it (JobHeldUser); to release it: scontrol release 1"),
        (
            "BadConstraints",
            "no node meets its constraints (BadConstraints); cancel it and correct the target's options",
        ),
        ("PartitionDown", "the partition is down (PartitionDown)"),
    ],
)
def test_only_what_is_held_can_be_released(reason: str, told: str) -> None:
    assert describe_stuck(SlurmJob("1", "x", "PENDING", reason=reason)) == told
