"""Read what Slurm's commands print, and say in whose words a job waits or ended."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta

from prony.errors import CapacityError, InputError, PronyError, TransportError
from prony.model.target import PlaceEnding, PlacePhase

QUEUE_FORMAT = "%i|%j|%T|%S|%e|%M|%l|%N|%r"
ACCOUNT_FIELDS = "JobID,JobName,State,Start,NodeList,ExitCode,Suspended"

_Q, _S, _R, _E, _H = PlacePhase.QUEUED, PlacePhase.STARTING, PlacePhase.RUNNING, PlacePhase.ENDED, PlacePhase.HELD
# What each state of a job means. COMPLETING is neither ended nor free, and may precede a requeue.
STATES: dict[str, tuple[PlacePhase, PlaceEnding | None]] = {
    "PENDING": (_Q, None),
    "CONFIGURING": (_S, None),
    "POWER_UP_NODE": (_S, None),
    "REQUEUED": (_Q, None),
    "REQUEUE_FED": (_Q, None),
    "EXPEDITING": (_Q, None),
    "REQUEUE_HOLD": (_H, None),
    "SPECIAL_EXIT": (_H, None),
    "RESV_DEL_HOLD": (_H, None),
    "RUNNING": (_R, None),
    "RESIZING": (_R, None),
    "SIGNALING": (_R, None),
    "STAGE_OUT": (_R, None),
    "SUSPENDED": (_R, None),
    "STOPPED": (_R, None),
    "COMPLETING": (PlacePhase.ENDING, None),
    "COMPLETED": (_E, PlaceEnding.DONE),
    "FAILED": (_E, PlaceEnding.KILLED),
    "TIMEOUT": (_E, PlaceEnding.TIME),
    "DEADLINE": (_E, PlaceEnding.TIME),
    "OUT_OF_MEMORY": (_E, PlaceEnding.MEMORY),
    "NODE_FAIL": (_E, PlaceEnding.NODE),
    "BOOT_FAIL": (_E, PlaceEnding.NODE),
    "LAUNCH_FAILED": (_E, PlaceEnding.NODE),
    "RECONFIG_FAIL": (_E, PlaceEnding.NODE),
    # Submitted with --no-requeue; and where a site requeues all the same, the folder is run once.
    "PREEMPTED": (_E, PlaceEnding.PREEMPTED),
    "CANCELLED": (_E, PlaceEnding.CANCELLED),
    "REVOKED": (_E, PlaceEnding.CANCELLED),
}
# The clock ran while the job did not.
_STOPPED_STATES = frozenset({"SUSPENDED", "STOPPED"})

_WORDS = {
    "Resources": "no suitable node is free yet",
    "Priority": "jobs with a higher priority go first",
    "Dependency": "a job that it depends on has not ended",
    "BeginTime": "its start time has not come yet",
    "Licenses": "a license is not free",
    "Prolog": "a node is being prepared",
    "ReqNodeNotAvail": "a node that it needs is down, drained or reserved",
    "Reservation": "its reservation has not begun",
    "PartitionTimeLimit": "it requests more time than the partition allows",
    "PartitionNodeLimit": "it requests more nodes than the partition has",
    "PartitionDown": "the partition is down",
    "PartitionInactive": "the partition is inactive",
    "BadConstraints": "no node meets its constraints",
    "InvalidAccount": "the account is not valid",
    "InvalidQOS": "the QOS is not valid",
    "AccountNotAllowed": "the partition does not allow the account",
    "DependencyNeverSatisfied": "a job that it depends on failed",
    "JobHeldAdmin": "an administrator holds it",
    "JobHeldUser": "its owner holds it",
    "launch failed requeued held": "its start failed on a node",
}
# None of these ends by waiting.
_STUCK = re.compile(
    r"BadConstraints|Invalid(Account|QOS)|Partition(Down|Inactive|TimeLimit|NodeLimit)|AccountNotAllowed"
    r"|DependencyNeverSatisfied|JobHeld|ReqNodeNotAvail|AssocGrp\w*Minutes|launch failed"
)
# These end when it asks for something else.
_WRONG_OPTIONS = re.compile(r"BadConstraints|Invalid(Account|QOS)|Partition(TimeLimit|NodeLimit)|AccountNotAllowed")
_LIMITS = re.compile(r"^(Assoc|QOS)(Max|Grp)")

_REFUSALS: tuple[tuple[str, str], ...] = (
    ("Invalid partition name specified", "partition"),
    ("Invalid account or account/partition combination specified", "account"),
    ("Invalid qos specification", "qos"),
    ("Invalid feature specification", "constraint"),
    ("Invalid generic resource (gres) specification", "gres"),
    ("Requested time limit is invalid", "minutes"),
)
_NO_ROOM = (
    "Requested node configuration is not available",
    "Requested partition configuration not available now",
    "Job violates accounting/QOS policy",
    "MaxJobCount limit reached",
    "More processors requested than permitted",
)


@dataclass(frozen=True)
class SlurmJob:
    """One line of squeue or sacct."""

    id: str
    name: str
    state: str
    start: str = ""
    nodes: str = ""
    reason: str = ""
    was_suspended: bool = False
    is_leaving: bool = False  # COMPLETING: of its nodes, Slurm names only those that are not free yet

    @property
    def phase(self) -> PlacePhase:
        return STATES.get(self.state, (_R, None))[0]

    @property
    def ending(self) -> PlaceEnding | None:
        return STATES.get(self.state, (_R, None))[1]

    @property
    def was_stopped(self) -> bool:
        """Did its clock run while it did not, now or before?"""
        return self.state in _STOPPED_STATES or self.was_suspended


def read_queue(text: str) -> dict[str, SlurmJob]:
    """Return the jobs that squeue printed, by name; of several of a name the newest."""
    found: dict[str, SlurmJob] = {}
    for line in text.splitlines():
        cells = line.strip().split("|", 8)
        if len(cells) == 9 and re.match(r"\d", cells[0]):
            number, name, states, start, end, used, limit, nodes, reason = cells
            state = _state_of(states)[0]
            job = SlurmJob(number, name, state, start, nodes, reason, is_leaving=state == "COMPLETING")
            # While it runs, its end is moved by as much as it was suspended; then that is not part of what it used.
            has_ended = job.phase in (_E, PlacePhase.ENDING)
            _add(found, replace(job, was_suspended=_lasts_longer(start, end, used if has_ended else limit)))
    return found


def _lasts_longer(start: str, end: str, duration: str) -> bool:
    """Are two instants further apart than `[D-][HH:]MM:SS`? No, where one of the three is a word, as in UNLIMITED."""
    matched = re.fullmatch(r"(?:(\d+)-)?(?:(\d+):)?(\d+):(\d+)", duration.strip())
    if matched is None:
        return False
    days, hours, minutes, seconds = (int(part or 0) for part in matched.groups())
    try:
        span = datetime.fromisoformat(end) - datetime.fromisoformat(start)
    except ValueError:
        return False
    return span > timedelta(days=days, hours=hours, minutes=minutes, seconds=seconds)


def read_accounts(text: str) -> dict[str, SlurmJob]:
    """Return the jobs that sacct printed, by name; who cancelled one is part of its state."""
    found: dict[str, SlurmJob] = {}
    for line in text.splitlines():
        cells = line.strip().split("|")
        if len(cells) >= 7 and re.match(r"\d", cells[0]):
            state, more = _state_of(cells[2])
            reason = f"exit code {cells[5]}" if state == "FAILED" else more
            stopped = re.search(r"[1-9]", cells[6]) is not None  # of 00:00:00
            _add(found, SlurmJob(cells[0], cells[1], state, cells[3], cells[4], reason, was_suspended=stopped))
    return found


def _add(found: dict[str, SlurmJob], job: SlurmJob) -> None:
    before = found.get(job.name)
    if before is not None and "+" in job.id and _number(before.id) == _number(job.id):
        found[job.name] = _join_parts(before, job)
        return
    if before is None or _rank(job) >= _rank(before):
        found[job.name] = job


def _join_parts(one: SlurmJob, other: SlurmJob) -> SlurmJob:
    """Return a heterogeneous job as its first part has it, which runs the batch script, with the nodes of all parts.

    A part whose node failed or that made room for another ends the others: why it ended is the reason of all."""
    first, second = sorted((one, other), key=lambda job: int(job.id.partition("+")[2] or 0))
    nodes = [job.nodes for job in (first, second) if job.nodes and job.nodes != "None assigned"]
    taken = next((job for job in (first, second) if job.ending in (PlaceEnding.NODE, PlaceEnding.PREEMPTED)), first)
    stopped = first.was_suspended or second.was_suspended
    joined = taken if first.phase is _E else first
    leaving = first.is_leaving or second.is_leaving
    return replace(joined, id=first.id, nodes=",".join(nodes), was_suspended=stopped, is_leaving=leaving)


def _rank(job: SlurmJob) -> tuple[bool, int]:
    """Of several jobs of a name one that lives counts, and else the newest."""
    return job.phase is not _E, _number(job.id)


def _number(job_id: str) -> int:
    return int(re.match(r"\d+", job_id)[0]) if re.match(r"\d+", job_id) else 0  # type: ignore[index]


def _state_of(text: str) -> tuple[str, str]:
    """Return one state of what may be several flags, and what stands behind it: `CANCELLED by 1000`."""
    word, _, more = text.strip().partition(" ")
    flags = [flag for flag in re.split(r"[,+]", word) if flag]
    # A job that is being cleaned up after is not free yet, whatever else it is.
    chosen = "COMPLETING" if "COMPLETING" in flags and len(flags) > 1 else flags[0] if flags else ""
    return chosen, more


def describe_wait(job: SlurmJob) -> str:
    """Say in words why a job waits, with the scheduler's own word, and when it starts in the time zone of this machine
    where the scheduler expects one."""
    word = job.reason.strip("() ")
    if word in ("", "None"):
        return ""
    plain = next((text for name, text in _WORDS.items() if word.startswith(name)), "")
    if not plain and _LIMITS.match(word):
        plain = "a limit of the account or the QOS is reached"
    start = read_start(job.start)
    expected = f", expected to start at {start.astimezone():%Y-%m-%d %H:%M:%S %Z}" if start else ""
    return f"{plain} ({word}){expected}" if plain else f"{word}{expected}"


def is_stuck(job: SlurmJob) -> bool:
    """Does it wait for something that a person must do?"""
    return job.state == "PENDING" and _STUCK.search(job.reason) is not None


def describe_stuck(job: SlurmJob) -> str:
    """Say why a job does not start by itself, and what a person can do about it."""
    why = describe_wait(job) or job.state
    if job.phase is PlacePhase.HELD or "held" in job.reason.lower():
        return f"{why}; to release it: scontrol release {job.id}"
    if _WRONG_OPTIONS.search(job.reason):
        return f"{why}; cancel it and correct the target's options"
    return why


def read_start(text: str) -> datetime | None:
    """Return when it started, or is expected to; Slurm's commands are asked for UTC. None for a word, as in N/A."""
    try:
        return datetime.fromisoformat(text).replace(tzinfo=UTC)
    except ValueError:
        return None


def explain_refusal(told: str, target: str) -> PronyError:
    """Turn what sbatch printed into whose move it is."""
    line = next((line for line in reversed(told.splitlines()) if "error:" in line), told.strip()[-300:])
    text = line.removeprefix("sbatch: ").removeprefix("error: ").strip()
    for words, option in _REFUSALS:
        if words in told:
            return InputError(
                f"Slurm rejects the option {option} of the target {target}: {text}",
                hint=f"prony targets check {target} shows what is available; a recipe can select it with place.queue",
                code="slurm_option",
            )
    if any(words in told for words in _NO_ROOM):
        hint = "request less, or wait until you have fewer jobs there"
        return CapacityError(f"Slurm has no room for it: {text}", hint=hint, code="slurm_full")
    if re.search(r"Unable to contact slurm controller|Socket timed out|Zero Bytes were transmitted", told):
        return TransportError(f"Slurm's controller does not answer: {text}", hint="Prony tries again")
    return InputError(f"sbatch rejects it: {text}", hint=f"run prony targets check {target}", code="slurm_refused")
