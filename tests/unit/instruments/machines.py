"""Machines that are not here, as the files that their kernels would show."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

X86_FLAGS = (
    "fpu vme sse2 ssse3 sse4_2 avx f16c rdrand hypervisor fma avx2 avx512f avx512dq avx512bw avx512vl avx_vnni "
    "avx512_bf16 avx512_vnni avx512_fp16 amx_bf16 amx_tile amx_int8"
)
CPU = "sys/devices/system/cpu"


def planted(root: Path, files: Mapping[str, str | int]) -> Path:
    """Write the files under a root and return it."""
    for name, content in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"{content}\n")
    return root


def xeon(root: Path) -> Path:
    """Two sockets of two cores with two threads each, with AMX, inside KVM, limited by version 2 groups."""
    blocks = "\n".join(
        f"processor\t: {cpu}\nvendor_id\t: GenuineIntel\ncpu family\t: 6\nmodel\t\t: 143\n"
        f"model name\t: Intel(R) Xeon(R)  Platinum 8481C CPU @ 2.70GHz\nstepping\t: 8\nmicrocode\t: 0xffffffff\n"
        f"cpu MHz\t\t: 2699.998\nflags\t\t: {X86_FLAGS}\n"
        for cpu in range(8)
    )
    files: dict[str, str | int] = {
        "proc/cpuinfo": blocks,
        "proc/meminfo": "MemTotal:       32886264 kB\nMemAvailable:   30000000 kB\nSwapTotal: 0 kB\nSwapFree: 0 kB",
        "proc/self/cgroup": "0::/pod/inner",
        "proc/self/mountinfo": "31 24 0:27 / /sys/fs/cgroup rw,nosuid - cgroup2 cgroup2 rw,nsdelegate",
        "sys/fs/cgroup/pod/cpu.max": "250000 100000",
        "sys/fs/cgroup/pod/memory.max": 4 * 2**30,
        "sys/fs/cgroup/pod/inner/cpu.max": "max 100000",
        "sys/fs/cgroup/pod/inner/memory.max": "max",
        "sys/fs/cgroup/pod/inner/cpu.stat": "usage_usec 1\nnr_throttled 2\nthrottled_usec 1500",
        "sys/class/dmi/id/sys_vendor": "Google",
        "sys/class/dmi/id/product_name": "Google Compute Engine",
        f"{CPU}/online": "0-7",
        "sys/devices/system/node/online": "0-1",
        "sys/devices/system/memory/block_size_bytes": "8000000",
    }
    files |= {f"sys/devices/system/memory/memory{block}/online": 1 for block in range(256)}
    for cpu in range(8):
        files |= {
            f"{CPU}/cpu{cpu}/topology/core_cpus_list": f"{cpu // 2 * 2}-{cpu // 2 * 2 + 1}",
            **_cache(cpu, 0, 1, "Data", "48K", f"{cpu // 2 * 2}-{cpu // 2 * 2 + 1}"),
            **_cache(cpu, 1, 1, "Instruction", "32K", f"{cpu // 2 * 2}-{cpu // 2 * 2 + 1}"),
            **_cache(cpu, 2, 2, "Unified", "2048K", f"{cpu // 2 * 2}-{cpu // 2 * 2 + 1}"),
            **_cache(cpu, 3, 3, "Unified", "105M", "0-3" if cpu < 4 else "4-7"),
        }
    return planted(root, files)


def phone(root: Path) -> Path:
    """Four little, three big and one prime ARM core, whose core ids repeat in every cluster; nothing virtual."""
    kinds = [(0xD46, "1", 280)] * 4 + [(0xD4D, "2", 800)] * 3 + [(0xD4E, "3", 1024)]
    blocks = "\n".join(
        f"processor\t: {cpu}\nFeatures\t: fp asimd asimdhp asimddp i8mm bf16{' sve2' if cpu > 3 else ''}\n"
        f"CPU implementer\t: 0x41\nCPU architecture: 8\nCPU variant\t: 0x{variant}\n"
        f"CPU part\t: {part:#x}\nCPU revision\t: 1\n"
        for cpu, (part, variant, _) in enumerate(kinds)
    )
    files: dict[str, str | int] = {
        "proc/cpuinfo": blocks,
        "proc/device-tree/model": "Handset Board\0",
        "proc/device-tree/compatible": "maker,board\0maker,soc\0",
        f"{CPU}/online": "0-7",
    }
    for cpu, (_, _, capacity) in enumerate(kinds):
        files |= {
            f"{CPU}/cpu{cpu}/cpu_capacity": capacity,
            f"{CPU}/cpu{cpu}/topology/core_id": cpu % 4,
            f"{CPU}/cpu{cpu}/topology/thread_siblings_list": cpu,
            f"{CPU}/cpu{cpu}/cpufreq/cpuinfo_max_freq": 2_000_000 if cpu < 4 else 3_200_000,
        }
    return planted(root, files)


def laptop(root: Path) -> Path:
    """A hybrid Intel laptop, on its battery, warm, with turbo on and a saving governor."""
    files: dict[str, str | int] = {
        "proc/cpuinfo": "processor : 0\nvendor_id : GenuineIntel\nflags : avx avx2 fma avx_vnni\nmodel name : 12th Gen",
        "proc/loadavg": "3.10 1.00 0.50 2/900 1234",
        "proc/meminfo": "MemTotal: 16000000 kB\nMemAvailable: 900000 kB\nSwapTotal: 8000000 kB\nSwapFree: 4000000 kB",
        "proc/vmstat": "pswpin 10\npswpout 20\noom_kill 0",
        "proc/pressure/cpu": "some avg10=7.50 avg60=1.00 avg300=0.10 total=123456\nfull avg10=0.00 avg60=0.00 total=0",
        "proc/sys/kernel/randomize_va_space": 0,
        "sys/class/dmi/id/sys_vendor": "LENOVO",
        "sys/class/dmi/id/product_name": "21CB",
        "sys/devices/cpu_core/cpus": "0-3",
        "sys/devices/cpu_atom/cpus": "4-5",
        f"{CPU}/online": "0-5",
        f"{CPU}/smt/active": 1,
        f"{CPU}/intel_pstate/no_turbo": 0,
        f"{CPU}/cpufreq/policy0/scaling_governor": "powersave",
        f"{CPU}/cpufreq/policy0/energy_performance_preference": "balance_power",
        f"{CPU}/cpufreq/policy0/scaling_max_freq": 2_000_000,
        f"{CPU}/cpufreq/policy0/cpuinfo_max_freq": 4_000_000,
        "sys/class/power_supply/AC/type": "Mains",
        "sys/class/power_supply/AC/online": 0,
        "sys/class/power_supply/BAT0/type": "Battery",
        "sys/class/power_supply/BAT0/status": "Discharging",
        "sys/class/power_supply/BAT0/capacity": 61,
        "sys/class/power_supply/mouse/type": "Battery",
        "sys/class/power_supply/mouse/scope": "Device",
        "sys/class/power_supply/mouse/capacity": 5,
        "sys/firmware/acpi/platform_profile": "low-power",
        "sys/class/hwmon/hwmon3/name": "coretemp",
        "sys/class/hwmon/hwmon3/temp1_input": 93000,
        "sys/class/hwmon/hwmon3/temp1_crit": 100000,
        "sys/class/hwmon/hwmon4/name": "nvme",
        "sys/class/hwmon/hwmon4/temp1_input": 99000,
        "sys/kernel/mm/transparent_hugepage/enabled": "always [madvise] never",
        "sys/devices/system/clocksource/clocksource0/current_clocksource": "hpet",
    }
    for cpu in range(6):
        siblings = f"{cpu // 2 * 2}-{cpu // 2 * 2 + 1}" if cpu < 4 else cpu
        files |= {
            f"{CPU}/cpu{cpu}/topology/core_cpus_list": siblings,
            f"{CPU}/cpu{cpu}/cpufreq/scaling_cur_freq": 1_900_000,
            f"{CPU}/cpu{cpu}/thermal_throttle/core_throttle_count": 3 if cpu == 0 else 0,
        }
    return planted(root, files)


def old_container(root: Path) -> Path:
    """Docker on version 1 groups, no namespace of its own: the path is the host's, the mount is the container's."""
    host = "/docker/0a1b2c"
    mount = "{0} 30 0:3{0} {1} /sys/fs/cgroup/{2} ro - cgroup cgroup rw,{3}"
    return planted(
        root,
        {
            "proc/self/cgroup": f"5:memory:{host}\n4:cpu,cpuacct:{host}\n1:name=systemd:{host}",
            "proc/self/mountinfo": "\n".join(
                (mount.format(3, host, "cpu,cpuacct", "cpu,cpuacct"), mount.format(4, host, "memory", "memory"))
            ),
            "sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us": 150000,
            "sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us": 100000,
            "sys/fs/cgroup/cpu,cpuacct/cpu.stat": "nr_periods 9\nnr_throttled 3\nthrottled_time 2500000",
            "sys/fs/cgroup/memory/memory.limit_in_bytes": 536870912,
        },
    )


def _cache(cpu: int, index: int, level: int, kind: str, size: str, shared: str) -> dict[str, str | int]:
    folder = f"{CPU}/cpu{cpu}/cache/index{index}"
    return {
        f"{folder}/level": level,
        f"{folder}/type": kind,
        f"{folder}/size": size,
        f"{folder}/shared_cpu_list": shared,
    }
