"""Upgrade a real home: an older commit's wheel fills it with its server and agent, and today's Prony takes it over."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tarfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import pytest

from servers.needs import lack
from servers.programs import run_program
from servers.waiting import wait_for

ROOT = Path(__file__).parents[2]
BUILDER = ROOT / ".venv-build" / "bin" / "python"
MIGRATIONS = ROOT / "src" / "prony" / "store" / "migrations" / "versions"
_PATIENCE_S = 300
RECIPE = """
name: kept
workload: {kind: model, model: "zoo:tiny", engine: onnxruntime, threads: 1}
measure: {runs: 5, repeats: 1}
"""


def ask_git(*words: str) -> str:
    """Return what git says, or nothing where it has no answer."""
    done = subprocess.run(["git", *words], cwd=ROOT, capture_output=True, text=True, check=False)
    return done.stdout.strip() if done.returncode == 0 else ""


def find_previous() -> str:
    """Return the newest release before this commit; without one, the last commit with an older schema."""
    if not ask_git("rev-parse", "HEAD"):
        lack("history", "this is no git repository")
    if ask_git("rev-parse", "--is-shallow-repository") == "true":
        lack("history", "the git history is shallow: git fetch --unshallow")
    release = ask_git("describe", "--tags", "--abbrev=0", "--match=v*", "HEAD^")
    return release or commit_before_migration(sorted(MIGRATIONS.glob("0*.py"))[-1])


def commit_before_migration(path: Path) -> str:
    """Return the last commit of the main line that lacks a migration."""
    added = ask_git("log", "--first-parent", "-m", "--diff-filter=A", "-1", "--format=%H", "--", str(path))
    before = ask_git("rev-parse", "--verify", "--quiet", f"{added}^1") if added else ""
    if not before:
        lack("history", f"git has no commit from before {path.name}")
    return before


def build_wheel(commit: str, scratch: Path) -> Path:
    """Build a commit's wheel, without its documentation, which takes longer than all the rest."""
    if not BUILDER.exists():
        lack("build", f"there is no {BUILDER.relative_to(ROOT)}: make wheel")
    source = scratch / "source"
    run_program("git", "archive", "--output", scratch / "source.tar", commit, cwd=ROOT)
    with tarfile.open(scratch / "source.tar") as tar:
        tar.extractall(source, filter="data")
    (source / "mkdocs.yml").unlink(missing_ok=True)
    pip = (BUILDER, "-m", "pip", "--disable-pip-version-check")
    run_program(
        *pip, "wheel", "--quiet", "--no-deps", "--no-build-isolation", "--wheel-dir", scratch, source, cwd=scratch
    )
    (wheel,) = scratch.glob("prony-*.whl")
    return wheel


@dataclass
class Version:
    """A Prony with today's dependencies: an older one in a folder before them, or today's."""

    scratch: Path
    home: Path
    folder: Path | None = None

    @property
    def environment(self) -> dict[str, str]:
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("PRONY_", "PYTHON"))}
        found = {} if self.folder is None else {"PYTHONPATH": str(self.folder)}
        return kept | found | {"PRONY_HOME": str(self.home)}

    @cached_property
    def commands(self) -> set[str]:
        return set(re.findall(r"(?m)^  ([a-z-]+) ", self.prony("--help")))

    def prony(self, *words: str | Path) -> str:
        return run_program(sys.executable, "-P", "-m", "prony", *words, cwd=self.scratch, environment=self.environment)

    def ask(self, *words: str | Path) -> Any:
        return json.loads(self.prony(*words, "--json"))

    @contextmanager
    def start(self, log: str, *words: str | Path) -> Iterator[Path]:
        """Run a command until the block ends; return its log."""
        command = [sys.executable, "-P", "-m", "prony", *map(str, words)]
        path = self.scratch / log
        with path.open("w") as out:
            process = subprocess.Popen(command, env=self.environment, stdout=out, stderr=out, cwd=self.scratch)
        try:
            yield path
        finally:
            process.terminate()
            process.wait(_PATIENCE_S)

    @contextmanager
    def serve(self, log: str) -> Iterator[str]:
        """Run a server on a port that it chooses; return its address."""
        with self.start(log, "server", "--port", "0") as path:
            wait_for(lambda: "serving at" in path.read_text(), f"the server of {log}")
            found = re.search(r"serving at (http://\S+)", path.read_text())
            assert found is not None
            yield found[1]


def experiments_of(version: Version, *words: str) -> dict[str, tuple[str, str]]:
    return {one["id"]: (one["name"], one["state"]) for one in version.ask("list", *words)}


def points_of(history: dict[str, Any]) -> list[tuple[str, str, Any]]:
    """Return each result of a history that can be compared over versions: what, when and how much."""
    return [(one["job_id"], one["measured_at"], one["values"]) for one in history["points"]]


def add_token(version: Version, name: str, role: str) -> Path:
    """Make a token, and return the file that has its secret."""
    secret = re.search(r"(?m)^\s*(prony_\S+)$", version.prony("tokens", "add", name, "--role", role))
    assert secret is not None
    path = version.scratch / f"{name}.token"
    path.touch(0o600)
    path.write_text(secret[1])
    return path


@pytest.mark.slow
def test_a_home_of_an_older_wheel_is_taken_over_with_its_agent_and_its_backup(tmp_path: Path) -> None:
    wheel = build_wheel(find_previous(), tmp_path)
    run_program(
        BUILDER, "-m", "pip", "install", "--quiet", "--no-deps", "--target", tmp_path / "old", wheel, cwd=tmp_path
    )
    old = Version(tmp_path, tmp_path / "home", tmp_path / "old")
    old_agent, new = Version(tmp_path, tmp_path / "agent", old.folder), Version(tmp_path, old.home)
    where = run_program(
        sys.executable, "-P", "-c", "import prony; print(prony.__file__)", cwd=tmp_path, environment=old.environment
    )
    assert Path(where.strip()).is_relative_to(tmp_path)
    (tmp_path / "recipe.yaml").write_text(RECIPE)

    with old.serve("old-server.log") as url:
        agent_token, reader_token = add_token(old, "bench", "agent"), add_token(old, "reader", "viewer")
        with old_agent.start("old-agent.log", "agent", "start", "--server", url, "--token-file", agent_token):
            old.prony("run", "recipe.yaml", "--server", url)
        old.prony("schedule", "add", "recipe.yaml", "--cron", "0 4 1 1 *", "--name", "yearly", "--server", url)
        old.prony("alarm", "add", "failures", "--when", "experiment failed", "--server", url)
        before, history = experiments_of(old, "--server", url), old.ask("history", "kept", "--server", url)
        if "backup" in old.commands:
            old.prony("backup", tmp_path / "old.tar")
    assert [state for _, state in before.values()] == ["complete"]

    with new.serve("new-server.log") as url:
        reader = ("--server", url, "--token-file", str(reader_token))
        assert experiments_of(new, *reader) == before
        assert points_of(new.ask("history", "kept", *reader)) == points_of(history)
        assert [one["name"] for one in new.ask("schedule", "list", *reader)] == ["yearly"]
        assert [one["name"] for one in new.ask("alarm", "list", *reader)] == ["failures"]
        with old_agent.start("again.log", "agent", "start", "--server", url, "--token-file", agent_token):
            new.prony("run", "recipe.yaml", "--server", url)
        assert [state for _, state in experiments_of(new, *reader).values()] == ["complete"] * 2

    if (tmp_path / "old.tar").exists():
        restored = Version(tmp_path, tmp_path / "restored")
        restored.prony("restore", tmp_path / "old.tar")
        assert experiments_of(restored) == before
