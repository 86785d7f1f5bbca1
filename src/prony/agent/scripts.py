"""Fetch a script's folder from the server into this agent's cache, by its checksum."""

from __future__ import annotations

import asyncio
import tempfile
from pathlib import Path

from prony.agent.server_client import ask_again_for
from prony.model.job import Job
from prony.ports.agent_link import ServerLink
from prony.runner.scripts.packing import REFERENCE, unpack_scripts
from prony.store.home import Home

_FETCH_S = 60.0


async def fetch_scripts(job: Job, link: ServerLink, home: Home) -> None:
    """Have the folder of a script here, if it has one that travels; what cannot be had is raised."""
    found = REFERENCE.fullmatch(job.workload.folder or "")
    if found is None or (home.cache / "scripts" / found[1]).is_dir():
        return
    (home.cache / "scripts").mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".coming-", dir=home.cache / "scripts") as scratch:
        tar = Path(scratch) / "scripts.tar"
        await ask_again_for(lambda: link.scripts(found[1], tar), _FETCH_S)
        await asyncio.to_thread(unpack_scripts, tar, found[1], home.cache)
