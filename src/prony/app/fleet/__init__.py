"""The use cases of a fleet: experiments submitted, jobs lent to agents, results taken in, everything looked at.

One `Fleet` lives in each server process. What it holds in memory (see `floor.py`) only makes it quick: the database
alone is true, several servers may share one, and each may be killed at any instant.
"""

from __future__ import annotations

from prony.app.fleet.context import ChangeNotice, FleetSettings, LogPiece
from prony.app.fleet.glancing import Glancing
from prony.app.fleet.maintenance import Rounds
from prony.app.fleet.results import Results
from prony.app.fleet.scripts import Scripts

__all__ = ["ChangeNotice", "Fleet", "FleetSettings", "LogPiece"]


class Fleet(Results, Glancing, Scripts, Rounds):
    """Every method is async and raises PronyErrors only; their names are those of the REST operations."""
