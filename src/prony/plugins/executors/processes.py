"""Run payloads as processes that outlive the connection: on this machine, or on one that ssh reaches."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import ClassVar

from pydantic import Field

from prony.model.target import CheckLine, Handle, Observation, Payload, PlaceEnding, PlacePhase, Target
from prony.plugins.executors.folders import FolderOptions, FolderStatus, RemoteFolders, check_installed
from prony.plugins.executors.shell import Shell, SshShell
from prony.ports.executor import BuildPackages, ExecutorSite

_GRACE_S = 10
# The pid is this shell's, and after exec the runner's. Whoever else measures on the machine holds the same lock.
_LAUNCH = r"""#!/bin/sh
began=$(sed -e 's/.*) //' "/proc/$$/stat" 2>/dev/null | awk '{print $20}')
echo "$$ ${began:-0} $(cat /proc/sys/kernel/random/boot_id 2>/dev/null || echo none)" > new.$$
mv new.$$ pid.$$
PRONY_HOME="$1" exec "$2" -P -m prony exec --folder . --lock "$3"
"""
_START = r"""
if [ ! -f DONE ] && [ ! -d begun ] && ! alive .; then
  command -v setsid >/dev/null && own=setsid || own=nohup
  runs=$(find_python) || { cd ..; rm -rf "$key" "$key.lock"; echo no-prony; exit 0; }
  $own /bin/sh launch "$prefix/home" "$runs" "$lock" </dev/null >out.log 2>&1 9>&- &
fi
"""
# First politely, so that what was measured is kept; then the whole session.
_STOP = r"""
cd "$prefix/runs" 2>/dev/null || exit 0
for key in $keys; do alive "$key" && kill -TERM "$pid" 2>/dev/null; done
for key in $keys; do
  n=0
  while alive "$key" && [ "$n" -lt $((grace * 5)) ]; do kill -TERM "$pid" 2>/dev/null; sleep 0.2; n=$((n + 1)); done
  alive "$key" && { kill -KILL -- "-$pid" 2>/dev/null || kill -KILL "$pid"; }
done
exit 0
"""


class ProcessOptions(FolderOptions):
    """Of a machine on which Prony starts processes itself."""

    lock: str = Field(
        default="/tmp/prony-machine.lock",
        description="lock file held during a measurement; others that measure with the same lock wait",
    )


class SshOptions(ProcessOptions):
    """Of a machine that ssh reaches."""

    ssh: str = Field(min_length=1, description="the host: a name from ~/.ssh/config, or user@host")
    ssh_options: tuple[str, ...] = Field(
        default=(), description="options for every ssh, for example -p 2222, one word each"
    )


class ProcessExecutor:
    """Starts a payload's runner in a session of its own, and finds it again by its pid, start and boot."""

    joins_nodes: ClassVar[bool] = False

    def __init__(self, shell: Shell, options: ProcessOptions) -> None:
        self._folders = RemoteFolders(shell, options)
        self._options = options

    def check(self) -> list[CheckLine]:
        """Look at what the machine has of what Prony needs."""
        return self._folders.check()

    def submit(self, payload: Payload) -> Handle:
        """Send it and start it, unless it is there and was started."""
        handle = Handle(key=payload.key)
        status = self._folders.look({payload.key: 0})[payload.key]
        if status.has("begun") or status.has("DONE") or status.has("alive"):
            return handle
        told = self._folders.send(payload, {"launch": _LAUNCH}, _START, lock=self._options.lock)
        check_installed(told.require("the start of the runner"), self._folders.shell)
        return handle

    def look(self, handles: Sequence[Handle], offsets: Mapping[str, int]) -> list[Observation]:
        """Look into all folders at once."""
        found = self._folders.look({handle.key: offsets.get(handle.key, 0) for handle in handles})
        return [self._observe(handle.key, found[handle.key]) for handle in handles]

    def fetch(self, handle: Handle, into: Path) -> bool:
        """Bring the results; True where the runner came to its end."""
        return self._folders.fetch(handle.key, into) is not None

    def end(self, handles: Sequence[Handle]) -> None:
        """Stop what runs, and remove what was fetched or holds nothing."""
        keys = " ".join(handle.key for handle in handles)
        self._folders.run(_STOP, keys=keys, grace=str(_GRACE_S), timeout_s=60 + _GRACE_S * len(handles))
        self._folders.remove([handle.key for handle in handles])

    def install(self, release: str, extras: Sequence[str], build: BuildPackages) -> str:
        """Put a release of Prony there, unless it is."""
        return self._folders.install(release, extras, build)

    def _observe(self, key: str, status: FolderStatus) -> Observation:
        phase, ending, reason = judge_process(status)
        if ending in (PlaceEnding.KILLED, PlaceEnding.UNSTARTED):
            reason = f"{reason}: {self._folders.tail_log(key)}".rstrip(": ")
        return Observation(
            key=key, phase=phase, ending=ending, reason=reason, events=status.events, offset=status.offset
        )


def judge_process(status: FolderStatus) -> tuple[PlacePhase, PlaceEnding | None, str]:
    """Return the phase of a folder whose runner is a process, how it ended, and why."""
    if not status.flags:
        return PlacePhase.LOST, None, "its folder is missing"
    if status.has("DONE"):
        return PlacePhase.ENDED, PlaceEnding.DONE, ""
    if status.has("alive"):
        return _judge_alive(status)
    if status.has("begun"):
        return PlacePhase.ENDED, PlaceEnding.KILLED, "its runner was killed"
    if status.has("started"):
        return PlacePhase.ENDED, PlaceEnding.UNSTARTED, "its runner did not start"
    return PlacePhase.STARTING, None, ""


def _judge_alive(status: FolderStatus) -> tuple[PlacePhase, None, str]:
    if status.has("waiting"):
        return PlacePhase.QUEUED, None, "another run uses the machine"
    return PlacePhase.RUNNING if status.has("begun") else PlacePhase.STARTING, None, ""


class LocalExecutor(ProcessExecutor):
    """This machine, for runs that outlive the terminal."""

    Options: ClassVar[type[ProcessOptions]] = ProcessOptions

    def __init__(self, target: Target, site: ExecutorSite) -> None:
        del site
        options = ProcessOptions.model_validate(target.options)
        here = options.model_copy(update={"python": options.python or sys.executable})
        super().__init__(Shell(options.setup), here)


class SshExecutor(ProcessExecutor):
    """A machine that one only visits, by the user's own ssh."""

    Options: ClassVar[type[SshOptions]] = SshOptions

    def __init__(self, target: Target, site: ExecutorSite) -> None:
        options = SshOptions.model_validate(target.options)
        super().__init__(SshShell(options.ssh, site.folder, options.setup, options.ssh_options), options)
