"""Send every ended experiment to the destinations that are set, again and again until it was taken.

What is to be sent is asked of the database, so that a server that is killed loses nothing.
"""

from __future__ import annotations

import asyncio
import hashlib
from datetime import datetime
from functools import partial
from urllib.parse import urlsplit

from prony.app import experiment_data
from prony.app.destinations import destination_name, send_experiment
from prony.app.fleet.context import FleetContext
from prony.app.local_files import LocalFiles
from prony.errors import NotFoundError, PronyError, TransportError
from prony.store import exports
from prony.store.writer import Transaction

FIRST_PAUSE_S, LONGEST_PAUSE_S = 5.0, 3600.0
# So many are looked for at once; what is left comes in the next round.
_TOGETHER = 20


class Exports:
    """Send ended experiments to the destinations of the settings."""

    def __init__(self, context: FleetContext) -> None:
        self._context = context
        self._files = LocalFiles(context.store)
        self._sending: asyncio.Task[None] | None = None
        # By address: how often in a row it did not answer, and when it is asked again.
        self._away: dict[str, tuple[int, float]] = {}

    def attend(self) -> None:
        """Have what is due sent, beside everything else: a destination may take minutes to answer."""
        if self._context.settings.export_to and (self._sending is None or self._sending.done()):
            self._sending = self._context.spawn(self.send_due())

    async def send_due(self) -> None:
        """Send what is due now."""
        for address in self._context.settings.export_to:
            if self._context.now() >= self._away.get(address, (0, 0.0))[1]:
                await self._send_due_to(address)

    async def _send_due_to(self, address: str) -> None:
        name, now_s = _identity(address), self._context.clock.now().timestamp()
        due = await self._context.read(partial(exports.find_unsent, destination=name, now_s=now_s, most=_TOGETHER))
        for experiment_id, ended_at, tries in due:
            try:
                await asyncio.to_thread(self._send, address, experiment_id)
            except NotFoundError:  # deleted meanwhile
                continue
            except TransportError as exc:  # none of the others would be taken either
                self._wait_for(address, experiment_id, exc)
                return
            except PronyError as exc:
                await self._context.write(partial(self._put_off, experiment_id, address, tries, exc))
                continue
            self._away.pop(address, None)
            await self._context.write(partial(_keep_sent, experiment_id, name, ended_at))
            self._context.hook("exported", experiment=experiment_id, to=destination_name(address))

    def _send(self, address: str, experiment_id: str) -> None:
        data = experiment_data.read_experiment_data(self._context.store, experiment_id)
        send_experiment(address, data, lambda job_id, name, offset: self._files.text(job_id, name, offset=offset))

    def _wait_for(self, address: str, experiment_id: str, error: PronyError) -> None:
        tries = self._away.get(address, (0, 0.0))[0]
        self._away[address] = (tries + 1, self._context.now() + pause_after(tries))
        self._warn(address, experiment_id, error, pause_after(tries))

    def _put_off(
        self, experiment_id: str, address: str, tries: int, error: PronyError, transaction: Transaction
    ) -> None:
        exports.keep_failure(
            transaction.connection,
            experiment_id,
            _identity(address),
            tries=tries + 1,
            not_before=self._context.clock.now().timestamp() + pause_after(tries),
            error=error.message,
        )
        self._warn(address, experiment_id, error, pause_after(tries))

    def _warn(self, address: str, experiment_id: str, error: PronyError, pause_s: float) -> None:
        to, hint = destination_name(address), error.hint
        self._context.hook(
            "not_exported", experiment=experiment_id, to=to, reason=error.message, hint=hint, again_s=pause_s
        )


def pause_after(tries: int) -> float:
    """Return how long to wait after so many earlier failures: twice as long each time, an hour at most."""
    return min(LONGEST_PAUSE_S, FIRST_PAUSE_S * 2.0 ** min(tries, 20))


def _identity(address: str) -> str:
    """Return the name under which it is known what a destination has: that of the place, whoever logs in there."""
    parts = urlsplit(address)
    place = f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"
    return f"{destination_name(address)}-{hashlib.sha256(place.encode()).hexdigest()[:16]}"


def _keep_sent(experiment_id: str, name: str, ended_at: datetime | None, transaction: Transaction) -> None:
    exports.keep_sent(transaction.connection, experiment_id, name, ended_at)
