"""What a machine is sold as, and what it runs inside of."""

from __future__ import annotations

from pathlib import Path

import pytest

from prony.instruments.device.machine import container, dmi, product, virtualization

from .machines import planted

DMI = "sys/class/dmi/id"
INTEL = {"proc/cpuinfo": "vendor_id : GenuineIntel"}


@pytest.mark.parametrize(
    ("files", "is_guest", "kind"),
    [
        ({f"{DMI}/sys_vendor": "QEMU", f"{DMI}/product_name": "Standard PC"}, True, "qemu"),
        ({f"{DMI}/sys_vendor": "Amazon EC2", f"{DMI}/product_name": "c7g.4xlarge"}, False, "amazon"),
        ({f"{DMI}/sys_vendor": "Amazon EC2", f"{DMI}/product_name": "c7g.metal"}, False, "none"),
        ({f"{DMI}/sys_vendor": "Microsoft Corporation", f"{DMI}/product_name": "Virtual Machine"}, True, "hyper-v"),
        (
            {f"{DMI}/sys_vendor": "Microsoft Corporation", f"{DMI}/product_name": "Surface Laptop"} | INTEL,
            False,
            "none",
        ),
        ({"proc/device-tree/hypervisor/compatible": "linux,kvm"}, False, "kvm"),
        ({"proc/device-tree/compatible": "linux,dummy-virt"}, False, "vm"),
        ({"sys/hypervisor/type": "xen"}, False, "xen"),
        ({"sys/hypervisor/type": "xen", "proc/xen/capabilities": "control_d"}, False, "none"),
        ({"proc/version": "Linux version 5.15.90.1-microsoft-standard-WSL2"}, True, "wsl"),
        (INTEL, True, "vm"),
        (INTEL, False, "none"),
        ({"proc/device-tree/model": "Raspberry Pi 5 Model B"}, False, "none"),
        ({}, False, None),
    ],
)
def test_the_hypervisor_is_found_by_what_it_leaves(
    tmp_path: Path, files: dict[str, str | int], is_guest: bool, kind: str | None
) -> None:
    assert virtualization(is_guest, planted(tmp_path, files)) == kind


@pytest.mark.parametrize(
    ("files", "environment", "kind"),
    [
        ({".dockerenv": ""}, {}, "docker"),
        ({"run/.containerenv": ""}, {}, "podman"),
        ({"proc/self/cgroup": "0::/kubepods/pod1/abc"}, {}, "kubernetes"),
        ({}, {"KUBERNETES_SERVICE_HOST": "10.0.0.1"}, "kubernetes"),
        ({}, {"APPTAINER_CONTAINER": "/x.sif"}, "apptainer"),
        ({"proc/self/cgroup": "4:memory:/lxc/box"}, {}, "lxc"),
        ({}, {"container": "systemd-nspawn"}, "systemd-nspawn"),
        ({"proc/self/cgroup": "0::/user.slice"}, {}, "none"),
    ],
)
def test_the_container_is_found_apart_from_the_machine(
    tmp_path: Path, files: dict[str, str | int], environment: dict[str, str], kind: str
) -> None:
    assert container(planted(tmp_path, files), environment) == kind


def test_what_a_maker_left_blank_is_no_product(tmp_path: Path) -> None:
    root = planted(
        tmp_path, {f"{DMI}/sys_vendor": "System manufacturer", f"{DMI}/product_name": "To Be Filled By O.E.M."}
    )
    assert dmi("sys_vendor", root) is None
    assert product(root) is None


def test_a_product_carries_its_vendor_once(tmp_path: Path) -> None:
    assert (
        product(planted(tmp_path / "a", {f"{DMI}/sys_vendor": "LENOVO", f"{DMI}/product_name": "21CB"}))
        == "LENOVO 21CB"
    )
    assert product(planted(tmp_path / "b", {f"{DMI}/sys_vendor": "HP", f"{DMI}/product_name": "HP Z2"})) == "HP Z2"
