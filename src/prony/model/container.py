"""Programs that run containers, by name."""

from __future__ import annotations

# Those that can start a server and publish its port, most wanted first.
ENGINES = ("podman", "docker")
# What runs an image as a container of the pod that Prony itself is in; there alone it is on the path.
POD = "prony-pod"
# Those that can run a script.
WITH_APPTAINER = (*ENGINES, "apptainer", "singularity")
