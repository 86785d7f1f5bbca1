"""An experiment is watched live, cancelled, tried again, run again, found in the list, and deleted."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from .agent import prony_agent
from .conftest import Opened, api, prony_server

_SMALL = """name: small
workload: {kind: model, model: "zoo:noop", engine: onnxruntime, threads: 1}
measure: {runs: 5, repeats: 1, isolation: fork}
"""
_LONG = _SMALL.replace("small", "long").replace("{runs: 5, repeats: 1, isolation: fork}", "{runs: 2000, repeats: 200}")
_LABELLED = _SMALL.replace("name: small", "name: labelled") + "labels: {team: blue}\n"
_PATIENCE_MS = 90_000


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A server with one agent."""
    folder = tmp_path_factory.mktemp("fleet")
    with prony_server(folder / "server") as url, prony_agent(folder / "agent", url):
        yield url


def submitted(url: str, text: str) -> str:
    with api(url) as client:
        answer = client.post("/experiments", json={"text": text}).raise_for_status()
    return str(answer.json()["experiment"]["id"])


def test_an_experiment_is_watched_live_cancelled_tried_again_and_run_again(
    url: str, opened: Callable[[str], Page]
) -> None:
    page = opened(url)
    experiment_id = submitted(url, _LONG)
    page.goto(f"/experiments/{experiment_id}")
    expect(page.get_by_text("1 running")).to_be_visible(timeout=_PATIENCE_MS)
    expect(page.get_by_role("progressbar")).to_be_visible(timeout=_PATIENCE_MS)
    page.get_by_role("button", name="Cancel").click()
    page.get_by_role("button", name="Cancel it").click()
    expect(page.get_by_text("cancelled", exact=True).first).to_be_visible(timeout=_PATIENCE_MS)
    page.get_by_role("button", name="Retry failed jobs").click()
    expect(page.get_by_text("0 of 1 jobs ended")).to_be_visible(timeout=_PATIENCE_MS)
    page.get_by_role("button", name="Cancel").click()
    page.get_by_role("button", name="Cancel it").click()
    expect(page.get_by_text("cancelled", exact=True).first).to_be_visible(timeout=_PATIENCE_MS)
    page.get_by_role("button", name="Run again").click()
    expect(page.get_by_role("link", name=experiment_id)).to_be_visible(timeout=_PATIENCE_MS)
    assert experiment_id not in page.url
    page.get_by_role("button", name="Delete").click()
    page.get_by_role("button", name="Delete it").click()
    page.wait_for_url("**/experiments")


def test_numbers_samples_log_and_recipe_of_an_experiment_are_a_tab_away(
    url: str, opened: Callable[[str], Page]
) -> None:
    page = opened(url)
    page.goto(f"/experiments/{submitted(url, _SMALL)}")
    expect(page.get_by_role("region", name="Numbers of every job")).to_be_visible(timeout=_PATIENCE_MS)
    page.get_by_role("tab", name="Samples").click()
    expect(page.get_by_role("img", name=re.compile("Distribution of Inference"))).to_be_visible()
    page.get_by_role("tab", name="Logs").click()
    expect(page.get_by_text("The log is complete.")).to_be_visible()
    page.get_by_role("tab", name="Environment").click()
    expect(page.get_by_text("Hardware id")).to_be_visible()
    page.get_by_role("tab", name="Recipe").click()
    expect(page.get_by_label("The recipe")).to_contain_text("name: small")
    address = page.url
    page.goto("/")
    page.goto(address)
    expect(page.get_by_label("The recipe")).to_contain_text("name: small")


def test_the_list_finds_by_words_and_labels_and_its_address_says_how(url: str, opened: Callable[[str], Page]) -> None:
    page = opened(url)
    submitted(url, _SMALL)
    submitted(url, _LABELLED)
    page.goto("/experiments")
    expect(page.get_by_role("link", name="labelled")).to_be_visible()
    page.get_by_label("Label", exact=True).select_option("team=blue")
    expect(page.get_by_role("link", name="small")).to_have_count(0)
    page.wait_for_url("**label=team%3Dblue**")
    page.get_by_label("Label", exact=True).select_option("")
    page.get_by_label("Search experiments").fill("nothing is called so")
    expect(page.get_by_text("No experiment matches")).to_be_visible()


def test_who_has_no_token_is_asked_for_one_and_comes_in_with_it(tmp_path: Path, opened: Opened) -> None:
    home = tmp_path / "server"
    command = [sys.executable, "-m", "prony", "tokens", "add", "ann", "--role", "admin", "--json"]
    made = subprocess.run(command, env=os.environ | {"PRONY_HOME": str(home)}, check=True, capture_output=True)
    with prony_server(home) as url:
        page = opened(url, logs_in=False)
        page.goto("/")
        page.get_by_label("Token").fill(json.loads(made.stdout)["secret"])
        page.get_by_role("button", name="Enter").click()
        expect(page.get_by_role("heading", name="Welcome to Prony")).to_be_visible()
        page.reload()
        expect(page.get_by_role("heading", name="Welcome to Prony")).to_be_visible()
        expect(page.get_by_text("live", exact=True)).to_be_visible()
