"""Run payloads as jobs of Slurm: on its login node itself, or through ssh."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Annotated, ClassVar

from pydantic import AfterValidator, Field

from prony.errors import TransportError
from prony.model.target import CheckLine, Handle, Observation, Payload, PlaceEnding, PlacePhase, Target
from prony.plugins.executors.folders import FolderOptions, FolderStatus, RemoteFolders, check_installed
from prony.plugins.executors.shell import Shell, SshShell
from prony.plugins.executors.slurm_text import (
    ACCOUNT_FIELDS,
    QUEUE_FORMAT,
    SlurmJob,
    describe_stuck,
    describe_wait,
    explain_refusal,
    is_stuck,
    read_accounts,
    read_queue,
    read_start,
)
from prony.ports.executor import BuildPackages, ExecutorSite

_REFUSED = 5
_FIRST_ASK_S, _MOST_WAITING_S, _RUNNING_S, _ACCOUNT_S = 2.0, 60.0, 10.0, 60.0
_GROWTH = 2.0
_ABSENT_S = 300.0
_LAST_WORD_S = 30.0  # how long a runner that was stopped may be cleaned up after, before Slurm says why it was
_UNKNOWN_MINUTES, _LEAST_MINUTES, _WALL_FACTOR, _WALL_MORE_MINUTES = 60, 10, 1.5, 5
_NOTICE_S = 180  # how long before the limit the runner is told to keep what it has
# What a target's owner may add: nothing that runs a program, becomes another user or moves the job's files.
_NATIVE = re.compile(
    r"--(reservation|licenses|nodelist|exclude|exclude-user|cpus-per-task|gpus|gpus-per-node|gpu-freq|cpu-freq|mem|"
    r"mem-per-cpu|tmp|switches|time-min|deadline|begin|nice|distribution|cores-per-socket|threads-per-core|hint|"
    r"sockets-per-node|contiguous|core-spec|spread-job|use-min-nodes|wckey|cluster-constraint|prefer)(=[^\s;&|<>$`]+)?"
)

_BATCH = r"""#!/bin/sh
{setup}PRONY_HOME="$1" exec "$2" -P -m prony exec --folder .
"""
# One task a node, with all of the node: what a task may use is not narrowed to one core. A node that fails is noticed
# by the others, which end by themselves and keep what was measured.
_BATCH_ON_NODES = r"""#!/bin/sh
{setup}export PRONY_HOME="$1"
exec srun {groups}--export=ALL --whole --cpu-bind=none --mpi=none --kill-on-bad-exit=0 --wait=0 --input=none \
  sh -c 'exec "$1" -P -m prony exec --folder . --part "$SLURM_PROCID/$SLURM_NTASKS"' sh "$2"
"""
# Variables of the caller change a submission in silence; where the configuration lies is not such a one.
_CLEAN = r"""
for one in $(env | sed -n -e 's/^\(SBATCH_[A-Za-z0-9_]*\)=.*/\1/p' -e 's/^\(SLURM_[A-Za-z0-9_]*\)=.*/\1/p'); do
  [ "$one" = SLURM_CONF ] || unset "$one"
