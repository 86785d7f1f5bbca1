"""The client of a server: what the commands call, and what a program may call too."""

from __future__ import annotations

import time
from collections.abc import Callable
from types import TracebackType
from typing import Self

from prony.client.agents import RemoteAgents, RemoteLeases
from prony.client.alarms import RemoteAlarms
from prony.client.connection import ApiConnection, ApiRequests
from prony.client.experiments import RemoteAnalyses, RemoteExperiments
from prony.client.files import RemoteFiles
from prony.client.histories import RemoteHistories
from prony.client.jobs import RemoteJobs
from prony.client.recipes import RemoteRecipes, RemoteScripts
from prony.client.schedules import RemoteSchedules
from prony.client.server_ops import RemoteServer, RemoteTokens
from prony.client.targets import RemoteTargets


class Client:
    """All operations of one server, by noun: `client.experiments.submit(...)`, `client.jobs.logs(...)`.

    Open it as a block. It has the use cases of `prony.ports.use_cases.UseCases`, as this machine's own `Bench` has
    them, and what only a server has besides: jobs, agents, leases, targets, tokens. Errors are those that the server
    raised, or a TransportError where it cannot be reached.
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
        """Prepare a connection; nothing is asked yet.

        Args:
            url: Where the server is, as `http://127.0.0.1:7337`.
            token: The secret that says who asks; None where the server asks for none.
            timeout_s: How long the server may be silent within one answer.
            attempts: How often a request is tried that may be done twice without harm: everything that only reads,
                and creations, which carry a key of their own.
            sleep: How to wait between two attempts.
        """
        self._connection = ApiConnection(url, token, timeout_s=timeout_s, attempts=attempts, sleep=sleep)
        requests = ApiRequests(self._connection)
        self.experiments = RemoteExperiments(requests)
        self.analyses = RemoteAnalyses(requests, self.experiments)
        self.jobs = RemoteJobs(requests, self.experiments)
        self.files = RemoteFiles(requests, self.jobs)
        self.histories = RemoteHistories(requests)
        self.recipes = RemoteRecipes(requests)
        self.scripts = RemoteScripts(requests)
        self.schedules = RemoteSchedules(requests)
        self.alarms = RemoteAlarms(requests)
        self.agents = RemoteAgents(requests)
        self.leases = RemoteLeases(requests)
        self.targets = RemoteTargets(requests)
        self.tokens = RemoteTokens(requests)
        self.server = RemoteServer(requests)

    @property
    def url(self) -> str:
        """The server's address."""
        return self._connection.base

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        """Close the connection; leaving the block does it too."""
        self._connection.close()
