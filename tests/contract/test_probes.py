"""What every registered probe promises: it says why it has nothing to read, or it reads fast and counts upwards."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import pytest

from prony.plugins.probes.host import HostProbe
from prony.plugins.probes.nvidia import NvidiaProbe
from prony.plugins.probes.rapl import RaplProbe
from prony.ports.plugins import PROBES, find_plugins, load_plugin
from prony.ports.probe import Probe


@pytest.fixture(params=sorted(find_plugins(PROBES)))
def probe(request: pytest.FixtureRequest) -> Probe:
    made: Probe = load_plugin(PROBES, request.param)()
    return made


@pytest.fixture
def working(probe: Probe) -> Probe:
    reason = probe.available()
    if reason is not None:
        pytest.skip(reason)
    return probe


def cheapest(call: Callable[[], object]) -> float:
    """Return the seconds of the quickest of many calls: what it costs where nobody else has the machine."""
    costs = []
    for _ in range(100):
        begin = time.perf_counter()
        call()
        costs.append(time.perf_counter() - begin)
    return min(costs)


class TestEveryProbe:
    def test_is_registered_by_its_own_name(self, probe: Probe) -> None:
        assert probe.name in find_plugins(PROBES)

    def test_says_in_a_sentence_why_it_has_nothing_to_read_or_nothing(self, probe: Probe) -> None:
        reason = probe.available()
        assert reason is None or len(reason.split()) > 3

    def test_says_so_at_once(self, probe: Probe) -> None:
        probe.available()
        assert cheapest(probe.available) < 0.1

    def test_may_be_closed_unread(self, probe: Probe) -> None:
        assert probe.available() == probe.available()
        probe.close()

    def test_reads_floats_by_name(self, working: Probe) -> None:
        values = working.read()
        assert values
        assert all(isinstance(name, str) and isinstance(value, float) for name, value in values.items())

    def test_never_counts_backwards(self, working: Probe) -> None:
        before = working.read()
        for _ in range(20):
            after = working.read()
            totals = {name for name in before if name.endswith("_total")}
            assert all(after[name] >= before[name] for name in totals)
            before = after

    def test_reads_in_less_than_5_milliseconds(self, working: Probe) -> None:
        working.read()
        assert cheapest(working.read) < 0.005


def written(root: Path, files: dict[str, str]) -> Path:
    for name, content in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(content)
    return root


class TestHost:
    def test_a_counter_that_the_kernel_sets_back_stays_where_it_was(self, tmp_path: Path) -> None:
        root = written(tmp_path, {"proc/stat": "cpu 0\ncpu0 100 0 0 100 50 0 0 0\n"})
        probe = HostProbe(root)
        before = probe.read()
        written(root, {"proc/stat": "cpu 0\ncpu0 110 0 0 100 40 0 0 0\n"})
        after = probe.read()
        assert after["cpu_iowait_s_total"] == before["cpu_iowait_s_total"]
        assert after["cpu_busy_s_total"] > before["cpu_busy_s_total"]

    def test_what_the_machine_does_not_offer_is_absent(self, tmp_path: Path) -> None:
        assert HostProbe(tmp_path).read() == {}
        assert HostProbe(tmp_path).available() is not None

    def test_partitions_and_layers_are_not_counted_again(self, tmp_path: Path) -> None:
        lines = [f"8 0 {name} 1 0 {read} 0 1 0 {wrote} 0 0 0 0" for name, read, wrote in (
            ("sda", 100, 10), ("sda1", 100, 10), ("dm-0", 100, 10), ("loop0", 5, 0), ("nvme0n1", 1, 1),
        )]  # fmt: skip
        files = {f"sys/block/{name}/size": "1" for name in ("sda", "dm-0", "loop0", "nvme0n1")}
        values = HostProbe(written(tmp_path, {**files, "proc/diskstats": "\n".join(lines)})).read()
        assert values == {"disk_read_bytes_total": 101 * 512.0, "disk_written_bytes_total": 11 * 512.0}

    def test_the_loop_interface_is_not_network(self, tmp_path: Path) -> None:
        lines = "Inter-|\n face |\n    lo: 999 1 0 0 0 0 0 0 999 1\n  eth0: 70 1 0 0 0 0 0 0 30 1"
        values = HostProbe(written(tmp_path, {"proc/net/dev": lines})).read()
        assert values == {"network_received_bytes_total": 70.0, "network_sent_bytes_total": 30.0}


POWERCAP = "sys/class/powercap"


def meters(root: Path, package_uj: int = 900) -> Path:
    """One socket with memory, and the domains that would count a joule twice."""
    names = {"0": "package-0", "0:0": "core", "0:1": "dram", "1": "psys"}
    files = {f"{POWERCAP}/intel-rapl:{number}/name": f"{name}\n" for number, name in names.items()}
    files |= {f"{POWERCAP}/intel-rapl:{number}/energy_uj": "500\n" for number in names}
    files |= {f"{POWERCAP}/intel-rapl:{number}/max_energy_range_uj": "1000\n" for number in names}
    files |= {f"{POWERCAP}/intel-rapl-mmio:0/name": "package-0\n", f"{POWERCAP}/intel-rapl-mmio:0/energy_uj": "1\n"}
    return written(root, files | {f"{POWERCAP}/intel-rapl:0/energy_uj": f"{package_uj}\n"})


class TestRapl:
    def test_only_domains_that_may_be_added_up_are_read(self, tmp_path: Path) -> None:
        probe = RaplProbe(meters(tmp_path))
        assert probe.available() is None
        assert probe.read() == {"energy_package_0_uj_total": 900.0, "energy_package_0_dram_uj_total": 500.0}

    def test_a_full_counter_that_starts_again_goes_on_growing(self, tmp_path: Path) -> None:
        probe = RaplProbe(meters(tmp_path, package_uj=900))
        before = probe.read()["energy_package_0_uj_total"]
        meters(tmp_path, package_uj=150)
        assert probe.read()["energy_package_0_uj_total"] - before == 250
        meters(tmp_path, package_uj=100)
        assert probe.read()["energy_package_0_uj_total"] - before == 1200

    def test_without_counters_it_says_so(self, tmp_path: Path) -> None:
        assert "no CPU energy counters" in (RaplProbe(tmp_path).available() or "")
        assert RaplProbe(tmp_path).read() == {}

    def test_unreadable_counters_come_with_the_command_that_allows_them(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        # Root reads everything, so the answer of the system is what must be replaced here.
        monkeypatch.setattr("prony.plugins.probes.rapl.os.access", lambda *_: False)
        reason = RaplProbe(meters(tmp_path)).available() or ""
        assert "sudo chmod a+r /sys/class/powercap/intel-rapl:*/energy_uj" in reason


class TestNvidia:
    def test_memory_of_processes_is_absent_until_some_are_watched(self) -> None:
        probe = NvidiaProbe()
        assert "vram_used_mib" not in probe.read()

    def test_every_gpu_tells_its_memory_and_its_energy_where_there_is_one(self) -> None:
        probe = NvidiaProbe()
        if (reason := probe.available()) is not None:
            pytest.skip(reason)
        assert {"gpu0_memory_used_mib", "gpu0_busy", "gpu0_sm_mhz", "gpu0_temperature_c"} <= probe.read().keys()
