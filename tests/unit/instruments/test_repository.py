"""The repository of a recipe: branch, commit, default branch and fork point, of real repositories."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from prony.instruments.repository import canonical_repository, read_git
from prony.model.git import Git
from servers.repositories import Repository, make_repository

SYSTEM = {"PATH": "/usr/local/bin:/usr/bin:/bin", "HOME": "/nonexistent"}


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    return make_repository(tmp_path / "repository")


def read(repository: Repository, **environ: str) -> Git:
    found = read_git(repository.path, SYSTEM | environ)
    assert found.git is not None, found.trouble
    return found.git


def test_a_folder_outside_a_repository_has_none(tmp_path: Path) -> None:
    assert read_git(tmp_path, SYSTEM) == read_git(tmp_path / "missing", SYSTEM)
    assert read_git(tmp_path, SYSTEM).git is None
    assert read_git(tmp_path, SYSTEM).trouble == ""


def test_a_repository_that_git_refuses_is_told(tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
    found = read_git(tmp_path, SYSTEM)
    assert found.git is None
    assert f"could not read git at {tmp_path}" in found.trouble


def test_a_repository_without_a_commit_has_none(tmp_path: Path) -> None:
    Repository(tmp_path).git("init", "--quiet")
    assert read_git(tmp_path, SYSTEM).git is None


def test_the_default_branch_is_judged_against_nothing(repository: Repository) -> None:
    first, second = repository.head, repository.commit()
    found = read(repository)
    assert (found.commit, found.branch, found.default_branch, found.base) == (second, "main", "main", None)
    assert (found.position, found.root, found.dirty) == (2, first, False)


def test_it_is_read_at_the_recipe_not_where_the_command_was_started(
    repository: Repository, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = make_repository(tmp_path / "other", "elsewhere")
    monkeypatch.chdir(other.path)
    (repository.path / "deep" / "down").mkdir(parents=True)
    found = read_git(repository.path / "deep" / "down", SYSTEM | {"GIT_DIR": str(other.path / ".git")}).git
    assert found is not None
    assert (found.commit, found.branch) == (repository.head, "main")


def test_a_branch_knows_where_it_forked(repository: Repository) -> None:
    fork = repository.commit()
    repository.branch("feature")
    repository.commit("mine")
    repository.git("checkout", "--quiet", "main")
    repository.commit("later")
    repository.git("checkout", "--quiet", "feature")
    (repository.path / "mine").write_text("changed\n")
    found = read(repository)
    assert (found.branch, found.base, found.fork_point, found.dirty) == ("feature", "main", fork, True)
    assert (found.position, found.fork_position) == (3, 2)


def test_a_branch_of_a_merged_branch_forked_before_the_merge(repository: Repository) -> None:
    """The fork point is on the base's own line: results are measured there, and not on what was merged into it."""
    fork = repository.head
    repository.branch("side")
    repository.commit("side-1")
    repository.commit("side-2")
    repository.branch("feature")
    repository.commit("mine")
    repository.git("checkout", "--quiet", "main")
    repository.commit("own")
    repository.git("merge", "--quiet", "--no-ff", "side", "-m", "merge")
    repository.git("checkout", "--quiet", "feature")
    found = read(repository)
    assert (found.fork_point, found.fork_position) == (fork, 1)


def test_a_clone_says_which_branch_is_the_default_one(repository: Repository, tmp_path: Path) -> None:
    repository.branch("trunk")
    repository.commit()
    clone = repository.clone(tmp_path / "clone")
    clone.branch("main", "origin/main")
    found = read(clone)
    assert (found.default_branch, found.branch, found.base) == ("trunk", "main", "trunk")
    assert found.repository == str(repository.path.resolve())
    assert read(clone, PRONY_DEFAULT_BRANCH="main").base is None


def test_an_earlier_commit_of_the_default_branch_is_of_that_branch(repository: Repository) -> None:
    first = repository.head
    repository.commit()
    repository.git("checkout", "--quiet", first)
    found = read(repository)
    assert (found.commit, found.branch, found.base) == (first, "main", None)
    repository.commit("aside")
    found = read(repository)
    assert (found.branch, found.base, found.fork_point) == (None, "main", first)


def test_without_a_known_default_branch_no_branch_stands_apart(tmp_path: Path) -> None:
    repository = make_repository(tmp_path / "r", "one")
    assert read(repository).default_branch == "one"  # the only one
    repository.branch("two")
    found = read(repository)
    assert (found.branch, found.default_branch, found.base) == ("two", None, None)


