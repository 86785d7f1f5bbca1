"""Everything that the pages under "Start here" tell a reader to type is typed here, in the same order."""

from __future__ import annotations

import os
import re
import shlex
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import NamedTuple

import pytest
import yaml

from chaos.fleet import answers
from prony.plugins.models.zoo.source import ZooSource
from prony.ports.models import FetchOptions
from servers.commands import call_prony
from servers.ports import free_port
from servers.process import DieWithParent
from servers.waiting import wait_for

ROOT = Path(__file__).parents[2]
PAGES = sorted((ROOT / "docs").glob("start-*.md"))
BLOCK = re.compile(r"(?:^<!-- (?P<mark>[^>]+) -->\n)?^```(?P<form>\w*)\n(?P<text>.*?)^```$", re.DOTALL | re.MULTILINE)
FILE = re.compile(r"# (\S+\.ya?ml)\n")
# The addresses on the pages; each becomes one that is free here.
PORTS = ("7337", "8000")


class Block(NamedTuple):
    mark: str
    form: str
    text: str


def blocks(path: Path) -> list[Block]:
    return [Block(found["mark"] or "", found["form"], found["text"]) for found in BLOCK.finditer(path.read_text())]


def test_the_four_pages_are_there() -> None:
    assert [path.stem for path in PAGES] == ["start-ci", "start-first-number", "start-fleet", "start-load"]


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.stem)
def test_every_block_is_typed_kept_as_a_file_or_marked_as_output(path: Path) -> None:
    assert path.read_text().count("```") == 2 * len(blocks(path))
    for block in blocks(path):
        if block.form == "console":
            assert re.fullmatch(r"|keeps running|exits with 1|not run: it installs Prony", block.mark), block
            assert all(line.startswith("$ ") for line in block.text.splitlines()), block
        else:
            assert block.mark == "output" or FILE.match(block.text), block


@pytest.fixture
def reader(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """A folder with a model in it, and a free port for each one on the pages."""
    ports = {port: str(free_port()) for port in PORTS}
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PRONY_SERVER__PORT", ports["7337"])
    monkeypatch.setenv("PRONY_CLI__REPORT", "false")  # the drawings of each run cost more than the run
    options = FetchOptions(cache=tmp_path / "cache", base=tmp_path, formats=(".onnx",))
    fetched = ZooSource().fetch("zoo:tiny", options, lambda _done, _total: None)
    (tmp_path / "model.onnx").write_bytes(fetched.path.read_bytes())
    return ports


@pytest.mark.slow
@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.stem)
def test_what_a_page_says_can_be_typed(path: Path, reader: dict[str, str]) -> None:
    with ExitStack() as running:
        for block in blocks(path):
            text = re.sub("|".join(PORTS), lambda found: reader[found[0]], block.text)
            if block.form == "yaml" and block.mark != "output":
                save_file(text)
            elif block.form == "console" and block.mark == "keeps running":
                running.enter_context(keep_running(text, reader))
            elif block.form == "console" and not block.mark.startswith("not run"):
                type_commands(text, code=1 if block.mark == "exits with 1" else 0)


def save_file(text: str) -> None:
    found = FILE.match(text)
    assert found is not None
    place = Path(found[1])
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_text(text)


def type_commands(text: str, code: int) -> None:
    for line in text.splitlines():
        command, _, place = line.removeprefix("$ prony ").partition(" > ")
        done = call_prony(*shlex.split(command, comments=True), code=code)
        if place:
            Path(place).write_text(done.stdout)


@contextmanager
def keep_running(text: str, ports: dict[str, str]) -> Iterator[None]:
    """Run a command of another terminal until the page ends; go on when it is ready."""
    words = shlex.split(text.strip().removeprefix("$ prony "))
    process = subprocess.Popen(
        [sys.executable, "-m", "prony", *words], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=os.environ,
        start_new_session=True, preexec_fn=DieWithParent(signal.SIGTERM),  # noqa: PLW1509 - it makes one system call
    )  # fmt: skip
    try:
        if words[0] == "agent":
            wait_for(lambda: "active" in call_prony("agents", "--server", words[-1]).stdout)
        elif words[0] == "server":  # it holds its port before it has written its owner's token
            wait_for(lambda: answers(f"http://127.0.0.1:{ports['7337']}/api/v1/health"))
        else:
            wait_for(lambda: is_listening(int(ports["8000"])))
        yield
    finally:
        process.terminate()
        process.wait(timeout=120)


def is_listening(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def test_the_workflow_uses_inputs_that_the_action_has() -> None:
    text = next(block.text for block in blocks(ROOT / "docs" / "start-ci.md") if ".github" in block.text)
    inputs = yaml.safe_load((ROOT / "action.yml").read_text())["inputs"]
    assert set(yaml.safe_load(text)["jobs"]["speed"]["steps"][-1]["with"]) <= set(inputs)
