"""One machine of those that run a script together: which ranks it has, and where all of them meet."""

from __future__ import annotations

from dataclasses import dataclass

from prony.runner.services.site import LOOPBACK, free_ports

INTERFACE = "GLOO_SOCKET_IFNAME"


@dataclass(frozen=True)
class ScriptNode:
    """Which of the machines of a launch this is, and where all of their processes meet: a port of the first's, and 0
    where there is but one machine, which then takes any that is free.

    `launches`: have all of them the launcher that is asked for? `daemon`: what mpirun of the first wants started.
    `is_shared`: another node runs on the same machine. `interface`: the one by which other machines reach this one."""

    index: int = 0
    of: int = 1
    address: str = LOOPBACK
    port: int = 0
    launches: bool = True
    daemon: tuple[str, ...] = ()
    is_shared: bool = False
    interface: str = ""

    @property
    def meeting(self) -> dict[str, str]:
        """The port is free now, and taken by rank 0 at once."""
        return {"MASTER_ADDR": self.address, "MASTER_PORT": str(self.port or free_ports(1)[0])}

    @property
    def variables(self) -> dict[str, str]:
        """Gloo looks for its own host's name, which on many machines leads to the loopback."""
        return {INTERFACE: self.interface} if self.interface else {}

    def ranks(self, each: int) -> range:
        """Return which of all ranks are here, where there are so many on each node."""
        return range(self.index * each, (self.index + 1) * each)


ALONE = ScriptNode()
