"""Run a real Slurm of two nodes on this machine, everything of it in one private folder."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

import psutil

from servers.binaries import AbsentError
from servers.ports import free_port
from servers.process import DieWithParent

_READY_S = 60.0
_PROGRAMS = ("munged", "slurmctld", "slurmd", "sbatch", "squeue", "scontrol")
_CONFIGURATION = """\
ClusterName=bench
SlurmctldHost={host}(127.0.0.1)
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket={folder}/munge.socket
CredType=cred/munge
SlurmctldPort={control}
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.%n.pid
SlurmdSpoolDir={folder}/spool.%n
StateSaveLocation={folder}/state
SlurmctldLogFile={folder}/log/slurmctld.log
SlurmdLogFile={folder}/log/slurmd.%n.log
SlurmdParameters=config_overrides
MpiDefault=none
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SwitchType=switch/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core_Memory
SchedulerType=sched/backfill
SchedulerParameters=bf_interval=1,sched_interval=1,batch_sched_delay=0,sched_min_interval=10000
ReturnToService=2
KillWait=2
MinJobAge=300
SlurmdTimeout=5
InactiveLimit=0
AccountingStorageType=accounting_storage/none
JobCompType=jobcomp/none
JobAcctGatherType=jobacct_gather/none
NodeName=n1 NodeHostname={host} NodeAddr=127.0.0.1 Port={n1} CPUs=2 RealMemory=2000 State=UNKNOWN
NodeName=n2 NodeHostname={host} NodeAddr=127.0.0.1 Port={n2} CPUs=2 RealMemory=2000 State=UNKNOWN
PreemptType=preempt/partition_prio
PreemptMode=REQUEUE
PartitionName=test Nodes=n1,n2 Default=YES MaxTime=60 DefMemPerCPU=100 State=UP PriorityTier=1
PartitionName=cheap Nodes=n1,n2 MaxTime=60 DefMemPerCPU=100 State=UP PriorityTier=1 PreemptMode=CANCEL
PartitionName=first Nodes=n1,n2 MaxTime=60 DefMemPerCPU=100 State=UP PriorityTier=9 PreemptMode=OFF
"""


@dataclass
class Slurm:
    """A cluster whose commands need `SLURM_CONF`, as `setup` exports it."""

    folder: Path
    daemons: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)

    @property
    def setup(self) -> list[str]:
        return [f"export SLURM_CONF={self.folder / 'slurm.conf'}"]

    def run(self, *command: str) -> str:
        """Run one of its commands and return what it prints."""
        done = subprocess.run(
            command, capture_output=True, text=True, check=False, timeout=60, env=os.environ | self.environment
        )
        return done.stdout + done.stderr

    @property
    def environment(self) -> dict[str, str]:
        return {"SLURM_CONF": str(self.folder / "slurm.conf")}

    def start_node(self, name: str) -> None:
        self._start(name, ["slurmd", "-D", "-N", name])

    def kill_node(self, name: str) -> None:
        """End a node at once with what runs on it, as a power cut would."""
        self.daemons[name].kill()
        self.daemons[name].wait()

    def _start(self, name: str, command: list[str]) -> None:
        program = find_program(command[0])
        with (self.folder / "log" / f"{name}.out").open("ab") as log:
            self.daemons[name] = subprocess.Popen(
                [program, *command[1:]],
                stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=os.environ | self.environment,
                preexec_fn=DieWithParent(signal.SIGKILL),  # noqa: PLW1509 - nothing but a system call
            )  # fmt: skip

    def start(self) -> None:
        munge = ["munged", "--foreground", "--force", f"--key-file={self.folder}/munge.key"]
        munge += [f"--socket={self.folder}/munge.socket", f"--pid-file={self.folder}/munged.pid"]
        self._start("munged", [*munge, f"--log-file={self.folder}/log/munged.log", f"--seed-file={self.folder}/seed"])
        self._wait((self.folder / "munge.socket").exists, "munged")
        self._start("slurmctld", ["slurmctld", "-D", "-c"])
        for node in ("n1", "n2"):
            self.start_node(node)
        self.wait_idle()

    def wait_idle(self) -> None:
        """Return when both nodes are free."""
        self._wait(lambda: set(self.run("sinfo", "-h", "-N", "-o", "%T").split()) == {"idle"}, "nodes")

    def _wait(self, is_ready: Callable[[], bool], what: str) -> None:
        deadline = time.monotonic() + _READY_S
        while not is_ready():
            if time.monotonic() > deadline:
                raise AbsentError(f"{what} of Slurm not ready: {self.run('sinfo', '-N', '-l')[-500:]}")
            time.sleep(0.05)

    def stop(self) -> None:
        self.run("scancel", "--full", "--user=root")
        for daemon in reversed(self.daemons.values()):
            daemon.kill()
            daemon.wait()
        # What ran in a job is nobody's child by now, and is known by its environment.
        for process in psutil.process_iter(["environ"]):
            if (process.info["environ"] or {}).get("SLURM_CONF") == self.environment["SLURM_CONF"]:
                with suppress(psutil.NoSuchProcess):
                    process.kill()


def find_program(name: str) -> str:
    found = shutil.which(name) or shutil.which(name, path="/usr/sbin")
    if found is None:
        raise AbsentError(f"no {name} here: apt-get install slurmctld slurmd slurm-client munge")
    return found


@contextmanager
def slurm_cluster(folder: Path) -> Iterator[Slurm]:
    """Run one until the block ends."""
    for name in _PROGRAMS:
        find_program(name)
    if os.getuid() != 0:
        raise AbsentError("a private Slurm needs root: its daemons run as it")
    for part in ("state", "log", "spool.n1", "spool.n2"):
        (folder / part).mkdir(parents=True, exist_ok=True)
    key = folder / "munge.key"
    key.write_bytes(os.urandom(1024))
    key.chmod(0o400)
    ports = {name: free_port() for name in ("control", "n1", "n2")}
    host = socket.gethostname().split(".")[0]
    (folder / "slurm.conf").write_text(_CONFIGURATION.format(host=host, folder=folder, **ports))
    cluster = Slurm(folder)
    with ExitStack() as block:
        block.callback(cluster.stop)
        cluster.start()
        yield cluster
