"""What strangers read first is short, whole and of this version."""

from __future__ import annotations

import yaml

from .house import ROOT, page, project, rows, section

TOOLS = (
    "guidellm", "AIPerf", "inference-perf", "optimum-benchmark", "llama-bench", "hyperfine", "pytest-benchmark", "asv",
    "otava", "LoadGen",
)  # fmt: skip


def test_the_readme_is_short() -> None:
    assert len((ROOT / "README.md").read_text().splitlines()) < 150


def test_the_citation_is_of_this_version_and_names_the_project() -> None:
    found = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    assert found["version"] == project()["version"]
    assert found["license"] == project()["license"]
    assert [set(author) for author in found["authors"]] == [{"name"}]


def test_every_form_of_an_issue_asks_something_that_must_be_answered() -> None:
    forms = [path for path in (ROOT / ".github" / "ISSUE_TEMPLATE").glob("*.yml") if path.stem != "config"]
    assert len(forms) >= 3
    for path in forms:
        form = yaml.safe_load(path.read_text())
        assert {"name", "description", "body"} <= set(form), path
        ids = [one["id"] for one in form["body"]]
        assert len(ids) == len(set(ids)), path
        assert any(one.get("validations", {}).get("required") for one in form["body"]), path


def test_every_tool_is_compared_in_both_directions() -> None:
    glance = rows(section(page("comparison"), "## At a glance"))[1:]
    both = rows(section(page("comparison"), "## What each does that Prony does not"))[1:]
    assert [row[0] for row in glance] == ["**Prony**", *TOOLS]
    assert [row[0] for row in both] == list(TOOLS)
    assert all(cell.strip() for row in (*glance, *both) for cell in row)
