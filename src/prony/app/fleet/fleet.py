"""The use cases of a fleet: experiments submitted, jobs lent to agents, results taken in, everything looked at.

One `Fleet` lives in each server process. What it holds in memory (see `state.py`) only makes it quick: the database
alone is true, several servers may share one, and each may be killed at any instant.
"""

from __future__ import annotations

from prony.app.access import Access
from prony.app.fleet.agents import Agents
from prony.app.fleet.alarm_engine import AlarmEngine
from prony.app.fleet.alarms import Alarms
from prony.app.fleet.confirmations import Confirmations
from prony.app.fleet.context import FleetContext, FleetSettings
from prony.app.fleet.devices import Devices
from prony.app.fleet.events import FleetEvents
from prony.app.fleet.experiments import Experiments
from prony.app.fleet.exports import Exports
from prony.app.fleet.gang_results import GangResults
from prony.app.fleet.gangs import Gangs
from prony.app.fleet.gates import Gates
from prony.app.fleet.histories import Histories
from prony.app.fleet.imports import Imports
from prony.app.fleet.jobs import Jobs
from prony.app.fleet.latest_results import LatestResults
from prony.app.fleet.leases import Leases
from prony.app.fleet.liveness import Liveness
from prony.app.fleet.maintenance import HealthCheck, Maintenance
from prony.app.fleet.queries import Queries
from prony.app.fleet.recipes import Recipes
from prony.app.fleet.result_intake import ResultIntake
from prony.app.fleet.results import Results
from prony.app.fleet.schedules import Schedules
from prony.app.fleet.scripts import Scripts
from prony.app.fleet.state import FleetState
from prony.app.fleet.targets import Targets
from prony.app.fleet.transitions import Transitions
from prony.store.home import Home
from prony.store.store import Store


class Fleet:
    """A part for each noun, each given what it needs. The use cases are async and raise PronyErrors only."""

    def __init__(self, store: Store, settings: FleetSettings) -> None:
        context = self.context = FleetContext(store, settings)
        state = self.state = FleetState()
        engine = self.alarm_engine = AlarmEngine(settings.alarm_window_s)
        transitions = self.transitions = Transitions(context, state, engine)
        self.access = Access(store.engine, context.clock)
        self.events = FleetEvents(context, state)
        self.agents = Agents(context, state, engine, self.access, transitions)
        self.devices = Devices(context, state, self.agents)
        self.targets = Targets(context, self.agents)
        self.gangs = Gangs(context, state)
        self.leases = Leases(context, state, self.events, self.agents, transitions, self.gangs)
        self.intake = ResultIntake(context, state, engine, transitions, self.leases)
        self.gang_results = GangResults(context, state, transitions, self.gangs, self.intake)
        self.results = Results(context)
        self.experiments = Experiments(context, state, transitions)
        self.jobs = Jobs(context, state, transitions)
        self.recipes = Recipes(context, state)
        self.scripts = Scripts(context)
        self.imports = Imports(context)
        self.schedules = Schedules(context, state, engine)
        self.alarms = Alarms(context, engine)
        self.gates = Gates(context, state, engine)
        self.histories = Histories(context, engine)
        self.latest_results = LatestResults(context)
        self.confirmations = Confirmations(context, state, self.experiments, self.histories)
        self.queries = Queries(context, state)
        self.exports = Exports(context)
        liveness = self.liveness = Liveness(context, state, self.agents, transitions, self.gang_results)
        self.maintenance = Maintenance(context, liveness, self.schedules, self.alarms, self.gates, self.confirmations)
        self.maintenance.after_round = self.exports.attend
        self.health = HealthCheck(context, self.maintenance)
        self.events.on("agent", self.agents.load)
        self.events.on("gathered", self.gang_results.settle)
        self.events.on("alarms", self.alarms.load)
        self.events.on("series", self.latest_results.refresh)

    @classmethod
    def open(cls, home: Home | None = None, *, url: str = "", settings: FleetSettings | None = None) -> Fleet:
        return cls(Store.open(home, url=url), settings or FleetSettings())

    async def start(self, *, sweeping: bool = True) -> None:
        """Look around, and go on doing so; without `sweeping` only when `maintenance.look_around` is called."""
        self.context.start(self.events.hear)
        await self.maintenance.start(sweeping=sweeping)

    async def stop(self) -> None:
        """End every wait and the round; the store is closed last."""
        self.state.is_stopping = True
        await self.maintenance.stop()
        for agent_id in list(self.state.waiters):
            self.state.rouse(agent_id)
        self.events.publish_end()
        await self.context.close()
