"""`prony server --demo` shows a server with an agent and recorded experiments, and leaves nothing behind."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import tarfile
from importlib.resources import files
from pathlib import Path
from typing import Any

import httpx
import pytest

from prony.app.recordings import ARCHIVE
from prony.cli.demo import open_demo_home
from servers.commands import call_prony
from servers.process import DieWithParent
from servers.waiting import wait_for

WITHIN_S = 120


def test_a_demo_has_an_agent_and_experiments_and_leaves_nothing_behind(tmp_path: Path) -> None:
    process = start_demo(tmp_path)
    assert process.stdout is not None
    try:
        said = read_start(process)
        place = Path(re.findall(r"everything is in (\S+) ", said)[0])
        with httpx.Client(base_url=find_url(said), trust_env=False, timeout=60) as client:
            assert client.get(find_link(said)).status_code == 303  # as a browser follows it
            shown = client.get("/api/v1/experiments").json()["items"]
            assert len(shown) == said.count("recorded experiment ") >= 3
            wait_for(lambda: active_agents(client) == ["demo"], "the agent", WITHIN_S)
            check_summaries_of_a_fleet(client, shown)
    finally:
        process.send_signal(signal.SIGINT)
    assert process.wait(WITHIN_S) == 130
    process.stdout.close()
    assert not place.exists()
    wait_for(lambda: not runs_with(said), "the end of the agent", WITHIN_S)


def check_summaries_of_a_fleet(client: httpx.Client, shown: list[dict[str, Any]]) -> None:
    """One model on a CPU and on an H200: quality, speed and cost of each, and watts where a counter was."""
    (one,) = (item["experiment"]["id"] for item in shown if item["experiment"]["name"] == "summarize-fleet")
    asked = {"ids": one, "rows": "unit", "columns": "engine", "metric": "rouge_1.mean"}
    found = client.get("/api/v1/matrix", params=asked).json()
    cells = {(cell["row"], cell["column"]): cell for cell in found["cells"] if cell["worths"]}
    assert set(cells) == {("cpu", "llamacpp"), ("cpu", "transformers"), ("cuda", "transformers")}
    assert all(0.2 < cell["estimate"]["value"] < 0.6 for cell in cells.values())
    worths = {where: cell["worths"][0] for where, cell in cells.items()}
    assert {where[0]: worth["price"]["per_hour"] for where, worth in worths.items()} == {"cpu": 0.6, "cuda": 3.8}
    assert all(worth["per_million"]["value"] > 0 for worth in worths.values())
    assert 70 < worths["cuda", "transformers"]["power_w"]["value"] < 700
    assert "cpu × llamacpp, cpu × transformers: no energy counter on this machine." in found["notes"]


def start_demo(tmp_path: Path) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "prony", "server", "--demo", "--port", "0"]
    # A token of the user's own is for another server.
    environment = os.environ | {"TMPDIR": str(tmp_path), "PRONY_TOKEN": "prony_of_another_server"}
    with (tmp_path / "errors.log").open("w") as errors:
        return subprocess.Popen(
            command, env=environment, stdout=subprocess.PIPE, stderr=errors, text=True,
            preexec_fn=DieWithParent(signal.SIGKILL),  # noqa: PLW1509 - it makes one system call
        )  # fmt: skip


def read_start(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    said = ""
    for line in process.stdout:
        said += line
        if "prints another" in line:
            break
    return said


def find_url(said: str) -> str:
    return str(re.findall(r"serving at (\S+)", said)[0])


def find_link(said: str) -> str:
    return str(re.findall(r"http://\S+/login\?code=\S+", said)[0])


def active_agents(client: httpx.Client) -> list[str]:
    return [one["name"] for one in client.get("/api/v1/agents").json()["items"] if one["state"] == "active"]


def runs_with(said: str) -> bool:
    """Tell whether a process is left that was told the address of this server."""
    lines = (path / "cmdline" for path in Path("/proc").iterdir() if path.name.isdigit())
    return any(find_url(said).encode() in read_line(path) for path in lines)


def read_line(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:
        return b""


def test_a_named_home_is_kept_and_its_recordings_are_whole_and_valid(tmp_path: Path) -> None:
    with open_demo_home(tmp_path / "kept") as home:
        assert os.environ["PRONY_HOME"] == str(home.root)
    listed = json.loads(call_prony("list", "--json", environment=os.environ | {"PRONY_HOME": str(home.root)}).stdout)
    assert len(listed) >= 3
    grades = {one["name"]: one["worst_grade"] for one in listed}
    # One of three jobs on the machine with the GPU varies by more than 10 % from run to run.
    assert grades == {"quickstart": "valid", "summarize-fleet": "suspect"}
    assert len(files("prony.app").joinpath(ARCHIVE).read_bytes()) < 400_000


def test_the_recordings_name_no_folder_of_the_machine_they_were_made_on() -> None:
    with files("prony.app").joinpath(ARCHIVE).open("rb") as content, tarfile.open(fileobj=content) as archive:
        for member in archive:
            found = archive.extractfile(member)
            text = found.read() if found is not None else b""
            assert re.findall(rb"/(?:root|home|work|tmp)/[\w./-]*", text) == [], member.name


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--demo-home", "x"), "--demo-home needs --demo"),
        (("--demo", "--database", "postgresql://x/y"), "--demo uses its own database"),
    ],
)
def test_a_demo_is_not_mixed_with_what_is_kept(words: tuple[str, ...], said: str) -> None:
    assert said in call_prony("server", *words, code=2).stderr
