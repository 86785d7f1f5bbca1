"""Launch Open MPI over several nodes without ssh.

mpirun runs on the first node. For every other one it would have ssh start its daemon, orted; instead the daemon's words
are left in a file, told to that node at a meeting of the gang, and started there. From then on mpirun and its daemons
speak to each other as always.
"""

from __future__ import annotations

import re
import shlex
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path

from prony.errors import CapacityError
from prony.kinds.script.runner import mpi_launch_proxy
from prony.kinds.script.runner.node import ScriptNode

_HANDOVER = str(Path(mpi_launch_proxy.__file__))
_KNOWN = re.compile(r"Open MPI\) [1-4]\.")
_DAEMON = "orted"
# The same words on every node; what they mean is in the environment of its daemon.
_RANK = ("sh", "-c", 'exec "$PRONY_RANK_PYTHON" -I "$PRONY_RANK_PROGRAM" "$PRONY_RANK_ORDER"')


def check_mpi(version: str, environment: Mapping[str, str]) -> None:
    """Refuse an mpirun whose daemons are others, or are not there."""
    if _KNOWN.search(version) is None:
        raise CapacityError(
            f"{version} does not work on several nodes here: Prony supports Open MPI up to version 4",
            hint="install Open MPI 4 on every node, or use launch.kind: torchrun or process", code="no_mpirun",
        )  # fmt: skip
    if shutil.which(_DAEMON, path=environment.get("PATH")) is None:
        raise CapacityError(
            f"{_DAEMON} not found on PATH: Open MPI needs it on every node",
            hint="install all of Open MPI (apt install openmpi-bin)", code="no_mpirun",
        )  # fmt: skip


def build_mpi_launch(
    head: Sequence[str], rank: Sequence[str], node: ScriptNode, each: int, orders: Path
) -> tuple[list[str], dict[str, str]]:
    """Return the words of mpirun on the first node, of its daemon on any other; and variables for them."""
    python, _, program, order = rank
    own = {"PRONY_RANK_PYTHON": python, "PRONY_RANK_PROGRAM": program, "PRONY_RANK_ORDER": order}
    orders.mkdir(exist_ok=True)
    if node.index:
        own |= {"OMPI_MCA_orte_tmpdir_base": str(orders)}
        if node.is_shared:  # files of shared memory are named by host and local rank: two nodes would use the same
            own |= {"OMPI_MCA_btl_vader_backing_directory": str(orders)}
        return [*(node.daemon or (_DAEMON,))], own
    hosts = ",".join([f"localhost:{each}", *(f"{_name(index)}:{each}" for index in range(1, node.of))])
    words = [*head, "--host", hosts, "--map-by", "slot", "--wdir", "/", "--noprefix"]
    words += ["--mca", "plm_rsh_agent", f"{python} -I {_HANDOVER}", "--mca", "plm_rsh_no_tree_spawn", "1"]
    return [*words, *_RANK], own | {"PRONY_ORDERS": str(orders)}


def _name(index: int) -> str:
    """Return what mpirun is told that a node is called; nobody looks for such a host."""
    return f"prony-node-{index}"


def proxied_launches(orders: Path, nodes: int) -> list[str] | None:
    """Return what mpirun wants started on each node but the first; None while it has not said all of it."""
    files = [orders / _name(index) for index in range(1, nodes)]
    return [file.read_text() for file in files] if all(file.exists() for file in files) else None


def daemon_of(text: str) -> tuple[str, ...]:
    """Return the daemon's words from those that a remote shell would have got; it stays with who started it."""
    words = shlex.split(text)
    if words[:1] != [_DAEMON]:
        raise CapacityError(
            f"mpirun on the first node tried to start a program other than {_DAEMON}: {text[:200]}",
            hint="unset OPAL_PREFIX there, and put Open MPI on PATH on every node", code="no_launcher",
        )  # fmt: skip
    return tuple(word for word in words if word != "--daemonize")
