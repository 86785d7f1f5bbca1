"""Plan the processes of one script execution and their output files."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

from prony.errors import CapacityError
from prony.kinds.script.runner import mpi
from prony.kinds.script.runner import rank as rank_program
from prony.kinds.script.runner.node import ALONE, INTERFACE, ScriptNode
from prony.kinds.script.schema import Launch
from prony.runner.scheduler_variables import drop_scheduler_variables
from prony.runner.services.site import LOOPBACK

StreamName = Literal["stdout", "stderr"]
_RANK = str(Path(rank_program.__file__))
# What a process of several is told.
RANKS = ("RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT", INTERFACE)
_ASK_S = 60.0


@dataclass(frozen=True)
class Stream:
    """One file of output; `rank` is None where one process is all there is."""

    path: Path
    name: StreamName
    rank: int | None = None


@dataclass(frozen=True)
class ProcessPlace:
    """Where one execution runs and writes: `begin` is how its log files' names begin."""

    folder: Path
    logs: Path
    scratch: Path
    begin: str

    def both(self, rank: int | None = None) -> tuple[Stream, Stream]:
        """Return the two streams of a process."""
        begin = self.begin if rank is None else f"{self.begin}.rank-{rank}"
        return (
            Stream(self.logs / f"{begin}.out", "stdout", rank),
            Stream(self.logs / f"{begin}.err", "stderr", rank),
        )

    @property
    def orders(self) -> Path:
        """Where mpirun's wishes for other nodes are left."""
        return self.scratch / f"{self.begin}.orders"

    @property
    def emit_folder(self) -> Path:
        return self.logs / f"{self.begin}.emit.jsonl"


@dataclass(frozen=True)
class ScriptPlan:
    """`processes` is what the supervisor is given, `first` the rank of the first; in `endings` the ranks of a launcher
    write how they ended."""

    processes: tuple[dict[str, Any], ...]
    streams: tuple[Stream, ...]
    endings: Path | None = None
    first: int = 0
    world: int = 1  # ranks on all nodes
    launcher: str = ""
    note: str = ""  # what of the launch is not as it was asked for
    clear: Sequence[Sequence[str]] = ()  # the commands that remove what its processes leave to others


def plan_processes(
    launch: Launch, argv: list[str], environment: Mapping[str, str], place: ProcessPlace, node: ScriptNode = ALONE
) -> ScriptPlan:
    """Lay out the processes of one execution on one node."""
    environment = {**node.variables, **environment}
    if launch.kind == "process" or not node.launches:
        return _processes(launch.processes, argv, environment, place, node)
    if launch.kind == "mpirun":
        environment = drop_scheduler_variables(environment)
    try:
        head, launcher = _LAUNCHERS[launch.kind](launch.processes, argv, environment, node)
    except CapacityError as exc:
        if launch.fallback is None:
            raise
        note = f"{exc.message}: Prony started its {launch.processes} processes directly"
        return replace(_processes(launch.processes, argv, environment, place, node), note=note)
    order, endings = place.scratch / f"{place.begin}.json", place.scratch / f"{place.begin}.endings"
    told = {
        "argv": argv, "folder": str(place.folder), "logs": str(place.logs), "prefix": f"{place.begin}.rank-",
        "endings": str(endings), "environment": node.meeting if launch.kind == "mpirun" else {},
    }  # fmt: skip
    order.write_text(json.dumps(told))
    ranks = [stream for rank in node.ranks(launch.processes) for stream in place.both(rank)]
    own = place.both()
    words, more = [*head, *_rank_command(order)], dict[str, str]()
    if launch.kind == "mpirun" and node.of > 1:
        words, more = mpi.build_mpi_launch(head, _rank_command(order), node, launch.processes, place.orders)
    process = _process(words, {**environment, **more}, place, own)
    return ScriptPlan((process,), (*ranks, *own), endings, world=node.of * launch.processes, launcher=launcher)