done
as_words() { IFS='
'; set -f; set -- $options; set +f; unset IFS; "$command" "$@"; }
"""
# By its name first: a submission whose answer was lost may have been heard. Nothing was ever submitted from a folder
# that has just been made, so that its queue need not be asked: many submissions are no many questions.
_SUBMIT = (
    _CLEAN
    + r"""
if [ -f DONE ] || [ -d begun ]; then cat jobid 2>/dev/null || echo; exit 0; fi
known() { timeout 15 squeue --user="$(id -un)" --noheader --states=all --name="$key" --format=%i; }
: >found
[ -n "$is_new" ] || known >found 2>err || { cat err >&2; exit 5; }
id=$(tail -n 1 found)
if [ -z "$id" ] && [ -f jobid ]; then id=$(cat jobid); fi
if [ -z "$id" ]; then
  runs=$(find_python) || { cd ..; rm -rf "$key" "$key.lock"; echo no-prony; exit 0; }
  submit() { timeout 60 sbatch "$@" ./batch.sh "$prefix/home" "$runs"; }
  command=submit
  if ! as_words >found 2>err; then cat err >&2; cd ..; rm -rf "$key" "$key.lock"; exit 5; fi
  id=$(cut -d';' -f1 found)
fi
echo "$id" > jobid.new && mv jobid.new jobid
echo "$id"
"""
)
# Times come as UTC and as ISO 8601, whatever the zone of the cluster and the settings of its user.
_QUEUE = (
    r"""TZ=UTC SLURM_TIME_FORMAT=standard timeout 15 squeue --user="$(id -un)" --noheader --states=all --format='"""
    + QUEUE_FORMAT
    + """' 2>&1; echo "exit $?" """
)
_ACCOUNTS = (
    r"""TZ=UTC SLURM_TIME_FORMAT=standard timeout 15 sacct -X -P -n -D -S "$since" --name="$names" -o """
    + ACCOUNT_FIELDS
    + """ 2>&1; echo "exit $?" """
)
_CANCEL = r"""
for key in $keys; do timeout 15 scancel --quiet --user="$(id -un)" --name="$key" 2>/dev/null; done
n=0
left() { timeout 15 squeue --user="$(id -un)" --noheader --name="$names" --format=%i 2>/dev/null; }
while [ "$n" -lt 150 ] && [ -n "$(left)" ]; do sleep 0.2; n=$((n + 1)); done
exit 0
"""
_CHECK = r"""
if command -v sbatch >/dev/null; then
  say slurm ok "$(sbatch --version)"
  if told=$(timeout 15 sinfo -h -o '%P %a %D nodes, %l, %G' 2>&1); then
    printf '%s\n' "$told" | while read -r line; do say partition ok "$line"; done
  else say partitions failed "sinfo: $(printf '%s' "$told" | tail -n 1)"; fi
  command=tried
  tried() { timeout 30 sbatch --test-only "$@" --wrap=true 2>&1; }
  if told=$(as_words); then say submission ok "$(printf '%s' "$told" | tail -n 1)"
  else say submission failed "$(printf '%s' "$told" | tail -n 1)"; fi
else say slurm failed "sbatch not found on PATH"; fi
"""


def _check_native(options: tuple[str, ...]) -> tuple[str, ...]:
    for option in options:
        if _NATIVE.fullmatch(option) is None:
            raise ValueError(f"a target must not set the option {option}")
    return options


Word = Annotated[str, Field(pattern=r"^[^\s;&|<>$`'\"]*$")]


class SlurmOptions(FolderOptions):
    """Of a cluster with Slurm. The prefix must be a folder that login and compute nodes share."""

    ssh: str = Field(default="", description="the login node; default: this machine")
    ssh_options: tuple[str, ...] = Field(default=(), description="options for every ssh, one word each")
    partition: Word = Field(default="", description="the partition; default: the cluster's default")
    account: Word = Field(default="", description="the account to charge")
    qos: Word = Field(default="", description="the quality of service")
    constraint: Word = Field(default="", description="features that a node must have")
    gres: Word = Field(default="", description="generic resources, for example gpu:1")
    minutes: int | None = Field(
        default=None,
        ge=1,
        description="wall time in minutes; default: 1.5 times the expected time of the run plus 5 minutes, at "
        "least 10, or 60 if unknown. Results up to then are kept",
    )
    exclusive: bool = Field(
        default=True, description="request whole nodes, because other jobs on a node disturb the measurement"
    )
    native: Annotated[tuple[str, ...], AfterValidator(_check_native)] = Field(
        default=(), description="further options of sbatch, for example --reservation=x; only harmless ones"
    )
    files_late_s: int = Field(default=60, ge=0, description="seconds until files of a node appear on the login node")


def wall_minutes(options: SlurmOptions, expected_s: float | None) -> int:
    """Return the wall time to ask for: what the target's owner or the recipe says, or what is expected and more."""
    if options.minutes is not None:
        return options.minutes
    if expected_s is None:
        return _UNKNOWN_MINUTES
    return max(_LEAST_MINUTES, math.ceil(expected_s * _WALL_FACTOR / 60) + _WALL_MORE_MINUTES)


