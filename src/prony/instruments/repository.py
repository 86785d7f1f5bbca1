"""Read the repository that a recipe lies in: branch, commit, and where the branch forked from its base."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from prony.instruments.ci import CiFacts, read_ci
from prony.model.git import LONGEST_BRANCH, Git

_TIMEOUT_S = 20
# What a hook of another repository sets would be read instead of the recipe's.
_OF_HOOKS = ("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_PREFIX", "GIT_COMMON_DIR")
_SCP = re.compile(r"(?:[^@/]+@)?([^:/]+):(?!//)(.+)")


@dataclass(frozen=True)
class GitReading:
    """`git` is None outside a repository; `trouble` says why one that is there could not be read."""

    git: Git | None = None
    trouble: str = ""


@dataclass(frozen=True)
class _Chain:
    """A commit with its place: how many first parents lead to it, and from which root."""

    commit: str
    position: int | None
    root: str | None


class _GitFailedError(Exception):
    """Git is not installed, takes too long, or refuses."""


def read_git(folder: Path, environ: Mapping[str, str]) -> GitReading:
    """Return the state of the repository that a folder lies in.

    What a CI says in `environ` counts where it is about the same repository or commit. A repository without a commit
    is none.
    """
    place = folder.resolve()
    if not any((one / ".git").exists() for one in (place, *place.parents)):
        return GitReading()
    commands = _Commands(place, environ)
    try:
        return GitReading(_read(commands, environ))
    except _GitFailedError as exc:
        return GitReading(trouble=f"could not read git at {place}, so these results have no commit: {exc}")


def canonical_repository(url: str) -> str:
    """Return host and path of a remote, without scheme, user, port and `.git`: the same for every way to reach it."""
    plain = url.strip().removesuffix("/").removesuffix(".git")
    if "://" in plain:
        scheme, _, rest = plain.partition("://")
        host, slash, path = rest.partition("/")
        host = host.rpartition("@")[2].partition(":")[0].lower()
        return f"/{path}" if scheme == "file" else f"{host}{slash}{path}"
    found = _SCP.fullmatch(plain)
    return plain if found is None else f"{found[1].lower()}/{found[2].removeprefix('/')}"


class _Commands:
    """Runs git in one folder."""

    def __init__(self, folder: Path, environ: Mapping[str, str]) -> None:
        self._folder = folder
        self._environ = {name: value for name, value in environ.items() if name not in _OF_HOOKS} | {"LC_ALL": "C"}
        self._answers: dict[tuple[str, ...], str] = {}

    def output(self, *words: str) -> str:
        command = ["git", "--no-optional-locks", "-C", str(self._folder), *words]
        try:
            done = subprocess.run(
                command, capture_output=True, text=True, errors="replace", check=False, timeout=_TIMEOUT_S,
                env=self._environ,
            )  # fmt: skip
        except (OSError, subprocess.TimeoutExpired) as exc:
            raise _GitFailedError(str(exc)) from exc
        if done.returncode:
            raise _GitFailedError(done.stderr.strip().partition("\n")[0] or f"git {words[0]} failed")
        return done.stdout

    def find(self, *words: str) -> str:
        """Return the answer to a question that git may have none to; then it is empty. Each is asked once."""
        if words not in self._answers:
            try:
                self._answers[words] = self.output(*words).strip()
            except _GitFailedError:
                self._answers[words] = ""
        return self._answers[words]


def _read(commands: _Commands, environ: Mapping[str, str]) -> Git | None:
    status = commands.output("status", "--porcelain=v2", "--branch").splitlines()
    heads = {words[1]: words[2] for words in map(str.split, status) if words[0] == "#" and len(words) > 2}
    commit, named = heads.get("branch.oid", ""), heads.get("branch.head", "")
    if not commit or commit == "(initial)":
        return None
    remote = _remote(commands)
    url = commands.find("remote", "get-url", remote) if remote else ""
    repository = canonical_repository(url) if url else None
    ci = _matching_ci(read_ci(environ), repository, commit)
    default = environ.get("PRONY_DEFAULT_BRANCH", "") or ci.default_branch or _default_branch(commands, remote)
    branch = environ.get("PRONY_BRANCH", "") or ("" if named == "(detached)" else named) or ci.branch
    forks = _Forks(commands, remote, commit)
    if not branch and default and (fork := forks.newest(default)) is not None and fork.commit == commit:
        branch = default  # an earlier commit of the default branch, checked out by its hash
    base = ci.base or (default if branch != default else "")
    made = Git(
        commit=commit, branch=branch[:LONGEST_BRANCH] or None, dirty=any(not line.startswith("#") for line in status),
        repository=None if repository is None else repository[:500], default_branch=default[:LONGEST_BRANCH] or None,
        base=base[:LONGEST_BRANCH] or None,
    )  # fmt: skip
    return made.model_copy(update=_places(commands, forks, made, ci))


def _places(commands: _Commands, forks: _Forks, git: Git, ci: CiFacts) -> dict[str, str | int | None]:
    """Return where the commit and its fork point stand."""
    own = _chain(commands, git.commit)
    found: dict[str, str | int | None] = {"position": own.position, "root": own.root}
    fork = forks.newest(git.base) if git.base is not None else None
    if fork is not None:
        is_comparable = fork.root is not None and fork.root == own.root
        found |= {"fork_point": fork.commit, "fork_position": fork.position if is_comparable else None}
    elif git.base is not None:
        found["fork_point"] = (_first_parent(commands) if ci.merges else ci.fork_point) or None
    return found


class _Forks:
    """Finds the newest commit of a branch that the checked out commit contains."""

    def __init__(self, commands: _Commands, remote: str, commit: str) -> None:
        self._commands = commands
        self._remote = remote
        self._commit = commit

    def newest(self, branch: str) -> _Chain | None:
        """Return it by the remote's branch and by the local one, whichever has the newer; None where none is known."""
        found = [fork for tip in self._tips(branch) if (fork := self._fork(tip)) is not None]
        return max(found, key=lambda fork: fork.position or 0, default=None)

    def _tips(self, branch: str) -> Iterator[str]:
        for name in (f"refs/remotes/{self._remote}/{branch}", f"refs/heads/{branch}"):
            if self._commands.find("rev-parse", "--verify", "--quiet", name):
                yield name

    def _fork(self, tip: str) -> _Chain | None:
        """Along first parents, all that follow the first commit that is contained are contained too."""
        ahead = self._commands.find("rev-list", "--first-parent", "--count", tip, f"^{self._commit}")
        words = ("rev-list", "--first-parent", f"--skip={ahead}", "--max-count=1", tip)
        fork = self._commands.find(*words) if ahead else ""
        return _chain(self._commands, fork) if fork else None


