"""Branches as a person sees them: real repositories, the commands as they are typed, a real server with an agent."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from chaos.fleet import Fleet, fleet
from servers.commands import call_prony
from servers.repositories import Repository, make_repository
from servers.waiting import wait_for

RECIPE = """
name: scored
workload: {kind: script, command: [sh, score.sh], directory: ., metrics: [{name: score, better: lower}]}
measure: {repeats: 3}
gates: ["regression(score) <= 5%"]
"""


def environment(home: Path) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("PRONY_", "GITHUB_", "CI_"))}
    return kept | {"PRONY_HOME": str(home)}


def commit_score(repository: Repository, score: int) -> str:
    """Commit a script that measures this, whatever the machine does."""
    (repository.path / "recipe.yaml").write_text(RECIPE)
    return repository.commit("score.sh", f"echo '{{\"score\": {score}}}'\n")


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    return make_repository(tmp_path / "repository")


class Person:
    """Types commands, from a folder that is no repository."""

    def __init__(self, home: Path, *options: str) -> None:
        self.home = home
        self.options = options

    def ask(self, *words: str | Path, code: int = 0) -> str:
        done = call_prony(*words, *self.options, code=code, environment=environment(self.home))
        return done.stdout + done.stderr

    def run(self, repository: Repository, code: int = 0) -> str:
        self.ask("run", repository.path / "recipe.yaml", "--no-report", code=code)
        return " ".join(self.ask("gates", "last", code=code).split())

    def commits(self, *words: str) -> list[str]:
        found = json.loads(self.ask("history", *words, "--json"))
        return [point["git"]["commit"] for point in found["points"]]


@pytest.mark.slow
def test_a_branch_has_a_history_of_its_own_and_is_judged_at_its_fork_point(
    repository: Repository, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    me = Person(tmp_path / "home")
    first = commit_score(repository, 100)
    assert "This is the first one" in me.run(repository)
    second = commit_score(repository, 130)
    assert "got worse by 30 % [30 %, 30 %] (90 %, 3 runs): not at most 5 %, with its whole interval. Compared with " \
        in me.run(repository, code=1)  # fmt: skip
    repository.branch("feature", first)
    third = commit_score(repository, 101)
    # Against the fork point it is 1 % worse, against main's latest 22 % better.
    told = me.run(repository)
    assert "got worse by 1 %" in told
    assert f"main at {first[:12]}: the fork point." in told
    assert me.commits("scored") == me.commits("scored", "--branch", "main") == [first, second]
    assert me.commits("scored", "--branch", "feature") == [third]
    assert [line.split()[3] for line in me.ask("history").splitlines()[1:]] == ["main"]
    assert {line.split()[3] for line in me.ask("history", "--all-branches").splitlines()[1:]} == {"main", "feature"}
    assert "it has some on feature, main" in me.ask("history", "scored", "--branch", "other", code=2)
    # A run of the branch after a later one of main is judged the same.
    repository.git("checkout", "--quiet", "main")
    commit_score(repository, 200)
    me.run(repository, code=1)
    repository.git("checkout", "--quiet", "feature")
    assert "got worse by 1 %" in me.run(repository)


def test_results_of_the_default_branch_stand_in_the_order_of_their_commits(
    repository: Repository, tmp_path: Path
) -> None:
    me = Person(tmp_path / "home")
    commits = [commit_score(repository, score) for score in (100, 101, 102)]
    for place in (0, 2, 1):  # the one in between is measured last
        repository.git("checkout", "--quiet", commits[place])
        told = me.run(repository)
    assert me.commits("scored") == commits
    assert f"at {commits[0][:12]}" in told  # its neighbour, not the one that was measured before it


@pytest.mark.slow
def test_without_a_known_fork_point_the_latest_of_the_base_is_used_and_it_is_said(
    repository: Repository, tmp_path: Path
) -> None:
    me = Person(tmp_path / "home")
    main = commit_score(repository, 100)
    me.run(repository)
    repository.branch("feature")
    commit_score(repository, 102)
    shallow = repository.clone(tmp_path / "shallow", "--depth=1", "--branch=feature")
    call = {**environment(me.home), "PRONY_DEFAULT_BRANCH": "main"}
    call_prony("run", shallow.path / "recipe.yaml", environment=call)
    told = " ".join(me.ask("gates", "last").split())
    assert f"main at {main[:12]}: the commit at which feature forked from main is not known (a shallow clone?)" in told
    assert "so this is the latest of main" in told


@pytest.fixture
def lab(tmp_path: Path) -> Iterator[Fleet]:
    """A server, and an agent that was started within another repository."""
    other = make_repository(tmp_path / "other", "elsewhere")
    with fleet(other.path / "lab", lease_ttl="10s") as found:
        found.folder.mkdir()
        found.add_server().start()
        found.wait_ready()
        agent = found.add_agent(found.url, options=("--kinds", "script"))
        agent.start()
        wait_for(lambda: "enrolled" in agent.said(), "the agent", 180)
        yield found


def test_the_submitters_repository_travels_with_what_is_submitted(
    repository: Repository, lab: Fleet, tmp_path: Path
) -> None:
    me = Person(tmp_path / "home", "--server", lab.url)
    first = commit_score(repository, 100)
    clone = repository.clone(tmp_path / "clone")
    me.run(clone)
    clone.branch("feature")
    second = commit_score(clone, 120)
    told = me.run(clone, code=1)
    assert "got worse by 20 %" in told
    assert f"main at {first[:12]}: the fork point." in told
    found = json.loads(me.ask("show", "last", "--json"))
    git = found["jobs"][0]["environment"]["git"]
    assert (git["commit"], git["branch"], git["base"], git["fork_point"]) == (second, "feature", "main", first)
    assert git["repository"] == str(repository.path.resolve())
    assert me.commits("scored") == [first]
    assert me.commits("scored", "--branch", "feature") == [second]
