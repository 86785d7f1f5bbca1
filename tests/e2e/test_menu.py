"""The menu as a person at a terminal has it: a real one, on which keys are pressed."""

from __future__ import annotations

import os
import pty
import re
import select
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

WITHIN_S = 180.0
AGAIN_S = 15.0
AT_TERMINAL = Path(__file__).parents[1] / "chaos" / "at_terminal.py"
RECIPE = "name: tiny\nworkload: {kind: model, model: zoo:noop, engine: 'null'}\nmeasure: {runs: 5, repeats: 2}\n"


class Person:
    """Types at a terminal and reads what is on it."""

    def __init__(self, folder: Path, *arguments: str) -> None:
        self._end, child = pty.openpty()
        self._process = subprocess.Popen(
            [sys.executable, str(AT_TERMINAL), "menu", *arguments],
            stdin=child, stdout=child, stderr=child, cwd=folder, start_new_session=True,
            env={**os.environ, "TERM": "dumb", "NO_COLOR": "1"},
        )  # fmt: skip
        os.close(child)
        self.seen = ""
        self._read = 0
        self._pressed: float | None = None

    def sees(self, text: str) -> str:
        """Wait until a text is on the terminal, after all that was seen before; return what came with it."""
        deadline = time.monotonic() + WITHIN_S
        while (match := re.search(text, self.seen[self._read :])) is None:
            assert time.monotonic() < deadline, f"{text!r} never came:\n{self.seen}"
            self._press_again()
            if not self._listen():
                raise AssertionError(f"it ended without {text!r}:\n{self.seen}")
        came = self.seen[self._read : self._read + match.end()]
        self._read += match.end()
        self._pressed = None
        return came

    def types(self, text: str) -> None:
        self._pressed = None
        os.write(self._end, text.encode())

    def presses_ctrl_c(self) -> None:
        """Press it, and again where nothing follows: readline misses one that comes just before it waits for a line."""
        self.types("\x03")
        self._pressed = time.monotonic()

    def _press_again(self) -> None:
        if self._pressed is not None and time.monotonic() > self._pressed + AGAIN_S:
            self.presses_ctrl_c()

    def ends(self) -> int:
        deadline = time.monotonic() + WITHIN_S
        while self._process.poll() is None and time.monotonic() < deadline:
            self._press_again()
            self._listen()
        return self._process.wait(timeout=60)

    def close(self) -> None:
        if self._process.poll() is None:
            os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()
        os.close(self._end)

    def _listen(self) -> bool:
        ready, _, _ = select.select([self._end], [], [], 0.2)
        if not ready:
            return self._process.poll() is None
        try:
            piece = os.read(self._end, 2**16)
        except OSError:  # the other end is closed
            return False
        self.seen += piece.decode(errors="replace").replace("\r\n", "\n")
        return bool(piece)


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("PRONY_HOME", str(tmp_path / "home"))
    monkeypatch.delenv("PRONY_SERVER", raising=False)
    (tmp_path / "recipes").mkdir()
    (tmp_path / "recipes" / "tiny.yaml").write_text(RECIPE)
    return tmp_path / "home"


@pytest.fixture
def person(tmp_path: Path) -> Iterator[Person]:
    found = Person(tmp_path)
    yield found
    found.close()


def test_a_recipe_is_run_by_numbers_and_the_command_is_shown(person: Person) -> None:
    menu = person.sees("Number or word:")
    for word in (
        "run", "list", "watch", "logs", "stop", "collect", "metrics", "report", "compare", "sweep-report", "rerun",
        "web",
    ):  # fmt: skip
        assert re.search(rf"^ +\d+  {word} ", menu, re.MULTILINE), word
    person.types("1\n")
    assert " 1  recipes/tiny.yaml" in person.sees("Which recipe.*Enter: back")
    person.types("1\n")
    person.sees("Concurrent users")
    person.types("\n")
    person.sees("Target")
    person.types("\n")
    person.sees(re.escape("$ prony run recipes/tiny.yaml\n"))
    person.sees("What do you want to do")
    person.types("compare\n")
    person.sees("baseline")
    person.types("1\n")
    person.sees("compared with it")
    person.types("1\n")
    person.sees(r"\$ prony compare (\w+) \1\n")
    person.sees("Number or word:")
    person.types("metrics\n")
    person.sees("Which experiment")
    person.types("1\n")
    person.sees("--format csv --out -\n")
    person.sees("inference_ms")
    person.sees("Number or word:")
    person.types("q\n")
    assert person.ends() == 0
    assert "\x1b[" not in person.seen


def test_a_slip_is_told_and_enter_goes_back(person: Person) -> None:
    person.sees("Number or word:")
    person.types("99\n")
    person.sees("99 is not in the list")
    person.sees("Number or word:")
    person.types("show\n")
    person.sees("no experiments yet")
    person.sees("Number or word:")
    person.types("1\n")
    person.sees("Which recipe")
    person.types("7\n")
    person.sees("7 is not in the list")
    person.types("\n")
    person.sees("What do you want to do")
    person.sees("Number or word:")
    person.types("q\n")
    assert person.ends() == 0
    assert "Traceback" not in person.seen


def test_what_a_command_refuses_is_told_and_the_menu_stays(person: Person) -> None:
    person.sees("Number or word:")
    person.types("run\n")
    person.sees("Which recipe")
    person.types("nowhere.yaml\n")
    person.sees("Concurrent users")
    person.types("\n")
    person.sees("Target")
    person.types("\n")
    person.sees("no recipe at nowhere.yaml")
    person.sees("exit code 2")
    person.sees("Number or word:")
    person.types("q\n")
    assert person.ends() == 0
    assert "Traceback" not in person.seen


def test_ctrl_d_leaves_cleanly(person: Person) -> None:
    person.sees("Number or word:")
    person.types("\x04")
    assert person.ends() == 0
    assert "Traceback" not in person.seen


def test_ctrl_c_goes_back_from_a_question_and_leaves_from_the_menu(person: Person) -> None:
    person.sees("Number or word:")
    person.types("1\n")
    person.sees("Which recipe")
    person.presses_ctrl_c()
    person.sees("Number or word:")
    person.presses_ctrl_c()
    assert person.ends() == 130
    assert "Traceback" not in person.seen


@pytest.mark.slow
def test_ctrl_c_is_for_the_command_that_runs(person: Person) -> None:
    person.sees("Number or word:")
    person.types("web\n")
    person.sees("Port")
    person.types("0\n")
    person.sees("serving at")
    person.types("\x03")
    person.sees("What do you want to do")
    person.types("\x04")
    assert person.ends() == 0


def test_without_a_terminal_it_is_refused(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "prony", "menu"], capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL
    )
    assert done.returncode == 2
    assert "needs a terminal" in done.stderr
