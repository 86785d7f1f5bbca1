"""Make real git repositories."""

from __future__ import annotations

import os
import subprocess
from dataclasses import dataclass
from pathlib import Path

_PERSON = {
    "GIT_AUTHOR_NAME": "A", "GIT_AUTHOR_EMAIL": "a@example.org", "GIT_COMMITTER_NAME": "A",
    "GIT_COMMITTER_EMAIL": "a@example.org", "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1",
}  # fmt: skip


@dataclass(frozen=True)
class Repository:
    """One repository on the disk, and what is done to it."""

    path: Path

    def git(self, *words: str | Path) -> str:
        command = ["git", "-C", str(self.path), "-c", "protocol.file.allow=always", *map(str, words)]
        done = subprocess.run(command, capture_output=True, text=True, check=False, env=os.environ | _PERSON)
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()

    def commit(self, name: str = "file", text: str = "") -> str:
        """Write a file and commit it; return the commit."""
        path = self.path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text or f"{len(self.git('rev-list', '--all').split())}\n")
        self.git("add", "--all")
        self.git("commit", "--quiet", "--allow-empty", "-m", name)
        return self.head

    def branch(self, name: str, at: str = "HEAD") -> None:
        self.git("checkout", "--quiet", "-b", name, at)

    @property
    def head(self) -> str:
        return self.git("rev-parse", "HEAD")

    def clone(self, to: Path, *options: str) -> Repository:
        self.git("clone", "--quiet", *options, self.path.resolve().as_uri(), to)
        return Repository(to)


def make_repository(path: Path, branch: str = "main") -> Repository:
    """Return a new repository with one commit."""
    path.mkdir(parents=True, exist_ok=True)
    made = Repository(path)
    made.git("init", "--quiet", f"--initial-branch={branch}")
    made.commit("README", "hello\n")
    return made
