"""GPUs as the kernel, NVIDIA's library and macOS tell them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from prony.instruments.device import apple, nvidia, windows
from prony.instruments.device.linux import drm_gpus

from .machines import planted

CARD = "sys/class/drm/card1"


def instinct(root: Path) -> Path:
    files: dict[str, str | int] = {
        f"{CARD}/device/vendor": "0x1002",
        f"{CARD}/device/device": "0x74a1",
        f"{CARD}/device/unique_id": "0123456789abcdef",
        f"{CARD}/device/mem_info_vram_total": 192 * 2**30,
        f"{CARD}/device/max_link_width": 16,
        f"{CARD}/device/hwmon/hwmon5/power1_cap": 750_000_000,
        f"{CARD}/device/drm/renderD128/dev": "226:128",
        f"{CARD}-HDMI-A-1/status": "connected",
        "sys/class/kfd/kfd/topology/nodes/0/properties": "cpu_cores_count 64\ngfx_target_version 0",
        "sys/class/kfd/kfd/topology/nodes/1/properties": "gfx_target_version 90402\ndrm_render_minor 128",
        "usr/share/hwdata/pci.ids": "1001  One\n\t74a1  Wrong\n1002  AMD\n\t74a1  Aqua Vanjaram [MI300X]\n8086  Intel",
        "sys/class/drm/card0/device/vendor": "0x1a03",
    }
    return planted(root, files)


def test_an_amd_card_is_read_from_the_kernel(tmp_path: Path) -> None:
    (gpu,) = drm_gpus(instinct(tmp_path), first=2)
    assert gpu.name == "AMD Aqua Vanjaram [MI300X]"
    assert (gpu.index, gpu.vendor, gpu.memory_mib, gpu.pcie_width) == (2, "amd", 192 * 1024, 16)
    assert gpu.compute_capability == "gfx942"
    assert "fp8" in gpu.precisions
    assert gpu.power_limit_w == pytest.approx(750)
    assert gpu.uuid_hash is not None
    assert "0123456789abcdef" not in gpu.uuid_hash


def test_a_card_that_no_list_names_keeps_its_number_and_claims_nothing(tmp_path: Path) -> None:
    (gpu,) = drm_gpus(planted(tmp_path, {f"{CARD}/device/vendor": "0x8086", f"{CARD}/device/device": "0x46a6"}))
    assert gpu.name == "Intel GPU 0x46a6"
    assert (gpu.memory_mib, gpu.compute_capability, gpu.precisions, gpu.uuid_hash) == (None, None, (), None)


def test_a_vendor_that_was_asked_otherwise_is_not_listed_twice(tmp_path: Path) -> None:
    root = planted(tmp_path, {f"{CARD}/device/vendor": "0x10de", f"{CARD}/device/device": "0x2684"})
    assert [gpu.vendor for gpu in drm_gpus(root)] == ["nvidia"]
    assert drm_gpus(root, passed_over=frozenset({"nvidia"})) == ()


@pytest.mark.parametrize(
    ("capability", "has", "lacks"),
    [
        ((6, 1), {"int8", "fp32"}, {"fp16", "bf16"}),
        ((7, 0), {"fp16", "int8", "fp64"}, {"bf16", "tf32", "int4"}),
        ((7, 2), {"fp16", "int8"}, {"bf16"}),
        ((7, 5), {"fp16", "int8", "int4"}, {"bf16"}),
        ((8, 6), {"bf16", "tf32", "int8", "int4"}, {"fp8"}),
        ((8, 9), {"bf16", "fp8", "int4"}, {"fp4"}),
        ((9, 0), {"bf16", "fp8", "int8", "tf32"}, {"fp4", "int4"}),
        ((10, 0), {"fp8", "fp4"}, {"int4"}),
        ((12, 0), {"fp8", "fp4", "fp6"}, {"int4"}),
    ],
)
def test_precisions_follow_the_compute_capability(capability: tuple[int, int], has: set[str], lacks: set[str]) -> None:
    assert has <= set(nvidia.precisions(capability))
    assert not lacks & set(nvidia.precisions(capability))


def test_idling_and_a_users_own_clocks_are_no_throttling() -> None:
    assert nvidia.throttles(0x1 | 0x2) == ()
    assert nvidia.throttles(0x4 | 0x40) == ("power cap", "thermal (hardware)")


def test_every_nvidia_gpu_here_is_told_in_full() -> None:
    for gpu in nvidia.nvidia_gpus():
        assert gpu.vendor == "nvidia"
        assert gpu.memory_mib
        assert gpu.compute_capability
        assert "fp32" in gpu.precisions
        assert gpu.driver


SYSCTL = """\
hw.memsize: 17179869184
hw.model: Mac14,2
hw.ncpu: 8
hw.logicalcpu: 8
hw.physicalcpu: 8
hw.nperflevels: 2
hw.perflevel0.physicalcpu: 4
hw.perflevel1.physicalcpu: 4
hw.perflevel0.l1dcachesize: 131072
hw.perflevel0.l2cachesize: 16777216
hw.cpufamily: 3660830781
hw.optional.arm64: 1
hw.optional.AdvSIMD: 1
hw.optional.arm.FEAT_DotProd: 1
hw.optional.arm.FEAT_BF16: 1
hw.optional.arm.FEAT_I8MM: 1
hw.optional.arm.FEAT_SME: 0
machdep.cpu.brand_string: Apple M2
kern.hv_vmm_present: 0"""
DISPLAYS = json.dumps({"SPDisplaysDataType": [{"sppci_model": "Apple M2", "spdisplays_vendor": "sppci_vendor_Apple"}]})


def test_a_mac_is_read_from_what_sysctl_says() -> None:
    hardware = apple.hardware(apple.sysctls(SYSCTL), DISPLAYS)
    cpu = hardware.cpu
    assert (cpu.model, cpu.vendor, cpu.architecture) == ("Apple M2", "Apple", "arm64")
    assert (cpu.physical_cores, cpu.performance_cores, cpu.efficiency_cores) == (8, 4, 4)
    assert cpu.flags == ("asimd", "asimddp", "bf16", "i8mm")
    assert cpu.caches == {"L1d_kib": 128, "L2_kib": 16384}
    assert (hardware.memory_mib, hardware.machine, hardware.virtualization) == (16384, "Mac14,2", "none")
    assert [(gpu.name, gpu.vendor, gpu.memory_mib) for gpu in hardware.gpus] == [("Apple M2", "apple", None)]


def test_a_mac_that_answers_nothing_is_unknown() -> None:
    hardware = apple.hardware({}, "not json")
    assert (hardware.cpu.model, hardware.gpus, hardware.virtualization) == (None, (), None)


def test_a_windows_cpu_is_read_from_the_registrys_words() -> None:
    said = {
        "Identifier": "Intel64 Family 6 Model 140 Stepping 1",
        "ProcessorNameString": "11th Gen Intel(R) Core(TM)  i7-1165G7 ",
        "VendorIdentifier": "GenuineIntel",
    }
    cpu = windows.cpu(said, {"avx2", "sse"}, logical=8, physical=4)
    assert (cpu.family, cpu.model_number, cpu.stepping) == (6, 140, 1)
    assert cpu.model == "11th Gen Intel(R) Core(TM) i7-1165G7"
    assert cpu.flags == ("avx2",)


def test_windows_firmware_names_its_hypervisor_or_nothing() -> None:
    assert windows.virtualization({"SystemProductName": "Virtual Machine"}) == "hyper-v"
    assert windows.virtualization({"SystemProductName": "XPS 13"}) is None
