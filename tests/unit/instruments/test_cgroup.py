"""The smallest limit of a group and its ancestors is the one that binds."""

from __future__ import annotations

from pathlib import Path

import pytest

from prony.instruments import cgroup

from .machines import old_container, planted, xeon

V2_MOUNT = "31 24 0:27 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw"


def test_version_2_limits_are_inherited_from_an_ancestor(tmp_path: Path) -> None:
    root = xeon(tmp_path)
    assert cgroup.quota_cores(root) == pytest.approx(2.5)
    assert cgroup.memory_limit_bytes(root) == 4 * 2**30


def test_version_1_limits_are_found_where_the_mount_shows_only_the_container(tmp_path: Path) -> None:
    root = old_container(tmp_path)
    assert cgroup.quota_cores(root) == pytest.approx(1.5)
    assert cgroup.memory_limit_bytes(root) == 536870912


def test_the_smallest_of_several_quotas_wins(tmp_path: Path) -> None:
    files = {"proc/self/cgroup": "0::/a/b", "proc/self/mountinfo": V2_MOUNT}
    limits = {"sys/fs/cgroup/a/cpu.max": "400000 100000", "sys/fs/cgroup/a/b/cpu.max": "50000 100000"}
    assert cgroup.quota_cores(planted(tmp_path, files | limits)) == pytest.approx(0.5)


def test_the_enormous_number_of_version_1_means_no_limit(tmp_path: Path) -> None:
    root = old_container(tmp_path)
    planted(root, {"sys/fs/cgroup/memory/memory.limit_in_bytes": 9223372036854771712})
    assert cgroup.memory_limit_bytes(root) is None


def test_a_quota_of_minus_one_means_no_quota(tmp_path: Path) -> None:
    root = old_container(tmp_path)
    planted(root, {"sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us": -1})
    assert cgroup.quota_cores(root) is None


def test_both_versions_tell_throttling_in_microseconds(tmp_path: Path) -> None:
    new, old = xeon(tmp_path / "new"), old_container(tmp_path / "old")
    assert cgroup.throttled_us(cgroup.throttle_files(new)) == 1500
    assert cgroup.throttled_us(cgroup.throttle_files(old)) == 2500


def test_without_groups_nothing_is_known_and_nothing_is_claimed(tmp_path: Path) -> None:
    assert cgroup.quota_cores(tmp_path) is None
    assert cgroup.memory_limit_bytes(tmp_path) is None
    assert cgroup.throttled_us(cgroup.throttle_files(tmp_path)) is None


def test_a_group_of_a_foreign_namespace_is_taken_to_be_the_mount_itself(tmp_path: Path) -> None:
    files = {"proc/self/cgroup": "0::/../../elsewhere", "proc/self/mountinfo": V2_MOUNT}
    root = planted(tmp_path, files | {"sys/fs/cgroup/cpu.max": "100000 100000"})
    assert cgroup.quota_cores(root) == pytest.approx(1.0)


def test_this_machine_allows_some_cpu_time_or_says_nothing() -> None:
    quota = cgroup.quota_cores()
    assert quota is None or quota > 0
