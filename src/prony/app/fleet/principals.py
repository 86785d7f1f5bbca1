"""Who may speak for an agent."""

from __future__ import annotations

from prony.errors import AccessError
from prony.model.access import Principal, Role


def check_self(agent_id: str, who: Principal) -> None:
    """An agent may speak only for itself."""
    if who.role is Role.AGENT and who.agent_id != agent_id:
        whose = f"agent {who.agent_id}'s" if who.agent_id else "for enrolling"
        raise AccessError(f"this token is {whose}, not agent {agent_id}'s", hint="use the agent's own token")
