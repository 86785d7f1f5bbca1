"""A release has one version in every file, and notes of what changed in it."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest
import yaml

from tools import try_upgrade
from tools.release_version import PLACES, check_version, read_notes, version_of, write_version

ROOT = Path(__file__).parents[3]
WORKFLOW = ROOT / ".github" / "workflows" / "release.yml"
CHANGES = "# Changes\n\n## Unreleased\n\n### Packages\n- New.\n\n## 0.0.9 (2026-01-02)\n\n- Old.\n"


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """Return a folder with every file that has the version."""
    for name in PLACES:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / name)
    (tmp_path / "CHANGELOG.md").write_text(CHANGES)
    return tmp_path


def test_every_file_has_the_same_version_now() -> None:
    found = {match[1] for name, pattern in PLACES.items() for match in re.findall(pattern, (ROOT / name).read_text())}
    assert len(found) == 1


def test_a_version_is_written_everywhere_and_the_changes_get_its_heading(copy: Path) -> None:
    write_version(copy, "0.2.0rc1", "2026-12-01")
    check_version(copy, "0.2.0rc1")
    changes = (copy / "CHANGELOG.md").read_text()
    assert "## Unreleased\n\n## 0.2.0rc1 (2026-12-01)\n\n### Packages\n- New.\n" in changes
    assert read_notes(changes, "0.2.0rc1") == "### Packages\n- New.\n"
    assert read_notes(changes, "0.0.9") == "- Old.\n"


@pytest.mark.parametrize("name", list(PLACES))
def test_a_file_of_another_version_is_named(copy: Path, name: str) -> None:
    write_version(copy, "0.2.0", "2026-12-01")
    path = copy / name
    path.write_text(path.read_text().replace("0.2.0", "0.3.0"))
    with pytest.raises(ValueError, match=re.escape(name)):
        check_version(copy, "0.2.0")


def test_what_is_no_release_is_refused(copy: Path) -> None:
    assert version_of("refs/tags/v1.2.3") == "1.2.3"
    for tag in ("v1.2", "main", "v1.2.3-dirty"):
        with pytest.raises(ValueError, match="is not a version"):
            version_of(tag)
    with pytest.raises(ValueError, match=r"says nothing of 0\.2\.0"):
        read_notes(CHANGES, "0.2.0")
    (copy / "CHANGELOG.md").write_text("# Changes\n")
    with pytest.raises(ValueError, match="no heading"):
        write_version(copy, "0.2.0", "2026-12-01")


def test_the_workflow_runs_tools_and_targets_that_exist_and_may_do_little() -> None:
    text = WORKFLOW.read_text()
    workflow = yaml.safe_load(text)
    for tool in re.findall(r"python -m tools\.(\w+)", text):
        assert (ROOT / "tools" / f"{tool}.py").is_file(), tool
    for target in re.findall(r"run: make (\w+)", text):
        assert re.search(rf"^{target}:", (ROOT / "Makefile").read_text(), re.MULTILINE), target
    for path in re.findall(r"(?:cp|sh) (deploy/\S+)", text):
        assert (ROOT / path).is_file(), path
    assert workflow["permissions"] == {"contents": "read"}
    assert [name for name, job in workflow["jobs"].items() if "permissions" in job] == ["publish", "pypi"]
    assert set(workflow["jobs"]["publish"]["needs"]) == {"build", "upgrade"}


def test_a_release_is_uploaded_to_pypi_last_without_a_stored_token_and_as_packages_alone() -> None:
    text = WORKFLOW.read_text()
    job = yaml.safe_load(text)["jobs"]["pypi"]
    assert (job["needs"], job["permissions"]) == ("publish", {"id-token": "write"})
    fetch, take, upload = job["steps"]
    assert fetch["with"]["name"] == "release"
    assert re.findall(r"release/(\S+)", take["run"]) == ["prony*.whl", "prony*.tar.gz"]
    assert upload["uses"].startswith("pypa/gh-action-pypi-publish@")
    assert upload["with"]["packages-dir"].rstrip("/") in take["run"]
    assert "password" not in text


def test_an_experiment_that_an_upgrade_loses_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    trial = try_upgrade.UpgradeTrial(tmp_path)
    there = {"home": '[{"id": "a", "name": "x", "state": "complete"}]', "restored": "[]"}

    def answer(*words: str | Path, environment: dict[str, str] | None = None) -> str:
        return there[Path((environment or {})["PRONY_HOME"]).name] if "list" in words else ""

    monkeypatch.setattr(try_upgrade, "_run", answer)
    before = trial.measure()
    assert trial.find_lost(before) == ["a"]
    there["restored"] = there["home"]
    assert trial.find_lost(before) == []
