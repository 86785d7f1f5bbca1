"""A machine's fingerprint: what it is, found from the files of its kernel, and two hashes that stay."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from prony.instruments.device import cpuinfo, detect, device_name, digest, hardware_id, software_id
from prony.instruments.device import cpuinfo as arm
from prony.instruments.device.cpuinfo import KNOWN
from prony.instruments.device.linux import installed_mib, read_hardware
from prony.instruments.device.software import kernel_variables, mitigations, os_version
from prony.model.device import Cpu, Gpu, Hardware

from .machines import laptop, old_container, phone, planted, xeon


def test_a_xeon_guest_is_read_whole(tmp_path: Path) -> None:
    hardware, microcode = read_hardware(root=xeon(tmp_path), allowed=8)
    cpu = hardware.cpu
    assert cpu.model == "Intel(R) Xeon(R) Platinum 8481C CPU @ 2.70GHz"
    assert (cpu.vendor, cpu.family, cpu.model_number, cpu.stepping) == ("GenuineIntel", 6, 143, 8)
    assert {"avx512f", "avx512_vnni", "avx512_bf16", "avx512_fp16", "amx_tile", "amx_int8", "amx_bf16"} <= set(
        cpu.flags
    )
    assert "hypervisor" not in cpu.flags
    assert (cpu.logical_cores, cpu.physical_cores, cpu.numa_nodes) == (8, 4, 2)
    assert (cpu.performance_cores, cpu.efficiency_cores) == (None, None)
    assert cpu.caches == {
        "L1d_kib": 48, "L1i_kib": 32, "L2_kib": 2048, "L3_kib": 105 * 1024, "L3_total_kib": 210 * 1024,
    }  # fmt: skip
    assert cpu.quota_cores == pytest.approx(2.5)
    assert hardware.memory_installed_mib == 32 * 1024
    assert hardware.memory_limit_mib == 4096
    assert hardware.virtualization == "google"
    assert hardware.machine == "Google Compute Engine"
    assert microcode == "0xffffffff"


def test_a_phone_has_big_and_little_cores_and_only_the_flags_they_share(tmp_path: Path) -> None:
    hardware, _ = read_hardware(root=phone(tmp_path), allowed=8)
    cpu = hardware.cpu
    assert cpu.model == "Cortex-A510 + Cortex-A715 + Cortex-X3"
    assert (cpu.physical_cores, cpu.performance_cores, cpu.efficiency_cores) == (8, 4, 4)
    assert cpu.flags == ("asimd", "asimddp", "asimdhp", "bf16", "i8mm")
    assert cpu.max_mhz == pytest.approx(3200)
    assert hardware.virtualization == "none"
    assert hardware.machine == "Handset Board"


def test_a_hybrid_laptop_counts_cores_and_not_their_threads(tmp_path: Path) -> None:
    cpu = read_hardware(root=laptop(tmp_path), allowed=6)[0].cpu
    assert (cpu.logical_cores, cpu.physical_cores) == (6, 4)
    assert (cpu.performance_cores, cpu.efficiency_cores) == (2, 2)


def test_favoured_cores_with_a_slightly_higher_clock_are_not_another_kind(tmp_path: Path) -> None:
    folder = "sys/devices/system/cpu"
    clocks: dict[str, str | int] = {
        f"{folder}/cpu{cpu}/cpufreq/cpuinfo_max_freq": 5_100_000 + 200_000 * (cpu == 0) for cpu in range(4)
    }
    cpu = read_hardware(root=planted(tmp_path, {f"{folder}/online": "0-3", **clocks}), allowed=4)[0].cpu
    assert (cpu.performance_cores, cpu.efficiency_cores, cpu.max_mhz) == (None, None, 5300)


def test_an_empty_machine_is_unknown_and_not_invented(tmp_path: Path) -> None:
    hardware, microcode = read_hardware(root=tmp_path, allowed=1)
    cpu = hardware.cpu
    assert (cpu.model, cpu.vendor, cpu.physical_cores, cpu.numa_nodes, cpu.max_mhz) == (None, None, None, None, None)
    assert (cpu.flags, cpu.caches) == ((), {})
    assert (hardware.virtualization, hardware.machine, hardware.memory_installed_mib) == (None, None, None)
    assert microcode is None


@pytest.mark.parametrize(
    ("implementer", "part", "name"),
    [
        (0x41, 0xD0C, "Neoverse-N1"),
        (0x41, 0xD4F, "Neoverse-V2"),
        (0x61, 0x023, "M1 Firestorm"),
        (0xC0, 0xAC3, "AmpereOne"),
        (0x41, 0xFFF, "ARM part 0xfff"),
        (0x99, 0x123, "implementer 0x99 part 0x123"),
    ],
)
def test_an_arm_core_is_named_and_an_unknown_one_keeps_its_numbers(implementer: int, part: int, name: str) -> None:
    assert arm.core_name(implementer, part) == name


def test_the_chip_is_named_only_where_the_machines_vendor_tells_it() -> None:
    assert arm.chip_name("Neoverse-V1", "Amazon EC2") == "AWS Graviton3 (Neoverse-V1)"
    assert arm.chip_name("Neoverse-V1", None) == "Neoverse-V1"


def test_a_risc_machine_with_vectors_says_so() -> None:
    who = cpuinfo.identify(
        "processor : 0\nhart : 1\nisa : rv64imafdcv_zicbom\nuarch : sifive,p550\nmvendorid : 0x489\n"
    )
    assert (who.model, who.vendor, who.flags) == ("sifive,p550", "0x489", ("rvv",))


def test_memory_that_a_limit_does_not_reach_is_not_limited(tmp_path: Path) -> None:
    root = old_container(tmp_path)
    planted(root, {"proc/meminfo": "MemTotal: 262144 kB"})
    assert read_hardware(root=root, allowed=1)[0].memory_limit_mib is None
    assert installed_mib(root) is None


def sample() -> Hardware:
    gpus = tuple(Gpu(index=index, name="GPU", vendor="nvidia", uuid_hash=f"{index}") for index in range(2))
    cpu = Cpu(
        architecture="x86_64", logical_cores=4, allowed_cores=4, flags=("avx2",), caches={"L1d_kib": 32, "L2_kib": 1}
    )
    return Hardware(cpu=cpu, memory_mib=32000, memory_installed_mib=32768, gpus=gpus)


def test_the_order_of_keys_and_of_gpus_does_not_change_the_id() -> None:
    hardware = sample()
    turned = hardware.cpu.model_copy(update={"caches": {"L2_kib": 1, "L1d_kib": 32}})
    other = hardware.model_copy(update={"cpu": turned, "gpus": hardware.gpus[::-1]})
    assert hardware_id(other) == hardware_id(hardware)
    assert digest({"a": 1, "b": [2]}) == digest({"b": [2], "a": 1})


@pytest.mark.parametrize(
    "change", [{"flags": ("avx2", "amx_int8")}, {"quota_cores": 2.0}, {"allowed_cores": 2}, {"caches": {"L1d_kib": 48}}]
)
def test_another_cpu_is_another_device(change: dict[str, object]) -> None:
    hardware = sample()
    assert hardware_id(hardware.model_copy(update={"cpu": hardware.cpu.model_copy(update=change)})) != hardware_id(
        hardware
    )


def test_what_changes_by_itself_does_not_change_the_device() -> None:
    hardware = sample()
    cooler = hardware.cpu.model_copy(update={"max_mhz": 1000.0})
    gpus = tuple(gpu.model_copy(update={"driver": "580"}) for gpu in hardware.gpus)
    other = hardware.model_copy(update={"cpu": cooler, "gpus": gpus, "memory_mib": 31990, "machine": "renamed"})
    assert hardware_id(other) == hardware_id(hardware)


def test_a_little_less_counted_memory_is_the_same_device_even_where_the_fitted_is_unknown() -> None:
    hardware = sample().model_copy(update={"memory_installed_mib": None})
    assert hardware_id(hardware.model_copy(update={"memory_mib": 31980})) == hardware_id(hardware)
    assert hardware_id(hardware.model_copy(update={"memory_mib": 16000})) != hardware_id(hardware)


def test_variables_that_change_kernels_are_kept_and_secrets_are_not() -> None:
    given = {
        "OMP_NUM_THREADS": "4",
        "CUDA_VISIBLE_DEVICES": "0",
        "TF_VAR_password": "x",
        "TF_TOKEN_host": "x",
        "ORT_API_KEY": "x",
        "HOME": "/x",
    }
    assert kernel_variables(given) == {"CUDA_VISIBLE_DEVICES": "0", "OMP_NUM_THREADS": "4"}


def test_the_system_and_its_mitigations_are_named(tmp_path: Path) -> None:
    folder = "sys/devices/system/cpu/vulnerabilities"
    files = {
        "etc/os-release": 'NAME="Some Linux"\nPRETTY_NAME="Some Linux 9 (nine)"',
        f"{folder}/meltdown": "Not affected",
        f"{folder}/spectre_v2": "Mitigation: IBRS",
    }
    root = planted(tmp_path, files)
    assert mitigations(root) == {"spectre_v2": "Mitigation: IBRS"}
    if sys.platform == "linux":
        assert os_version(root) == "Some Linux 9 (nine)"


@pytest.mark.parametrize(
    ("host", "machine", "name"),
    [
        ("lab-7", "Board", "lab-7"),
        ("localhost", "Board", "Board"),
        ("vm", None, "vm"),
        ("0a1b2c3d4e5f", "Board", "Board"),
    ],
)
def test_a_stock_hostname_gives_way_to_the_product(host: str, machine: str | None, name: str) -> None:
    assert device_name(host, sample().model_copy(update={"machine": machine})) == name


class TestThisMachine:
    def test_counts_are_consistent(self) -> None:
        cpu = detect().hardware.cpu
        assert cpu.allowed_cores is not None
        assert cpu.logical_cores is not None
        assert 1 <= cpu.allowed_cores <= cpu.logical_cores
        assert cpu.physical_cores is None or 1 <= cpu.physical_cores <= cpu.logical_cores
        assert set(cpu.flags) <= KNOWN
        assert cpu.quota_cores is None or cpu.quota_cores > 0

    def test_memory_is_there(self) -> None:
        hardware = detect().hardware
        assert hardware.memory_mib is not None
        assert hardware.memory_mib > 100
        assert hardware.memory_installed_mib is None or hardware.memory_installed_mib >= hardware.memory_mib

    def test_the_software_names_what_is_installed_here(self) -> None:
        software = detect().software
        assert software.os == {"linux": "linux", "darwin": "darwin", "win32": "windows"}[sys.platform]
        assert software.packages["numpy"].count(".") >= 1
        assert software.kernel

    def test_the_ids_are_those_of_the_documents(self) -> None:
        device = detect()
        assert device.hardware_id == hardware_id(device.hardware)
        assert device.software_id == software_id(device.software)
        assert len(device.hardware_id) == len(device.software_id) == 16

    def test_another_process_finds_the_same_ids(self) -> None:
        code = "from prony.instruments.device import detect; d = detect(); print(d.hardware_id, d.software_id)"
        environment = {name: value for name, value in os.environ.items() if name != "PYTHONHASHSEED"}
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environment)
        detect.cache_clear()  # an earlier test may have asked under other variables
        assert done.stdout.split() == [detect().hardware_id, detect().software_id]

    def test_it_is_found_out_in_a_moment(self) -> None:
        costs: list[float] = []
        for _ in range(5):
            detect.cache_clear()
            begin = time.thread_time()
            detect()
            costs.append(time.thread_time() - begin)
        if detect().hardware.gpus == () and sys.platform == "linux":
            assert min(costs) < 0.05
