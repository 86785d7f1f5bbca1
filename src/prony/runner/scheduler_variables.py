"""Take a scheduler's variables from an environment in which a launcher starts processes of its own."""

from __future__ import annotations

import re
from collections.abc import Mapping

# A launcher takes these for an order to start its processes by the scheduler, on its tasks and without our variables.
_SCHEDULER = re.compile(r"(SLURM_(?!CONF$)|SLURMD_|PMI_|PMIX_)")


def drop_scheduler_variables(environment: Mapping[str, str]) -> dict[str, str]:
    """Return the environment without what tells a launcher of an allocation."""
    return {name: value for name, value in environment.items() if not _SCHEDULER.match(name)}
