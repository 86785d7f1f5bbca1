"""Track the agent's state and the allowed transitions between states."""

from __future__ import annotations

from collections.abc import Callable

from prony.model.agent import AgentState
from prony.model.states import AGENT, check


class Condition:
    """The agent's state as it sees itself. One that drains stays so until it may go on, whatever it runs."""

    def __init__(self, told: Callable[[AgentState, AgentState], None] = lambda *_: None) -> None:
        self.state = AgentState.ACTIVE
        self._told = told

    def to(self, state: AgentState) -> None:
        """Move, or refuse; what an agent that drains does does not change that it drains."""
        if state is self.state or (self.is_draining and state in (AgentState.BUSY, AgentState.CLEANUP)):
            return
        check(AGENT, "this agent", self.state, state)
        before, self.state = self.state, state
        self._told(before, state)

    def rest(self) -> None:
        """Be ready for the next job, unless there is to be none."""
        if not self.is_draining:
            self.to(AgentState.ACTIVE)

    @property
    def is_draining(self) -> bool:
        return self.state is AgentState.DRAINING
