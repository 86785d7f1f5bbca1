"""Programs that run containers, by name, and how images are named."""

from __future__ import annotations

# Those that can start a server and publish its port, most wanted first.
ENGINES = ("podman", "docker")
# What runs an image as a container of the pod that Prony itself is in; there alone it is on the path.
POD = "prony-pod"
# Those that can run a script.
WITH_APPTAINER = (*ENGINES, "apptainer", "singularity")


def check_image_name(name: str) -> str:
    """Return the name of an image; one that a container engine would take for an option is refused."""
    if name.startswith("-"):
        raise ValueError(f"{name!r} is an option, not the name of an image")
    return name
