"""A fresh home and an open store for each test."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from prony.model.experiment import Experiment
from prony.store.home import Home
from prony.store.store import Store

from .nouns import experiment, jobs, summarise, write_folder


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path / "home")


@pytest.fixture
def store(home: Home) -> Iterator[Store]:
    with Store.open(home) as opened:
        yield opened


@pytest.fixture
def kept(store: Store) -> Experiment:
    """An experiment of two jobs, both with their results."""
    made, its_jobs = experiment(), jobs()
    store.save_experiment(made, its_jobs)
    for job in its_jobs:
        folder = write_folder(store.home.result_folder(made.id, job.id), job)
        store.record_result(folder, summarise(folder))
    return made
