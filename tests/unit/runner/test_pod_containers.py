"""A service's container of a pod, by a shell of this machine that runs what the pod would run there."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from prony.plugins.executors.kubernetes_objects import KubernetesOptions, PackedPayload, render_job
from prony.runner import pod_containers
from prony.runner.services.process_tree import descendants
from servers.waiting import wait_for

IMAGE = "registry.example/redis:7"
Command = Callable[..., "subprocess.Popen[bytes]"]


@pytest.fixture
def shell(tmp_path: Path) -> Iterator[subprocess.Popen[bytes]]:
    """The shell of a container whose pod is this machine."""
    job = render_job(KubernetesOptions(image="i"), PackedPayload("k", (b"",), "", (IMAGE,)))
    (service,) = [one for one in job["spec"]["template"]["spec"]["containers"] if one["name"] == "service-0"]
    assert service["image"] == IMAGE
    os.mkfifo(tmp_path / "asked")
    script = service["command"][2].replace("$$", "$").replace("/prony/services/$SERVICE_NUMBER", str(tmp_path))
    process = subprocess.Popen(["/bin/sh", "-c", script])
    yield process
    for pid in descendants(process.pid):
        os.kill(pid, signal.SIGKILL)
    process.kill()
    process.wait()


@pytest.fixture
def prony_pod(tmp_path: Path) -> Command:
    """Return what starts the program with these words."""
    (tmp_path / "0").symlink_to(tmp_path)
    code = (
        "import pathlib, sys; from prony.runner import pod_containers as one; "
        f"one.SERVICES = pathlib.Path({str(tmp_path)!r}); sys.exit(one.main(sys.argv[1:]))"
    )
    given = os.environ | {pod_containers.IMAGES_VARIABLE: IMAGE, "SECRET": "it's"}

    def start(*words: str) -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            [sys.executable, "-P", "-c", code, *words], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env=given
        )

    return start


def test_a_service_prints_ends_and_is_started_again(shell: subprocess.Popen[bytes], prony_pod: Command) -> None:
    assert shell.poll() is None
    for code in (0, 3):
        words = ("--rm", "--name=prony-a", "--env=SECRET", "--volume=/x:/x", "--entrypoint=/bin/sh", IMAGE)
        process = prony_pod("run", *words, "-c", f'echo "$SECRET $1"; exit {code}', "x", "two words")
        out, _ = process.communicate()
        assert (process.returncode, out) == (code, b"it's two words\n")
        assert prony_pod("rm", "--force", "--volumes", "prony-a").wait() == 0


def test_a_stop_reaches_the_service(shell: subprocess.Popen[bytes], prony_pod: Command, tmp_path: Path) -> None:
    script = f"trap 'exit 7' TERM; touch {tmp_path}/ready; while :; do sleep 0.05; done"
    process = prony_pod("run", "--name=prony-b", "--entrypoint=/bin/sh", IMAGE, "-c", script)
    wait_for((tmp_path / "ready").exists)
    process.terminate()
    process.communicate()
    assert process.returncode == 7
    assert shell.poll() is None


def test_all_of_a_service_is_killed_and_its_files_go(
    shell: subprocess.Popen[bytes], prony_pod: Command, tmp_path: Path
) -> None:
    script = f"trap '' TERM; sleep 1000 & touch {tmp_path}/ready; sleep 1000"
    process = prony_pod("run", "--name=prony-c", "--entrypoint=/bin/sh", IMAGE, "-c", script)
    wait_for((tmp_path / "ready").exists)
    assert prony_pod("rm", "--force", "--volumes", "prony-c").wait() == 0
    process.communicate()
    assert process.returncode == 137
    wait_for(lambda: descendants(shell.pid) == set(), "nothing of it is left")
    assert sorted(path.name for path in tmp_path.glob("prony-c.*")) == []


def test_what_a_pod_cannot_run_is_refused_with_the_reason(prony_pod: Command) -> None:
    for words, reason in (
        (("--entrypoint=a", "other:1"), b"this pod has no container of other:1"),
        ((IMAGE, "postgres"), b"starts by its own entry point"),
    ):
        process = prony_pod("run", "--name=prony-d", *words)
        out, _ = process.communicate()
        assert process.returncode == 125
        assert reason in out
    assert prony_pod("info").wait() == 0


def test_a_container_is_told_that_nobody_needs_it_any_more(shell: subprocess.Popen[bytes], tmp_path: Path) -> None:
    wait_for((tmp_path / "up").exists)
    pod_containers.PodContainer(tmp_path).ask("over", "")
    assert shell.wait(60) == 0
