"""`prony rerun` uses the images of the earlier run, also at a target.

The engine is a small script. It stands for one that pulls, whose tag moves between the two runs.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import pytest

from lanes import only_slowly
from servers.commands import call_prony

ENGINE = """#!/bin/sh
case "$1" in
  image)
    case "$3" in *@sha256:*) digest=$3;; *) digest=registry.example/org/image@sha256:$(cat {folder}/tag);; esac
    printf '[{{"Id": "%064d", "RepoDigests": ["%s"]}}]' 1 "$digest";;
  run) for word in "$@"; do case "$word" in *@sha256:*) echo "$word" >> {folder}/ran;; esac; done; echo speed=42;;
esac
"""
RECIPE = """\
name: boxed
workload: {{kind: script, image: "org/image:1", command: null, metrics: [{{name: speed, pattern: "speed=([0-9]+)"}}]}}
measure: {{repeats: 1, warmup: 0}}
{place}
"""


@pytest.fixture
def engine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with an engine, the tag that its registry has, and what it ran."""
    folder = tmp_path / "engine"
    folder.mkdir()
    (folder / "podman").write_text(ENGINE.format(folder=folder))
    (folder / "podman").chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}{os.pathsep}{os.environ['PATH']}")
    return folder


@pytest.mark.parametrize("target", ["", *only_slowly("box")])
def test_a_rerun_uses_the_image_that_its_tag_meant_then(engine: Path, tmp_path: Path, target: str) -> None:
    options: list[str | Path] = [
        "--prefix",
        tmp_path / "there",
        "--python",
        sys.executable,
        "--set",
        f"lock={tmp_path / 'lock'}",
    ]
    call_prony("targets", "add", "box", "--kind", "local", *options)
    path = tmp_path / "boxed.yaml"
    path.write_text(RECIPE.format(place=f"place: {{on: {target}}}" if target else ""))
    first, moved = "1" * 64, "2" * 64
    (engine / "tag").write_text(first)
    call_prony("run", path, "--no-report", "--json")
    (engine / "tag").write_text(moved)
    again = json.loads(call_prony("rerun", "last", "--no-report", "--json").stdout)
    assert again["experiment"]["notes"] == []
    call_prony("rerun", "last", "--no-report")
    call_prony("run", path, "--no-report")
    wanted = [f"registry.example/org/image@sha256:{digest}" for digest in (first, first, first, moved)]
    assert (engine / "ran").read_text().split() == wanted


def test_an_image_without_a_digest_in_the_results_is_said_to_run_by_its_name(engine: Path, tmp_path: Path) -> None:
    path = tmp_path / "boxed.yaml"
    path.write_text(RECIPE.format(place=""))
    (engine / "podman").write_text('#!/bin/sh\n[ "$1" = image ] && exit 1\n[ "$1" != run ] || echo speed=42\n')
    call_prony("run", path, "--no-report")
    again = json.loads(call_prony("rerun", "last", "--no-report", "--json").stdout)
    (note,) = again["experiment"]["notes"]
    assert note == "image org/image:1 runs by its name: the earlier results have no digest of it"
