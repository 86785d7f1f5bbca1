"""Read the machine's product name, hypervisor and container from firmware tables and the system."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from prony.instruments import kernel

_DMI = "sys/class/dmi/id"
_TREE = "proc/device-tree"
# What makers leave in the tables when they fill in nothing.
_BLANK = (
    "to be filled",
    "system product name",
    "system manufacturer",
    "default string",
    "not specified",
    "o.e.m",
    "none",
)

# A word in the firmware's tables -> the hypervisor. First match wins: clouds come before what they are built on.
HYPERVISORS: tuple[tuple[str, str], ...] = (
    ("amazon ec2", "amazon"),
    ("google compute engine", "google"),
    ("alibaba cloud ecs", "alibaba"),
    ("openstack", "openstack"),
    ("firecracker", "firecracker"),
    ("virtualbox", "virtualbox"),
    ("innotek", "virtualbox"),
    ("vmware", "vmware"),
    ("parallels", "parallels"),
    ("apple virtualization", "apple"),
    ("bhyve", "bhyve"),
    ("hyper-v", "hyper-v"),
    ("microsoft corporation virtual machine", "hyper-v"),
    ("xen", "xen"),
    ("kvm", "kvm"),
    ("qemu", "qemu"),
    ("bochs", "bochs"),
)


def dmi(field: str, root: Path = kernel.ROOT) -> str | None:
    """Return one field of the firmware's tables, or None where it is absent or was left blank."""
    value = kernel.read_text(root / _DMI / field)
    blank = not value or any(word in value.lower() for word in _BLANK)
    return None if blank or value is None else " ".join(value.split())


def product(root: Path = kernel.ROOT) -> str | None:
    """Return what the machine is sold as: vendor and product, or a board's model."""
    vendor, name = dmi("sys_vendor", root), dmi("product_name", root)
    if name is None:
        return kernel.read_text(root / _TREE / "model") or None
    return name if vendor is None or name.lower().startswith(vendor.lower()) else f"{vendor} {name}"


def virtualization(is_guest: bool, root: Path = kernel.ROOT) -> str | None:
    """Return the hypervisor, `vm` where only its presence shows, `none` on bare metal, None where nothing tells.

    `is_guest` is the CPU's own word (the hypervisor flag, which only x86 has).
    """
    if "microsoft" in (kernel.read_text(root / "proc/version") or "").lower():
        return "wsl"
    named = _by_tree(root) or _by_tables(root)
    if named:
        return named
    if (kernel.read_text(root / "sys/hypervisor/type") or "") == "xen":
        # The first domain owns the hardware.
        return "none" if "control_d" in (kernel.read_text(root / "proc/xen/capabilities") or "") else "xen"
    if is_guest:
        return "vm"
    tables = dmi("sys_vendor", root) or kernel.read_text(root / _TREE / "model")
    return "none" if tables or _is_x86(root) else None


def container(root: Path = kernel.ROOT, environment: Mapping[str, str] = os.environ) -> str:
    """Return the kind of container that this process lives in, or `none`."""
    groups = kernel.read_text(root / "proc/self/cgroup") or ""
    signs = (
        ("kubernetes", "KUBERNETES_SERVICE_HOST" in environment or "kubepods" in groups),
        ("apptainer", "APPTAINER_CONTAINER" in environment or "SINGULARITY_CONTAINER" in environment),
        ("podman", (root / "run/.containerenv").exists()),
        ("docker", (root / ".dockerenv").exists() or "/docker" in groups),
        ("lxc", "/lxc" in groups),
    )
    found = next((name for name, is_there in signs if is_there), None)
    return (
        found
        or kernel.first((environment.get("container"), kernel.read_text(root / "run/systemd/container")))
        or "none"
    )


def _by_tree(root: Path) -> str | None:
    hypervisor = kernel.read_text(root / _TREE / "hypervisor/compatible")
    if hypervisor:
        return next((name for name in ("kvm", "xen", "vmware") if name in hypervisor), "vm")
    # The board that QEMU, Firecracker and others all pretend to be: it does not say which of them.
    return "vm" if "linux,dummy-virt" in (kernel.read_text(root / _TREE / "compatible") or "") else None


def _by_tables(root: Path) -> str | None:
    fields = ("sys_vendor", "product_name", "board_vendor", "bios_vendor", "product_version")
    words = " ".join(dmi(field, root) or "" for field in fields).lower()
    # The clouds' bare-metal machines carry the same vendor.
    if ".metal" in words:
        return "none"
    return next((name for word, name in HYPERVISORS if word in words), None)


def _is_x86(root: Path) -> bool:
    return "GenuineIntel" in (info := kernel.read_text(root / "proc/cpuinfo") or "") or "AuthenticAMD" in info