def test_a_shallow_clone_knows_no_position(repository: Repository, tmp_path: Path) -> None:
    repository.commit()
    clone = repository.clone(tmp_path / "clone", "--depth=1")
    found = read(clone)
    assert (found.position, found.root, found.branch) == (None, None, "main")


def github(tmp_path: Path, repository: Repository, **more: str) -> dict[str, str]:
    event = tmp_path / "event.json"
    event.write_text(json.dumps({"repository": {"default_branch": "main"}}))
    usual = {"GITHUB_ACTIONS": "true", "GITHUB_EVENT_PATH": str(event), "GITHUB_REPOSITORY": "org/name"}
    return usual | {"GITHUB_SHA": repository.head} | more


def test_a_pull_request_on_github_has_its_branch_and_its_fork_point(repository: Repository, tmp_path: Path) -> None:
    base = repository.commit()
    repository.branch("feature", "HEAD~1")
    repository.commit("mine")
    repository.git("checkout", "--quiet", "--detach", "main")
    repository.git("merge", "--quiet", "--no-ff", "feature", "-m", "merge")  # what GitHub checks out
    repository.git("branch", "merged")
    clone = repository.clone(tmp_path / "clone", "--depth=1", "--branch=merged")
    clone.git("checkout", "--quiet", "--detach")
    environ = github(
        tmp_path, clone, GITHUB_HEAD_REF="feature", GITHUB_BASE_REF="main", GITHUB_REF_NAME="7/merge",
        GITHUB_REF="refs/pull/7/merge", GITHUB_REF_TYPE="branch",
    )  # fmt: skip
    found = read(clone, **environ)
    assert (found.branch, found.base, found.default_branch) == ("feature", "main", "main")
    assert (found.fork_point, found.fork_position) == (base, None)
    # A fork's own main is not main.
    assert read(clone, **environ | {"GITHUB_HEAD_REF": "main"}).branch == "7/merge"


def test_a_push_on_github_is_of_the_branch_that_was_pushed(repository: Repository, tmp_path: Path) -> None:
    repository.git("checkout", "--quiet", "--detach")
    found = read(repository, **github(tmp_path, repository, GITHUB_REF_NAME="main", GITHUB_REF_TYPE="branch"))
    assert (found.branch, found.base) == ("main", None)


def test_a_ci_that_speaks_of_another_repository_is_not_asked(repository: Repository, tmp_path: Path) -> None:
    repository.git("checkout", "--quiet", "--detach")
    environ = github(tmp_path, repository, GITHUB_REF_NAME="other", GITHUB_SHA="0" * 40)
    assert read(repository, **environ).branch == "main"


def test_a_merge_request_on_gitlab_has_its_branch_and_its_fork_point(repository: Repository, tmp_path: Path) -> None:
    fork = repository.head
    repository.branch("feature")
    repository.commit("mine")
    clone = repository.clone(tmp_path / "clone", "--depth=1", "--branch=feature")
    clone.git("checkout", "--quiet", "--detach")
    clone.git("branch", "--quiet", "-D", "feature")
    environ = {
        "GITLAB_CI": "true", "CI_COMMIT_SHA": clone.head, "CI_DEFAULT_BRANCH": "main",
        "CI_COMMIT_REF_NAME": "feature", "CI_PROJECT_URL": "https://gitlab.example/g/p",
    }  # fmt: skip
    found = read(clone, **environ)
    assert (found.branch, found.base, found.fork_point) == ("feature", "main", None)
    asked = {"CI_MERGE_REQUEST_TARGET_BRANCH_NAME": "release", "CI_MERGE_REQUEST_DIFF_BASE_SHA": fork}
    found = read(clone, **environ | asked)
    assert (found.branch, found.base, found.fork_point) == ("feature", "release", fork)


def test_a_branch_may_be_named_by_hand(repository: Repository) -> None:
    repository.git("checkout", "--quiet", "--detach")
    found = read(repository, PRONY_BRANCH="from-jenkins")
    assert (found.branch, found.base) == ("from-jenkins", "main")


@pytest.mark.parametrize(
    "url",
    [
        "git@example.org:Org/name.git", "https://example.org/Org/name", "https://user:secret@Example.org/Org/name.git/",
        "ssh://git@example.org:2222/Org/name.git", "git://example.org/Org/name",
    ],
)  # fmt: skip
def test_every_way_to_a_repository_gives_the_same_name_and_no_secret(url: str) -> None:
    assert canonical_repository(url) == "example.org/Org/name"
