"""CPU time is summed over trees of processes, those that ended meanwhile with them, and over nobody else."""

from __future__ import annotations

import os
import resource
import subprocess
import sys

import pytest

from prony.instruments.processes import ProcessTable, ProcessTimes, busiest_processes, tree_cpu_s

BURN = "import time\nend = time.process_time() + 0.4\nwhile time.process_time() < end: pass"


def table(at_s: float, **processes: tuple[int, float, float]) -> ProcessTable:
    """`p7=(parent, own, waited)` is process 7."""
    found = {int(name[1:]): ProcessTimes(one[0], name, 1.0, one[1], one[2]) for name, one in processes.items()}
    return ProcessTable(int(at_s * 1e9), found)


def test_a_tree_has_its_children_and_those_that_ended_in_it() -> None:
    before = table(0, p1=(0, 9, 9), p5=(1, 1, 0), p6=(5, 2, 0), p9=(1, 4, 0))
    after = table(1, p1=(0, 9, 9), p5=(1, 1.5, 2.25), p7=(5, 0.5, 0), p9=(1, 5, 0))
    assert tree_cpu_s(before, after, {5}) == pytest.approx(0.5 + 0.25 + 0.5)
    assert tree_cpu_s(before, after, {5, 9}) == pytest.approx(1.25 + 1)
    assert tree_cpu_s(before, after, {5}, alone={9}) == pytest.approx(1.25 + 1)


def test_a_root_that_ended_outside_of_the_tree_takes_nothing_back() -> None:
    assert tree_cpu_s(table(0, p5=(1, 7, 0)), table(1, p6=(1, 1, 0)), {5, 6}) == pytest.approx(1.0)


def test_the_busiest_are_named_and_a_child_that_ended_counts_once() -> None:
    before = table(0, p5=(1, 0, 0), p6=(5, 8, 0), p9=(1, 0, 0))
    after = table(2, p5=(1, 0, 9), p9=(1, 0.5, 0))
    assert busiest_processes(before, after, {9}, cpus=1) == {"p5": 0.5}
    assert busiest_processes(before, after, {5}, cpus=1) == {"p9": 0.25}


def test_what_a_grandchild_had_used_before_is_nobodys_when_it_ended_with_its_parent() -> None:
    before = table(0, p5=(1, 0, 0), p6=(5, 0, 0), p7=(6, 80, 0))
    after = table(2, p5=(1, 0, 81))
    assert busiest_processes(before, after, (), cpus=1) == {"p5": 0.5}


def test_what_our_own_children_used_is_ours_whether_they_still_run_or_not() -> None:
    before, begin = ProcessTable.read(), resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, "-c", BURN], check=True)
    after, end = ProcessTable.read(), resource.getrusage(resource.RUSAGE_CHILDREN)
    truth_s = end.ru_utime + end.ru_stime - begin.ru_utime - begin.ru_stime
    assert tree_cpu_s(before, after, {os.getpid()}) >= truth_s - 0.05
    assert os.getpid() in after.below({os.getppid()})
    assert os.getppid() in after.above(os.getpid())
