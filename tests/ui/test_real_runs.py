"""A real load and a real script as the pages show them: live, as text alone, readable by all, and to take away."""

from __future__ import annotations

import io
import json
import re
import signal
import subprocess
import sys
import tarfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import httpx
import pytest
from playwright.sync_api import Locator, Page, expect

from servers.process import DieWithParent

from .agent import prony_agent
from .conftest import api, prony_server, tabbed
from .test_accessibility import faults

Opened = Callable[[str], Page]
_PATIENCE_MS = 120_000
HOSTILE = "<img src=x onerror=window.fooled=1>"
_LOAD = """name: hello
workload:
  kind: service
  endpoint: "{mock}"
  driver: openai-chat
  task: synthetic
  prompts: {{input_words: 5, output_tokens: 4}}
load: {{closed: {{concurrency: 1}}, duration: 1s}}
matrix: {{load.closed.concurrency: [1, 2]}}
"""
_EMITTED = json.dumps({"metrics": {HOSTILE: 3.5, "loss": 0.5}, "labels": {"split": HOSTILE}})
_SCRIPT = f"""name: training
description: {json.dumps(HOSTILE)}
labels: {{note: {json.dumps(HOSTILE)}}}
workload:
  kind: script
  command: [printf, "a \\\\033[31mred\\\\033[0m word\\\\n%s\\\\n", {json.dumps(_EMITTED)}]
  metrics: [{{name: loss, better: lower}}]
measure: {{repeats: 2}}
"""


@dataclass(frozen=True)
class Bench:
    url: str
    script_id: str


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bench]:
    """A server and an agent that were asked for a script."""
    folder = tmp_path_factory.mktemp("real")
    kinds = ("--kinds", "model,service,script", "--model-private", "allow")
    with prony_server(folder / "server") as url, prony_agent(folder / "agent", url, *kinds):
        yield Bench(url, submitted(url, _SCRIPT))


@pytest.fixture(scope="module")
def load_id(bench: Bench) -> Iterator[str]:
    """A load of two levels that the agent was asked for."""
    mock = subprocess.Popen(
        [sys.executable, "-m", "prony", "mock", "--ttft", "2ms", "--itl", "1ms"], stdout=subprocess.PIPE, text=True,
        preexec_fn=DieWithParent(signal.SIGTERM),  # noqa: PLW1509 - it makes one system call
    )  # fmt: skip
    assert mock.stdout is not None
    told = re.search(r"http://\S+", mock.stdout.readline())
    assert told is not None
    yield submitted(bench.url, _LOAD.format(mock=told[0]))
    mock.terminate()
    mock.wait(timeout=120)
    mock.stdout.close()


def submitted(url: str, text: str) -> str:
    with api(url) as client:
        answer = client.post("/experiments", json={"text": text}).raise_for_status()
    return str(answer.json()["experiment"]["id"])


def ended(bench: Bench, experiment_id: str) -> None:
    """Wait until an experiment has ended well."""
    deadline = time.monotonic() + _PATIENCE_MS / 1000
    with api(bench.url) as client:
        while time.monotonic() < deadline:
            view = client.get(f"/experiments/{experiment_id}").raise_for_status().json()
            if view["experiment"]["state"] not in ("running", "pending"):
                assert view["experiment"]["state"] == "complete", view
                return
            time.sleep(0.2)
    raise AssertionError(f"{experiment_id} did not end")


@pytest.mark.slow
def test_a_load_is_seen_second_by_second_and_then_as_a_curve_with_its_bottleneck(
    opened: Opened, bench: Bench, load_id: str
) -> None:
    page = opened(bench.url)
    page.goto(f"/load?ids={load_id}")
    expect(page.get_by_role("heading", name=re.compile("^Now: "))).to_be_visible(timeout=_PATIENCE_MS)
    expect(page.get_by_role("heading", name="The curve appears with the second level")).to_be_visible()
    levels = page.get_by_role("region", name="Levels of load")
    expect(levels.get_by_role("row")).to_have_count(3, timeout=_PATIENCE_MS)
    expect(page.get_by_role("region", name="What was the bottleneck")).to_contain_text("at 2 users")
    expect(page.get_by_role("heading", name=re.compile("^Second by second: "))).to_be_visible()
    page.goto(f"/experiments/{load_id}")
    numbers = page.get_by_role("region", name="Numbers of every job")
    expect(numbers).to_contain_text("Throughput")
    expect(numbers).to_contain_text("Errors")