def _processes(
    count: int, argv: list[str], environment: Mapping[str, str], place: ProcessPlace, node: ScriptNode
) -> ScriptPlan:
    world = node.of * count
    if world == 1:
        own = place.both()
        return ScriptPlan((_process(argv, environment, place, own),), own)
    shared = {"WORLD_SIZE": str(world), "LOCAL_WORLD_SIZE": str(count)} | node.meeting
    processes: list[dict[str, Any]] = []
    streams: list[Stream] = []
    for local, rank in enumerate(node.ranks(count)):
        own = place.both(rank)
        mine = {**environment, **shared, "RANK": str(rank), "LOCAL_RANK": str(local)}
        processes.append(_process(argv, mine, place, own))
        streams += own
    return ScriptPlan(tuple(processes), tuple(streams), first=node.ranks(count).start, world=world)


def _process(
    argv: list[str], environment: Mapping[str, str], place: ProcessPlace, own: tuple[Stream, Stream]
) -> dict[str, Any]:
    return {
        "argv": argv, "environment": dict(environment), "folder": str(place.folder),
        "out": str(own[0].path), "err": str(own[1].path),
    }  # fmt: skip


def _torchrun(count: int, argv: list[str], environment: Mapping[str, str], node: ScriptNode) -> tuple[list[str], str]:
    """Return torchrun's own words. The torch of the script's interpreter is the one that counts."""
    path = environment.get("PATH")
    python = shutil.which(argv[0], path=path) if Path(argv[0]).name.startswith("python") else None
    head = [python, "-m", "torch.distributed.run"] if python else [shutil.which("torchrun", path=path) or ""]
    if not head[0] or (python and not _has_torch(python, environment)):
        raise CapacityError(
            f"torchrun not found{f': torch is not installed for {python}' if python else ' on PATH'}",
            hint="install torch for the script's interpreter, or use launch.kind: process or mpirun",
            code="no_torchrun",
        )
    words = [f"--nnodes={node.of}", f"--nproc-per-node={count}"]
    if node.of == 1:
        words += ["--rdzv-backend=c10d", f"--rdzv-endpoint={LOOPBACK}:0"]
    else:  # by number and not in the order of their coming: so a rank is where its logs are expected
        words += [f"--node-rank={node.index}", f"--master-addr={node.address}", f"--master-port={node.port}"]
    return [*head, *words, "--no-python"], f"torchrun of {python or head[0]}"


def _has_torch(python: str, environment: Mapping[str, str]) -> bool:
    return _answer([python, _RANK, "--find", "torch"], environment).returncode == 0


def _rank_command(order: Path) -> list[str]:
    return [sys.executable, "-I", _RANK, str(order)]


def _mpirun(count: int, _: list[str], environment: Mapping[str, str], node: ScriptNode) -> tuple[list[str], str]:
    """Return mpirun's own words, Open MPI's or MPICH's."""
    program = shutil.which("mpirun", path=environment.get("PATH"))
    if program is None:
        raise CapacityError(
            "mpirun not found on PATH", hint="install Open MPI or MPICH (apt install openmpi-bin), or use launch."
            "kind: process or torchrun", code="no_mpirun",
        )  # fmt: skip
    version = _answer([program, "--version"], environment).stdout.partition("\n")[0].strip()
    if node.of > 1:
        mpi.check_mpi(version, environment)
    words = [program, "-np", str(node.of * count)]
    if "Open" in version:
        words += ["--oversubscribe"]
        words += ["--allow-run-as-root"] if os.getuid() == 0 else []
    return words, version or program


def _answer(argv: list[str], environment: Mapping[str, str]) -> subprocess.CompletedProcess[str]:
    try:
        return subprocess.run(
            argv, capture_output=True, text=True, check=False, timeout=_ASK_S, env=dict(environment), cwd="/"
        )
    except (OSError, subprocess.TimeoutExpired) as exc:
        raise CapacityError(
            f"{argv[0]} does not answer: {exc}",
            code="no_launcher",
            hint=f"check that this works on the machine: {' '.join(argv)}",
        ) from exc


_LAUNCHERS = {"torchrun": _torchrun, "mpirun": _mpirun}
