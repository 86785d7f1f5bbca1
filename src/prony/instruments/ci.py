"""Read what GitHub and GitLab tell their jobs about the commit that they checked out."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit


@dataclass(frozen=True)
class CiFacts:
    """`base` is the branch that a pull request is to be merged into; `merges`: the commit that was checked out is a
    merge of both, made by the CI. What is not told is empty."""

    commit: str = ""
    repository: str = ""
    branch: str = ""
    base: str = ""
    default_branch: str = ""
    fork_point: str = ""
    merges: bool = False


def read_ci(environ: Mapping[str, str]) -> CiFacts:
    """Return what the CI says; all of it is empty where none is known."""
    if environ.get("GITHUB_ACTIONS") == "true":
        return _read_github(environ)
    if environ.get("GITLAB_CI") == "true":
        return _read_gitlab(environ)
    return CiFacts()


def _read_github(environ: Mapping[str, str]) -> CiFacts:
    base, reference = environ.get("GITHUB_BASE_REF", ""), environ.get("GITHUB_REF_NAME", "")
    branch = environ.get("GITHUB_HEAD_REF", "") or ("" if environ.get("GITHUB_REF_TYPE") == "tag" else reference)
    server = urlsplit(environ.get("GITHUB_SERVER_URL", "https://github.com")).netloc
    return CiFacts(
        commit=environ.get("GITHUB_SHA", ""),
        repository=f"{server}/{environ.get('GITHUB_REPOSITORY', '')}",
        # A fork's `main` that is to be merged into `main` is not `main`: its number tells it apart.
        branch=reference if base and branch == base else branch,
        base=base,
        default_branch=_read_default_branch(environ.get("GITHUB_EVENT_PATH", "")),
        merges=bool(base) and environ.get("GITHUB_REF", "").endswith("/merge"),
    )


def _read_default_branch(event_path: str) -> str:
    """Return the default branch that GitHub names in the event that started the job."""
    try:
        event = json.loads(Path(event_path).read_bytes()) if event_path else {}
    except (OSError, ValueError):  # a job in a container may not see the file
        return ""
    repository = event.get("repository") if isinstance(event, dict) else None
    found = repository.get("default_branch") if isinstance(repository, dict) else None
    return found if isinstance(found, str) else ""


def _read_gitlab(environ: Mapping[str, str]) -> CiFacts:
    base = environ.get("CI_MERGE_REQUEST_TARGET_BRANCH_NAME", "")
    named = "" if environ.get("CI_COMMIT_TAG") else environ.get("CI_COMMIT_REF_NAME", "")
    branch = environ.get("CI_MERGE_REQUEST_SOURCE_BRANCH_NAME", "") or named
    if base and branch == base:
        branch = f"merge-requests/{environ.get('CI_MERGE_REQUEST_IID', '')}"
    project = urlsplit(environ.get("CI_PROJECT_URL", ""))
    return CiFacts(
        commit=environ.get("CI_COMMIT_SHA", ""),
        repository=f"{project.netloc}{project.path}",
        branch=branch,
        base=base,
        default_branch=environ.get("CI_DEFAULT_BRANCH", ""),
        fork_point=environ.get("CI_MERGE_REQUEST_DIFF_BASE_SHA", ""),
    )
