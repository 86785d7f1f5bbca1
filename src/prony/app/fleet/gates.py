"""Judge the gates of experiments that have ended, keep what became of them and tell the alarms.

Beside the transaction that ends them, because their results are read from the disk. A server that is killed in
between looks again at those of its last minutes when it starts: to be told twice does no harm.
"""

from __future__ import annotations

import asyncio
from datetime import timedelta

from prony.app import experiment_data
from prony.app.fleet.alarm_engine import AlarmEngine, gates_judged, gates_state
from prony.app.fleet.context import FleetContext
from prony.app.fleet.state import FleetState
from prony.errors import NotFoundError
from prony.model.experiment import Experiment
from prony.store import listing
from prony.store.writer import Transaction

_LOOKED_BACK = timedelta(minutes=10)
_MOST_LOOKED_AT = 200


class Gates:
    """Judge the gates of experiments that have ended, and tell the alarms."""

    def __init__(self, context: FleetContext, state: FleetState, alarm_engine: AlarmEngine) -> None:
        self._context = context
        self._state = state
        self._alarm_engine = alarm_engine

    async def remember_ended(self) -> None:
        """Take up what ended shortly before this server began."""
        since = self._context.clock.now() - _LOOKED_BACK
        found = await asyncio.to_thread(self._context.store.experiments, _MOST_LOOKED_AT)
        self._state.ended |= {one.id for one in found if one.ended_at is not None and one.ended_at >= since}

    async def judge_ended(self) -> None:
        """Keep which gates failed, or that none does, and tell who waits for it."""
        for experiment_id in tuple(self._state.ended):
            await self._judge_gates(experiment_id)

    async def _judge_gates(self, experiment_id: str) -> None:
        try:
            experiment = await asyncio.to_thread(self._context.store.experiment, experiment_id)
            if experiment.ended_at is None:  # its end is being written, or was undone
                return
            if experiment.recipe.gates:
                await self._keep_gates(experiment)
        except NotFoundError:  # deleted meanwhile
            pass
        self._state.ended.discard(experiment_id)

    async def _keep_gates(self, experiment: Experiment) -> None:
        data = await asyncio.to_thread(experiment_data.read_experiment_data, self._context.store, experiment.id)
        happening = gates_judged(experiment, data.gates, self._context.clock.now())
        state = gates_state(data.gates)

        def keep(transaction: Transaction) -> None:
            listing.keep_gates(transaction.connection, experiment.id, state, happening.text)
            if self._alarm_engine.hears("gate_failed"):
                self._alarm_engine.report(transaction, happening)

        await self._context.write(keep)
