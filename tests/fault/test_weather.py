"""A disk that fills up and a clock that is set while jobs run: nothing is lost, and nothing counts twice."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from chaos.fleet import Fleet, fleet
from chaos.work import asked, check_everything, record, submit
from lanes import THOROUGH
from prony.client import Client
from servers.waiting import wait_for

JOBS = 40 if THOROUGH else 24
PATIENCE_S = 300.0
FULL_S, MOST_TRIES = (
    (30.0, 30) if THOROUGH else (8.0, 18)
)  # of two agents; each begins with half a second and doubles it


@pytest.fixture(scope="module")
def recording(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return record(tmp_path_factory.mktemp("recording"))


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of its own that is soon full."""
    folder = tmp_path / "disk"
    folder.mkdir()
    if os.geteuid() != 0:
        pytest.skip("only root may mount a small disk")
    mounting = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=256m", "prony-test", str(folder)],
        capture_output=True,
        text=True,
        check=False,
    )
    if mounting.returncode != 0:
        pytest.skip(f"no small disk can be mounted here: {mounting.stderr.strip()}")
    yield folder
    subprocess.run(["umount", "--lazy", str(folder)], check=True)


def begin(running: Fleet, recording: Path) -> str:
    running.extra |= {"FLEET_RECORDING": str(recording), "FLEET_SECONDS": "0.2"}
    running.add_server().start()
    running.wait_ready()
    for _ in range(2):
        running.add_agent(running.url).start()
    return submit(running.url, "weather", JOBS)


def wait_done(running: Fleet, experiment: str, at_least: int) -> None:
    def is_so() -> bool:
        view = asked(running.url, experiment)
        return (
            view is not None and sum(count for state, count in view.counts.items() if state == "complete") >= at_least
        )

    said = running.servers[0].said
    wait_for(is_so, f"{at_least} jobs to be complete: {said()[-1500:]}", PATIENCE_S)


def fill(path: Path) -> None:
    """Write until there is no room."""
    with path.open("wb", buffering=0) as file:
        while file.write(bytes(2**18)):
            pass


def test_a_full_disk_stops_nothing_for_good(tmp_path: Path, small_disk: Path, recording: Path) -> None:
    with fleet(tmp_path) as running:
        running.server_extra = {"PRONY_HOME": str(small_disk)}
        running.home = small_disk
        experiment = begin(running, recording)
        wait_done(running, experiment, 5)
        ballast = small_disk / "ballast"
        with pytest.raises(OSError, match="No space"):
            fill(ballast)
        unsent = [tmp_path / f"a{number}" for number in range(2)]
        wait_for(
            lambda: any("result.tar" in names for home in unsent for _, _, names in os.walk(home)),
            "a result to be kept by its agent",
        )
        ballast.unlink()
        wait_done(running, experiment, JOBS)
        check_everything(running, [experiment], recording)


@pytest.mark.slow
@pytest.mark.parametrize("what", ["everything", "results"])
def test_agents_ask_a_full_server_seldom_and_more_and_more_so(
    tmp_path: Path, small_disk: Path, recording: Path, what: str
) -> None:
    """Counted, not timed: growing pauses leave room for a dozen tries, a loop without them makes hundreds."""
    with fleet(tmp_path) as running:
        if what == "everything":
            running.home = small_disk
        else:  # the database has room, so jobs are lent all the time
            running.server_home.mkdir()
            for name in ("results", "uploads"):
                (small_disk / name).mkdir()
                (running.server_home / name).symlink_to(small_disk / name)
        running.server_extra = {"PRONY_HOME": str(running.server_home)}
        experiment = begin(running, recording)
        wait_done(running, experiment, 5)
        ballast = small_disk / "ballast"
        with pytest.raises(OSError, match="No space"):
            fill(ballast)

        def tries() -> int:
            logs = [agent.log.read_text(errors="replace") for agent in running.agents]
            return sum(text.count("result not uploaded yet") for text in logs)

        wait_for(lambda: tries() > 0, "an agent to be refused", PATIENCE_S)
        begun_s = time.monotonic()
        wait_for(lambda: time.monotonic() - begun_s > FULL_S, "the disk to be full for a while", 2 * FULL_S)
        assert tries() <= MOST_TRIES, running.agents[0].said()
        ballast.unlink()
        wait_done(running, experiment, JOBS)
        check_everything(running, [experiment], recording)


@pytest.mark.slow
def test_a_clock_that_is_set_makes_nobody_late(tmp_path: Path, recording: Path) -> None:
    clock = tmp_path / "clock"
    clock.write_text("0")
    # Far longer than a busy machine keeps an agent from its sign of life, and far shorter than the clock is set by.
    with fleet(tmp_path, lease_ttl="60s") as running:
        running.extra = {"FLEET_CLOCK": str(clock)}
        experiment = begin(running, recording)
        for done, offset_s in ((4, 2 * 86400), (9, -3 * 86400), (14, 3600), (19, -1)):
            wait_done(running, experiment, done)
            clock.write_text(str(offset_s))
        wait_done(running, experiment, JOBS)
        check_everything(running, [experiment], recording)
        with Client(running.url) as client:
            tries = [
                client.jobs.get(job.id).attempts for job in client.jobs.page(experiment=experiment, limit=100).items
            ]
        assert {len(attempts) for attempts in tries} == {1}
        days = {attempt.leased_at.date() for attempts in tries for attempt in attempts}
        assert len(days) >= 3, "the clock was never set"
