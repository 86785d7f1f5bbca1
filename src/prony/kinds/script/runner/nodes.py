"""Let the nodes of a script's launch agree on what they run next and where their processes meet."""

from __future__ import annotations

import ipaddress
import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Literal

from prony.errors import InputError
from prony.kinds.script.runner import mpi
from prony.kinds.script.runner.node import ScriptNode
from prony.kinds.script.schema import ScriptWorkload
from prony.model.job import Job
from prony.runner.context import RunContext
from prony.runner.gang import Gang, gang_of, loopback_id
from prony.runner.services.site import LOOPBACK, free_ports

Kind = Literal["measure", "warmup"]


class Nodes:
    """One node's way to the others; `address` is where they reach it."""

    def __init__(self, gang: Gang, address: str) -> None:
        self.gang = gang
        self._address = address

    def agree(self, index: int, kind: Kind | None, *, launches: bool = True) -> tuple[Kind | None, ScriptNode]:
        """Wait for the other nodes; return what the first of them wants to be run, None where that is nothing more.

        All of them return at the same instant, as well as their clocks are known."""
        part = self.gang.part
        mine = {
            "machine": loopback_id(), "kind": kind, "address": self._address, "port": free_ports(1, host="")[0],
            "launches": launches,
        }  # fmt: skip
        told = self.gang.begin(index, json.dumps(mine))
        said = [json.loads(text) for text in told.said]
        first, is_one_machine = said[0], len({one["machine"] for one in said}) == 1
        address = LOOPBACK if is_one_machine else first["address"]
        if not is_one_machine and not _is_reached(address):
            raise InputError(
                f"the other nodes cannot reach the first node at {address or 'an unknown address'}",
                hint="start its agent with an address that they can reach: prony agent start --address HOST",
                code="loopback",
            )
        time.sleep(max(0, told.at_ns - time.perf_counter_ns()) / 1e9)
        all_launch = all(one["launches"] for one in said)
        # The first word is the kernel's: containers of one machine may have different networks, and still share a disk.
        kernels = [one["machine"].split(" ")[0] for one in said]
        is_shared = kernels.count(kernels[part.index]) > 1
        interface = "" if is_one_machine else _interface(self._address)
        node = ScriptNode(
            part.index, part.of, address, first["port"], all_launch, is_shared=is_shared, interface=interface
        )
        return first["kind"], node

    # By mpirun

    def hears_daemon(self, index: int) -> tuple[str, ...]:
        """Wait until mpirun of the first node says what is to be started here."""
        (text, *_) = self.gang.meet(f"mpi-{index}").said
        return mpi.daemon_of(json.loads(text)[self.gang.part.index - 1])

    def hands_over(self, index: int, orders: Path) -> Callable[[], None]:
        """Return what tells the other nodes, once, what mpirun wants started on them; to be called now and then."""
        is_done = False

        def look() -> None:
            nonlocal is_done
            found = None if is_done else mpi.proxied_launches(orders, self.gang.part.of)
            if found is not None:
                is_done = True
                self.gang.come(f"mpi-{index}", json.dumps(found))

        return look


def nodes_of(job: Job, around: RunContext) -> Nodes | None:
    """Return the nodes that a job is launched on; None where it is one machine."""
    if job.part is None and not job.work(ScriptWorkload).launch.spread:
        return None
    gang = gang_of(job, around.emit, around.stop_asked)
    return None if gang is None else Nodes(gang, around.address)


def _interface(address: str) -> str:
    """Return the name of the interface that has the address; nothing where none has it, as with a name or a NAT."""
    import psutil

    found = psutil.net_if_addrs().items()
    return next((name for name, addresses in found if any(one.address == address for one in addresses)), "")


def _is_reached(address: str) -> bool:
    """May others reach it? A name is believed."""
    try:
        found = ipaddress.ip_address(address)
    except ValueError:
        return bool(address) and address != "localhost"
    return not (found.is_loopback or found.is_unspecified)
