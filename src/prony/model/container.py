"""Programs that run containers, by name."""

from __future__ import annotations

# Those that can start a server and publish its port, most wanted first.
ENGINES = ("podman", "docker")
# Those that can run a script.
WITH_APPTAINER = (*ENGINES, "apptainer", "singularity")