def sbatch_options(
    options: SlurmOptions,
    payload_key: str,
    avoid: Sequence[str] = (),
    *,
    expected_s: float | None = None,
    nodes: int = 1,
) -> list[str]:
    """Return the options of a submission, one word each."""
    minutes = wall_minutes(options, expected_s)
    notice = min(_NOTICE_S, minutes * 60 // 3)
    heard_by = "B:" if nodes == 1 else ""  # the batch shell, which is the runner, or the tasks of all nodes
    words = [
        f"--job-name={payload_key}", f"--comment={payload_key}", "--output=slurm.out", "--open-mode=append",
        "--parsable", "--no-requeue", f"--time={minutes}", f"--signal={heard_by}TERM@{notice}",
        "--export=HOME,USER,LOGNAME,PATH,SLURM_CONF",
    ]  # fmt: skip
    return [*words, *_node_options(options, nodes, avoid)]


def _node_options(options: SlurmOptions, nodes: int, avoid: Sequence[str]) -> list[str]:
    """Return what a submission says of its nodes."""
    words = [f"--nodes={nodes}", "--ntasks-per-node=1", *(["--exclusive", "--mem=0"] if options.exclusive else [])]
    for name in ("partition", "account", "qos", "constraint", "gres"):
        value = getattr(options, name)
        words += [f"--{name}={value}"] if value else []
    words += [f"--exclude={','.join(avoid)}"] if avoid else []
    return [*words, *options.native]


def submission_options(options: SlurmOptions, payload: Payload) -> list[str]:
    """Return the options of a payload's submission. Nodes of two targets make one heterogeneous job: a part of each,
    started together or not at all."""
    if payload.others is None:
        return sbatch_options(options, payload.key, payload.avoid, expected_s=payload.expected_s, nodes=payload.nodes)
    others = SlurmOptions.model_validate(payload.others.options)
    minutes = max(wall_minutes(options, payload.expected_s), wall_minutes(others, payload.expected_s))
    # What is said of the whole job by its options is said by the first part alone, but what a script gets.
    whole = sbatch_options(options, payload.key, expected_s=payload.expected_s, nodes=payload.nodes)
    common = [word for word in whole if word not in _node_options(options, payload.nodes, ())]
    common = [f"--time={minutes}" if word.startswith("--time=") else word for word in common]
    first = [*common, *_node_options(options, 1, payload.avoid)]
    second = [word for word in common if word != "--parsable"]
    return [*first, ":", *second, *_node_options(others, payload.nodes - 1, payload.avoid)]


def _keep_nodes(job: SlurmJob, before: SlurmJob | None) -> SlurmJob:
    """Return a job that gives its nodes back with those that it had."""
    if not job.is_leaving:
        return job
    return replace(job, nodes="" if before is None else before.nodes)


def _describe_end(job: SlurmJob) -> str:
    node = f" on {job.nodes}" if job.nodes else ""
    more = f" {job.reason}" if job.reason.startswith(("by ", "exit ")) else ""
    return f"Slurm says {job.state}{more}{node}"


class SlurmExecutor:
    """Speaks to Slurm by its commands' plain text, and asks seldom: one squeue for all jobs, sacct for the absent."""

    Options: ClassVar[type[SlurmOptions]] = SlurmOptions
    joins_nodes: ClassVar[bool] = True

    def __init__(self, target: Target, site: ExecutorSite) -> None:
        options = SlurmOptions.model_validate(target.options)
        shell = SshShell(options.ssh, site.folder, options.setup, options.ssh_options) if options.ssh else None
        self._folders = RemoteFolders(shell or Shell(options.setup), options)
        self._options = options
        self._name = target.name
        self._clock = site.clock
        self._jobs: dict[str, SlurmJob] = {}
        self._asked_s = self._accounted_s = float("-inf")
        self._pause_s = _FIRST_ASK_S
        self._since: dict[tuple[str, str], float] = {}
        self._settled: set[str] = set()

    def check(self) -> list[CheckLine]:
        """Look at the machine and at the cluster, and have Slurm judge a submission that it does not keep."""
        words = [word for word in sbatch_options(self._options, "prony-check") if word != "--parsable"]
        return self._folders.check(_CLEAN + _CHECK, options="\n".join(words))

    def submit(self, payload: Payload) -> Handle:
        """Send it and submit it, unless the queue or its folder knows it.

        Raises:
            InputError: Slurm refuses an option.
            CapacityError: no node can run it, or there are too many jobs.
            TransportError: the controller does not answer.
        """
        setup = "".join(f"{line}\n" for line in self._options.setup)
        options = "\n".join(submission_options(self._options, payload))
        batch = _BATCH if payload.nodes == 1 else _BATCH_ON_NODES
        groups = "--het-group=0,1 " if payload.others is not None else ""
        files = {"batch.sh": batch.replace("{setup}", setup).replace("{groups}", groups)}
        done = self._folders.send(payload, files, _SUBMIT, options=options)
        if done.exit_code == _REFUSED:
            raise explain_refusal(done.stderr, self._name)
        told = done.require("sbatch")
        check_installed(told, self._folders.shell)
        # What waits longer is not asked about at once because of one more.
        self._asked_s, self._pause_s = self._now_s(), min(self._pause_s, _RUNNING_S)
        return Handle(
            key=payload.key,
            native_id=told.decode().strip(),
            submitted_at=self._clock.now(),
            wall_minutes=wall_minutes(self._options, payload.expected_s),
        )

    def look(self, handles: Sequence[Handle], offsets: Mapping[str, int]) -> list[Observation]:
        """Look into all folders, and ask the queue where it is time to, and once more of each that ended."""
        is_due = self._now_s() - self._asked_s >= self._pause_s
        asked = {handle.key: offsets.get(handle.key, 0) for handle in handles}
        told, found = self._folders.look_after(_QUEUE if is_due else "", asked)
        if not is_due and any(self._lacks_last_word(key, status) for key, status in found.items()):
            is_due, told = True, self._folders.run(_QUEUE).decode(errors="replace")
        if is_due:
            self._asked_s = self._now_s()
            self._take_queue(told)
            self._ask_accounts([one for one in handles if one.key not in self._settled])
            self._settle(found)
        seen = [self._observe(handle, found[handle.key]) for handle in handles]
        waits = all(one.phase in (PlacePhase.QUEUED, PlacePhase.HELD) for one in seen)
        if is_due:
            self._pause_s = min(self._pause_s * _GROWTH, _MOST_WAITING_S if waits else _RUNNING_S)
        return seen

    def fetch(self, handle: Handle, into: Path) -> bool:
        """Bring the results; True where the runner came to its end."""
        return self._folders.fetch(handle.key, into) is not None

    def end(self, handles: Sequence[Handle]) -> None:
        """Cancel what waits or runs, and remove what was fetched or holds nothing."""
        keys = [handle.key for handle in handles]
        self._folders.run(_CANCEL, keys=" ".join(keys), names=",".join(keys), timeout_s=120)
        self._folders.remove(keys)

    def install(self, release: str, extras: Sequence[str], build: BuildPackages) -> str:
        """Put a release of Prony into the shared prefix, unless it is there."""
        return self._folders.install(release, extras, build)

    def _lacks_last_word(self, key: str, status: FolderStatus) -> bool:
        """Has it ended since the queue was asked? Slurm knows whether it was suspended or had to make room."""
        if not status.has("DONE") or key in self._settled:
            return False
        is_first = (key, "last word") not in self._since
        return is_first or self._now_s() - self._asked_s >= _FIRST_ASK_S

    def _settle(self, found: Mapping[str, FolderStatus]) -> None:
        """Note of which ended runs Slurm has said all: its nodes, and of a stopped one, how its job ended too."""
        for key, status in found.items():
            job = self._jobs.get(key)
            says_more = status.has("stopped") or (job is not None and job.is_leaving and not job.nodes)
            is_final = job is None or job.phase is PlacePhase.ENDED or not says_more
            if status.has("DONE") and (self._waited_s(key, "last word") >= _LAST_WORD_S or is_final):
                self._settled.add(key)

    def _take_queue(self, told: str) -> None:
        if not told.rstrip().endswith("exit 0"):
            lines = told.strip().splitlines() or ["no answer"]
            raise TransportError(
                f"squeue at {self._name}: {lines[-2] if len(lines) > 1 else lines[0]}",
                hint=f"Prony tries again; prony targets check {self._name} says more",
            )
        before = self._jobs
        self._jobs = {name: _keep_nodes(job, before.get(name)) for name, job in read_queue(told).items()}

    def _ask_accounts(self, handles: Sequence[Handle]) -> None:
        """Ask sacct for those whom the queue has forgotten, once a minute at most; it may not be there."""
        absent = [handle for handle in handles if handle.key not in self._jobs]
        if not absent or self._now_s() - self._accounted_s < _ACCOUNT_S:
            return
        self._accounted_s = self._now_s()
        oldest = min((one.submitted_at for one in absent if one.submitted_at), default=self._clock.now())
        since = f"{(oldest - timedelta(days=1)).date().isoformat()}"
        told = self._folders.run(_ACCOUNTS, since=since, names=",".join(one.key for one in absent)).decode()
        if told.rstrip().endswith("exit 0"):
            self._jobs |= read_accounts(told)

    def _observe(self, handle: Handle, status: FolderStatus) -> Observation:
        job = self._jobs.get(handle.key)
        phase, ending, reason = self._judge(handle.key, status, job)
        if ending in (PlaceEnding.KILLED, PlaceEnding.UNSTARTED):
            reason = f"{reason}: {self._folders.tail_log(handle.key)}".rstrip(": ")
        return Observation(
            key=handle.key,
            phase=phase,
            ending=ending,
            reason=reason,
            state=job.state if job else "",
            native_id=job.id if job else handle.native_id,
            nodes=(job.nodes,) if job and job.nodes and job.nodes != "None assigned" else (),
            started_at=read_start(job.start) if job and phase is PlacePhase.RUNNING else None,
            is_suspect=job is not None and job.was_stopped,
            events=status.events,
            offset=status.offset,
        )

    def _judge(
        self, key: str, status: FolderStatus, job: SlurmJob | None
    ) -> tuple[PlacePhase, PlaceEnding | None, str]:
        """Return phase, ending and reason. The folder is the first witness, whatever Slurm says."""
        if status.has("DONE"):
            return self._judge_done(key, status, job)
        if job is None:
            return self._judge_absent(key, status)
        phase, ending = job.phase, job.ending
        if phase is PlacePhase.ENDED:
            return self._judge_ended(key, status, job, ending)
        if status.has("begun") and phase in (PlacePhase.QUEUED, PlacePhase.STARTING):
            return PlacePhase.RUNNING, None, ""  # the queue was asked before it began
        if phase is PlacePhase.HELD or is_stuck(job):
            return PlacePhase.HELD, None, describe_stuck(job)
        return phase, None, describe_wait(job) if phase is PlacePhase.QUEUED else ""

    def _judge_done(
        self, key: str, status: FolderStatus, job: SlurmJob | None
    ) -> tuple[PlacePhase, PlaceEnding | None, str]:
        """Tell a runner that came to its end from one that was stopped because its node was taken away."""
        if key not in self._settled:
            return PlacePhase.ENDING, None, ""
        if job is None or not status.has("stopped"):
            return PlacePhase.ENDED, PlaceEnding.DONE, ""
        is_taken = job.ending in (PlaceEnding.NODE, PlaceEnding.PREEMPTED)
        return PlacePhase.ENDED, job.ending if is_taken else PlaceEnding.DONE, _describe_end(job)

    def _judge_absent(self, key: str, status: FolderStatus) -> tuple[PlacePhase, PlaceEnding | None, str]:
        if self._waited_s(key, "absent") < _ABSENT_S:
            return (PlacePhase.RUNNING if status.has("begun") else PlacePhase.QUEUED), None, ""
        if status.has("result"):
            return PlacePhase.ENDED, PlaceEnding.KILLED, "Slurm does not know it any more, and it did not end normally"
        return PlacePhase.LOST, None, "it is neither in the queue nor in its folder"

    def _judge_ended(
        self, key: str, status: FolderStatus, job: SlurmJob, ending: PlaceEnding | None
    ) -> tuple[PlacePhase, PlaceEnding | None, str]:
        """Wait a while for files that a shared folder shows late, where there may be some."""
        has_files = bool(job.nodes) and ending is not PlaceEnding.NODE
        if has_files and self._waited_s(key, job.state) < self._options.files_late_s:
            return PlacePhase.ENDING, None, ""
        if ending in (PlaceEnding.DONE, PlaceEnding.KILLED):
            ending = PlaceEnding.KILLED if status.has("begun") else PlaceEnding.UNSTARTED
        return PlacePhase.ENDED, ending, _describe_end(job)

    def _waited_s(self, key: str, what: str) -> float:
        """Return for how long this was seen of it."""
        return self._now_s() - self._since.setdefault((key, what), self._now_s())

    def _now_s(self) -> float:
        return self._clock.monotonic_ns() / 1e9