@pytest.mark.slow
def test_the_seconds_of_a_load_that_ended_are_drawn_on_its_page(opened: Opened, bench: Bench, load_id: str) -> None:
    ended(bench, load_id)
    page = opened(bench.url)
    page.goto(f"/experiments/{load_id}?part=load")
    expect(page.get_by_role("img", name=re.compile("second by second, run [1-9]"))).to_be_visible()
    expect(page.get_by_text("Computed from every stored request.")).to_be_visible()
    page.get_by_role("button", name="Show as a table").click()
    table = page.get_by_role("table")
    expect(table.get_by_role("columnheader")).to_have_text(
        ["second", "replies a second", "errors a second", "in flight", "p50", "p99"]
    )
    assert float(table.get_by_role("row").nth(1).get_by_role("cell").nth(1).inner_text()) > 10


def test_what_a_script_prints_is_searched_and_saved_with_times_and_without_colours(
    opened: Opened, bench: Bench, tmp_path: Path
) -> None:
    ended(bench, bench.script_id)
    page = opened(bench.url)
    page.goto(f"/experiments/{bench.script_id}?part=logs")
    log = page.get_by_label("Log of the job")
    expect(log).to_contain_text(re.compile(r"\d\d:\d\d:\d\d\.\d{3} run-0000\.out +a red word"))
    expect(log).to_contain_text("finished complete")
    expect(page.get_by_text("The log is complete.")).to_be_visible()
    expect(page.get_by_text("times of UTC")).to_be_visible()
    page.get_by_label("Search").fill("RED")
    page.get_by_label("Search").press("Enter")
    expect(log).not_to_contain_text("finished")
    page.get_by_label("Source").select_option("run-0001.out")
    expect(log).to_have_text(re.compile(r"^\S+ run-0001\.out a red word\s*$"))
    assert "find=RED" in page.url
    whole = saved(page, page.get_by_role("button", name="Download"), tmp_path).decode()
    assert re.search(r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z run-0000\.out a red word$", whole, re.MULTILINE)
    assert "\x1b" not in whole


def test_files_of_a_result_are_listed_shown_as_text_and_saved(opened: Opened, bench: Bench, tmp_path: Path) -> None:
    ended(bench, bench.script_id)
    page = opened(bench.url)
    page.goto(f"/experiments/{bench.script_id}?part=files")
    files = page.get_by_role("region", name="Files of the result")
    expect(files).to_contain_text("samples.parquet")
    files.get_by_role("link", name="logs/run-0000.out").click()
    text = page.get_by_label("Text of logs/run-0000.out")
    expect(text).to_contain_text("a red word")
    expect(text).to_contain_text("window.fooled")
    assert page.evaluate("window.fooled") is None
    assert "\x1b" not in (text.text_content() or "\x1b")
    as_it_is = saved(page, page.get_by_role("button", name="Download logs/run-0000.out"), tmp_path)
    assert b"a \x1b[31mred\x1b[0m word" in as_it_is


def test_a_viewer_reads_logs_files_and_seconds_and_nobody_does_without_a_token(bench: Bench) -> None:
    ended(bench, bench.script_id)
    with api(bench.url) as client:
        made = client.post("/tokens", json={"name": "reader", "role": "viewer"}).raise_for_status().json()
    job = f"{bench.url}/api/v1/jobs/{bench.script_id}-001"
    paths = ("logs", "files", "file?name=result.json", "file-text?name=result.json", "load-series")
    reader = {"Authorization": f"Bearer {made['secret']}"}
    answers = [httpx.get(f"{job}/{path}", headers=reader) for path in paths]
    assert [one.status_code for one in answers] == [200] * len(paths)
    assert answers[2].headers["content-disposition"].startswith("attachment")
    assert [httpx.get(f"{job}/{path}").status_code for path in paths] == [401] * len(paths)
    for name in ("../../../owner-token", "/etc/passwd", "logs/../../../prony.db"):
        assert httpx.get(f"{job}/file", params={"name": name}, headers=reader).status_code == 404


def test_what_a_script_calls_its_numbers_is_text_and_nothing_else(opened: Opened, bench: Bench) -> None:
    ended(bench, bench.script_id)
    page = opened(bench.url)
    for path, place in (
        (f"/experiments/{bench.script_id}", page.get_by_role("region", name="Numbers of every job")),
        (f"/experiments/{bench.script_id}?part=results", page.locator("main")),
        (f"/experiments/{bench.script_id}?part=samples", page.locator("main")),
        (f"/experiments/{bench.script_id}?part=recipe", page.locator("main")),
        ("/experiments", page.locator("main")),
        (f"/reports?of={bench.script_id}", page.frame_locator("iframe").locator("body")),
    ):
        page.goto(path)
        expect(place).to_contain_text(re.compile("window.fooled"))
        assert page.evaluate("window.fooled") is None
        assert page.locator("img[src=x]").count() == 0


@pytest.mark.slow
def test_an_experiment_is_taken_away_in_every_format(
    opened: Opened, bench: Bench, load_id: str, tmp_path: Path
) -> None:
    ended(bench, load_id)
    page = opened(bench.url)
    page.goto(f"/experiments/{load_id}")
    page.get_by_role("button", name="Export").click()
    dialog = page.get_by_role("dialog")
    begins = {
        "html": b"<!", "pdf": b"%PDF-", "md": b"# ", "json": b"{", "junit": b"<?xml", "github": b"",
    }  # fmt: skip
    for name, begin in begins.items():
        assert saved(page, dialog.get_by_role("button", name=name, exact=True), tmp_path).startswith(begin), name
    tables = dialog.get_by_role("button", name="csv", exact=True)
    assert b"e2e_ms" in saved(page, tables.first, tmp_path)
    with tarfile.open(fileobj=io.BytesIO(saved(page, tables.last, tmp_path))) as archive:
        assert any(name.endswith(".csv") for name in archive.getnames())
    expect(dialog.get_by_role("button", name="mlperf")).to_have_count(0)  # it is not an MLPerf scenario
    for name in ("Everything", "requests-jsonl", "hdr"):
        with tarfile.open(
            fileobj=io.BytesIO(saved(page, dialog.get_by_role("button", name=name, exact=True), tmp_path))
        ) as archive:
            assert archive.getnames(), name


def saved(page: Page, button: Locator, folder: Path) -> bytes:
    """Click, and return what came."""
    with page.expect_download() as download:
        button.click()
    download.value.save_as(folder / "saved")
    return (folder / "saved").read_bytes()


@pytest.mark.slow
def test_pages_of_real_runs_keep_nobody_out_and_fit_a_phone(opened: Opened, bench: Bench, load_id: str) -> None:
    ended(bench, load_id)
    page = opened(bench.url)
    parts = ("results", "jobs", "load", "samples", "telemetry", "logs", "files", "environment", "recipe")
    for address in (f"/load?ids={load_id}", *(f"/experiments/{load_id}?part={part}" for part in parts)):
        page.set_viewport_size({"width": 390, "height": 844})
        page.goto(address)
        expect(page.locator("main h1")).to_be_visible()
        expect(page.locator("main .loading")).to_have_count(0, timeout=_PATIENCE_MS)
        assert not page.evaluate("document.documentElement.scrollWidth > innerWidth"), address
        page.set_viewport_size({"width": 1280, "height": 900})
        assert faults(page) == [], address
    page.get_by_role("button", name="Export").click()
    expect(page.get_by_role("dialog")).to_be_visible()
    assert faults(page) == []


def test_a_person_with_a_keyboard_alone_gets_from_the_overview_to_an_experiment_s_numbers(
    opened: Opened, bench: Bench
) -> None:
    ended(bench, bench.script_id)
    page = opened(bench.url)
    page.goto("/")
    expect(page.get_by_role("link", name="training").first).to_be_visible()
    page.keyboard.press("Tab")
    expect(page.get_by_role("link", name="Skip to the content")).to_be_focused()
    page.keyboard.press("Enter")
    tabbed(page, "training")
    page.keyboard.press("Enter")
    expect(page.get_by_role("region", name="Numbers of every job")).to_be_visible()
    tabbed(page, "Results")
    page.keyboard.press("ArrowRight")
    expect(page.get_by_role("tab", name="Jobs")).to_be_focused()
    expect(page.get_by_role("list", name="Jobs")).to_be_visible()
