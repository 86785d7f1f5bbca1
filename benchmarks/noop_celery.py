"""The same nothing as a task of Celery's; the broker's and the results' places come from the environment."""

from __future__ import annotations

import os

from celery import Celery

from benchmarks.noop_job import nothing

app = Celery("noop", broker=os.environ["NOOP_BROKER"], backend=os.environ["NOOP_RESULTS"])
task = app.task(name="nothing")(nothing)
