"""A Redis and a number of slots in; how long RQ and Celery take for so many jobs that do nothing out."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

from benchmarks.noop_job import nothing

_ROOT = Path(__file__).parents[1]
_QUEUE = "noop"
_POLL_S = 0.005
_LONGEST_S = 120.0


def rq_s(url: str, *, slots: int, jobs: int, worker: str = "rq.worker.Worker") -> float:
    """Return the seconds from the first job's submission to the last one's result."""
    from redis import Redis
    from rq import Queue

    command = [str(Path(sys.executable).with_name("rq")), "worker", "--url", url, "--quiet", "-w", worker, _QUEUE]
    with Redis.from_url(url) as redis, _running([command] * slots):
        redis.flushall()
        queue = Queue(_QUEUE, connection=redis)

        def submit(count: int) -> None:
            queue.enqueue_many([Queue.prepare_data(nothing, (number,)) for number in range(count)])

        def ended() -> int:
            return int(queue.finished_job_registry.get_job_count(cleanup=False))

        return _timed(submit, ended, slots=slots, jobs=jobs)


def celery_s(url: str, *, slots: int, jobs: int) -> float:
    """The same for Celery's default pool of processes."""
    from celery import Celery
    from redis import Redis

    results_url = f"{url.rpartition('/')[0]}/1"
    command = [sys.executable, "-m", "celery", "-A", "benchmarks.noop_celery", "worker", "--loglevel", "ERROR"]
    places = {"NOOP_BROKER": url, "NOOP_RESULTS": results_url}
    app = Celery("noop", broker=url, backend=results_url)
    with Redis.from_url(url) as redis, Redis.from_url(results_url) as results, app:
        redis.flushall()
        with _running([[*command, "--concurrency", str(slots)]], **places):

            def submit(count: int) -> None:
                for number in range(count):
                    app.send_task("nothing", (number,))

            return _timed(submit, lambda: int(results.dbsize()), slots=slots, jobs=jobs)


def _timed(submit: Callable[[int], None], ended: Callable[[], int], *, slots: int, jobs: int) -> float:
    warm = 4 * slots
    submit(warm)
    _wait(ended, warm)
    begin = time.perf_counter()
    submit(jobs)
    _wait(ended, warm + jobs)
    return time.perf_counter() - begin


def _wait(ended: Callable[[], int], wanted: int) -> None:
    deadline = time.monotonic() + _LONGEST_S
    while (count := ended()) < wanted:
        if time.monotonic() > deadline:
            sys.exit(f"only {count} of {wanted} jobs ended in {_LONGEST_S:g} s")
        time.sleep(_POLL_S)


@contextmanager
def _running(commands: Sequence[Sequence[str]], **words: str) -> Iterator[None]:
    environment = os.environ | {"PYTHONPATH": str(_ROOT)} | words
    with ExitStack() as stack:
        for command in commands:
            process = subprocess.Popen(
                command, env=environment, cwd=_ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
            )
            stack.callback(_end, process)
        yield


def _end(process: subprocess.Popen[bytes]) -> None:
    process.terminate()
    try:
        process.wait(timeout=20)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
