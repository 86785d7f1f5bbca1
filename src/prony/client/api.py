"""An address in, all operations of the server there out: what the commands call, and what a program may call too."""

from __future__ import annotations

import time
from collections.abc import Callable
from types import TracebackType
from typing import Self

from prony.client.agents import Agents, Leases
from prony.client.alarms import Alarms
from prony.client.comparisons import Comparisons
from prony.client.connection import Connection
from prony.client.experiments import Experiments
from prony.client.history import Histories
from prony.client.jobs import Jobs
from prony.client.recipes import Recipes
from prony.client.schedules import Schedules
from prony.client.scripts import Scripts
from prony.client.server_ops import House
from prony.client.sweeps import Sweeps


class Client(
    Experiments, Comparisons, Sweeps, Jobs, Recipes, Scripts, Schedules, Alarms, Agents, Leases, Histories, House
):
    """Open it as a block. Every method is one operation of the API, under its name there.

    Errors are those that the server raised, or a TransportError where it cannot be reached. What may be done twice
    without harm is tried `attempts` times: everything that only reads, and creations, which carry a key of their own.
    """

    def __init__(
        self,
        url: str,
        token: str | None = None,
        *,
        timeout_s: float = 30.0,
        attempts: int = 4,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        super().__init__(Connection(url, token, timeout_s=timeout_s, attempts=attempts, sleep=sleep))

    @property
    def url(self) -> str:
        return self._connection.base

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        self._connection.close()
