"""A fresh home and an open store for each test, on either database: a test that asks for `store` is run on both."""

from __future__ import annotations

import shutil
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
def store(home: Home, database_url: str, migrated_file: Path) -> Iterator[Store]:
    if not database_url:
        shutil.copy(migrated_file, home.create().database)
    with Store.open(home, url=database_url) as opened:
        yield opened


@pytest.fixture
def other_url(request: pytest.FixtureRequest, database_url: str) -> str:
    """A second, empty database of the same kind."""
    return str(request.getfixturevalue("empty_postgres_url")) if database_url else ""


@pytest.fixture
def kept(store: Store) -> Experiment:
    """An experiment of two jobs, both with their results."""
    made, its_jobs = experiment(), jobs()
    store.save_experiment(made, its_jobs)
    for job in its_jobs:
        folder = write_folder(store.home.result_folder(made.id, job.id), job)
        store.record_result(folder, summarise(folder))
    return made