def _chain(commands: _Commands, commit: str) -> _Chain:
    if commands.find("rev-parse", "--is-shallow-repository") != "false":
        return _Chain(commit, None, None)
    listed = commands.find("rev-list", "--first-parent", commit).split()
    return _Chain(commit, len(listed) or None, listed[-1] if listed else None)


def _first_parent(commands: _Commands) -> str:
    """Return the first parent of HEAD as its object names it, which a shallow clone knows too."""
    lines = commands.find("cat-file", "commit", "HEAD").splitlines()
    return next((line.split()[1] for line in lines if line.startswith("parent ")), "")


def _matching_ci(ci: CiFacts, repository: str | None, commit: str) -> CiFacts:
    """Return what the CI says where it speaks of this repository, else nothing."""
    same = repository is not None and repository.lower() == ci.repository.lower()
    return ci if same or commit == ci.commit else CiFacts()


def _remote(commands: _Commands) -> str:
    names = commands.find("remote").split()
    return "origin" if "origin" in names or not names else names[0]


def _default_branch(commands: _Commands, remote: str) -> str:
    """Return what the remote says, else `init.defaultBranch`, `main` or `master`, whichever there is, else the only
    branch there is."""
    head = commands.find("symbolic-ref", "--quiet", f"refs/remotes/{remote}/HEAD")
    if head:
        return head.removeprefix(f"refs/remotes/{remote}/")
    for name in filter(None, (commands.find("config", "init.defaultBranch"), "main", "master")):
        for reference in (f"refs/remotes/{remote}/{name}", f"refs/heads/{name}"):
            if commands.find("rev-parse", "--verify", "--quiet", reference):
                return name
    branches = commands.find("for-each-ref", "--count=2", "--format=%(refname:short)", "refs/heads").split()
    return branches[0] if len(branches) == 1 else ""
