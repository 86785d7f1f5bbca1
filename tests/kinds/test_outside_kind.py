"""A kind of workload from a package outside Prony runs here and through a server, and is shown like any other."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from chaos.fleet import fleet
from servers.waiting import wait_for

from .package import RECIPE, install_package, prony


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The path on which an interpreter finds the package and what it brings."""
    with install_package(tmp_path_factory.mktemp("site")) as path:
        yield path


@pytest.fixture(scope="module")
def ran(installed: str, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """A home with one experiment of the outside kind, and its id."""
    folder = tmp_path_factory.mktemp("here")
    (folder / "recipe.yaml").write_text(RECIPE)
    done = prony("run", str(folder / "recipe.yaml"), "--json", home=folder / "home", path=installed)
    assert done.returncode == 0, done.stdout + done.stderr
    return folder / "home", json.loads(done.stdout)["experiment"]["id"]


def test_it_runs_here_and_is_shown_by_its_own_columns(installed: str, ran: tuple[Path, str]) -> None:
    home, experiment = ran
    shown = prony("show", experiment, home=home, path=installed)
    assert shown.returncode == 0, shown.stderr
    assert "one hash" in shown.stdout
    assert "slowest hash" in shown.stdout


def test_reports_have_its_sections_method_and_numbers(installed: str, ran: tuple[Path, str], tmp_path: Path) -> None:
    home, experiment = ran
    for ending in ("html", "json", "csv", "md"):
        target = tmp_path / f"report.{ending}"
        arguments = ("report", experiment, "--format", ending, "--out", str(target))
        done = prony(*arguments, home=home, path=installed)
        assert done.returncode == 0, done.stderr
    page = (tmp_path / "report.html").read_text()
    assert "What was hashed" in page
    assert "Each run is one hash of the same bytes." in page
    first = json.loads((tmp_path / "report.json").read_text())["jobs"][0]
    assert first["sections"][0]["title"] == "What was hashed"
    assert first["estimates"]["hash_ms.p50"]["count"] == 7
    assert "hash_ms.p50.low" in (tmp_path / "report.csv").read_text().partition("\n")[0]


def test_two_jobs_of_it_are_compared(installed: str, ran: tuple[Path, str]) -> None:
    home, experiment = ran
    arguments = ("compare", f"{experiment}-001", f"{experiment}-002", "--across", "algorithm", "--json")
    compared = prony(*arguments, home=home, path=installed)
    assert compared.returncode in (0, 1), compared.stderr
    (match,) = json.loads(compared.stdout)["matches"]
    (contrast,) = [one for one in match["contrasts"] if one["key"] == "hash_ms.p50"]
    assert contrast["baseline"]["count"] == contrast["candidate"]["count"] == 7


@pytest.mark.slow
def test_two_experiments_of_it_are_compared(installed: str, ran: tuple[Path, str]) -> None:
    home, experiment = ran
    again = prony("rerun", experiment, "--json", home=home, path=installed)
    assert again.returncode == 0, again.stderr
    other = json.loads(again.stdout)["experiment"]["id"]
    compared = prony("compare", experiment, other, "--json", home=home, path=installed)
    assert compared.returncode in (0, 1), compared.stderr
    assert "hash_ms" in compared.stdout


def test_what_is_wrong_with_its_recipe_is_told_before_anything_runs(installed: str, tmp_path: Path) -> None:
    recipe = tmp_path / "recipe.yaml"
    recipe.write_text("name: x\nworkload: {kind: hashing, algorithm: rot13}\n")
    refused = prony("run", str(recipe), home=tmp_path / "home", path=installed)
    assert refused.returncode == 2
    assert "no algorithm is called 'rot13'" in refused.stderr
    recipe.write_text("name: x\nworkload: {kind: hashing, sise: 1}\n")
    refused = prony("check", str(recipe), home=tmp_path / "home", path=installed)
    assert refused.returncode == 2
    assert "did you mean" in refused.stderr


def test_it_is_part_of_the_schema_where_it_is_installed(installed: str, tmp_path: Path) -> None:
    assert "HashingWorkload" in prony("schema", home=tmp_path, path=installed).stdout
    assert "HashingWorkload" not in prony("schema", home=tmp_path).stdout


def test_it_brings_a_command_of_its_own(installed: str, tmp_path: Path) -> None:
    assert "sha256" in prony("hashing", home=tmp_path, path=installed).stdout
    assert "the algorithms that can be measured here" in prony("--help", home=tmp_path, path=installed).stdout
    assert prony("hashing", home=tmp_path).returncode == 2


def test_where_it_is_not_installed_its_results_are_still_listed_and_shown(
    ran: tuple[Path, str], tmp_path: Path
) -> None:
    home, experiment = ran
    listed = prony("list", home=home)
    assert listed.returncode == 0, listed.stderr
    assert experiment in listed.stdout
    shown = prony("show", experiment, home=home)
    assert shown.returncode == 0, shown.stderr
    assert "hash" in shown.stdout
    page = tmp_path / "report.html"
    assert prony("report", experiment, "--format", "html", "--out", str(page), home=home).returncode == 0
    assert "The kind of workload &#x27;hashing&#x27; is not installed here" in page.read_text()
    again = prony("rerun", experiment, home=home)
    assert again.returncode == 2
    assert "hashing" in again.stderr


@pytest.mark.slow
def test_where_it_is_not_installed_its_results_are_refused_by_import_and_nothing_is_lost(
    ran: tuple[Path, str], installed: str, tmp_path: Path
) -> None:
    home, experiment = ran
    to = tmp_path / "export"
    assert prony("export", experiment, "--to", str(to), home=home, path=installed).returncode == 0
    refused = prony("import", str(to), home=tmp_path / "other")
    assert refused.returncode == 2
    assert "the kind of workload 'hashing' is not installed here" in refused.stderr
    assert experiment not in prony("list", home=tmp_path / "other").stdout
    brought = prony("import", str(to), home=tmp_path / "other", path=installed)
    assert brought.returncode == 0, brought.stderr
    assert experiment in prony("list", home=tmp_path / "other").stdout


def test_a_server_and_an_agent_run_it(installed: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "recipe.yaml").write_text(RECIPE)
    monkeypatch.setenv("PYTHONPATH", installed)
    with fleet(tmp_path, lease_ttl="30s") as found:
        found.add_server().start()
        found.wait_ready()
        agent = found.add_agent(found.url, options=("--kinds", "hashing,unknown"))
        agent.start()
        wait_for(lambda: "enrolled" in agent.said(), "the agent", 180)
        arguments = ("run", str(tmp_path / "recipe.yaml"), "--server", found.url, "--json")
        done = prony(*arguments, home=tmp_path / "client", path=installed)
        assert done.returncode == 0, done.stdout + done.stderr
        jobs = json.loads(done.stdout)["jobs"]
        assert [job["estimates"]["hash_ms.p50"]["count"] for job in jobs] == [7, 7]
        offered = prony("agents", "--server", found.url, "--json", home=tmp_path / "client", path=installed)
        (one,) = json.loads(offered.stdout)
        assert one["capabilities"]["facts"]["kinds"] == ["hashing"], "it offers what its owner allows and is installed"
