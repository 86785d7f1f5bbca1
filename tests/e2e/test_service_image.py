"""A service in an image: pulled once for all its starts, run by its digest, which the result keeps."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from servers.binaries import AbsentError
from servers.commands import call_prony
from servers.needs import lack
from servers.redis import find_redis

DIGEST = f"org.example/redis@sha256:{'5' * 64}"
# An engine that runs the entry point as it is: paths and ports are the same inside as outside.
ENGINE = """#!/bin/sh
echo "$*" >> {folder}/words
case "$1" in
  image) [ -e {folder}/pulled ] && printf '[{{"Id": "1", "RepoDigests": ["{digest}"]}}]' || exit 125;;
  pull) touch {folder}/pulled;;
  run)
    until [ "$1" = "{digest}" ]; do shift; done
    shift
    exec {redis} "$@";;
esac
"""
RECIPE = """\
name: boxed
workload: {kind: service, service: redis, settings: {image: "org.example/redis:7"}, restart: each-run}
load: {closed: {concurrency: 1}, requests: 20, repeats: 2}
"""


def test_a_service_is_pulled_once_and_started_by_its_digest(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    try:
        redis = find_redis()
    except AbsentError as exc:
        lack("redis", str(exc))
    engine = tmp_path / "podman"
    engine.write_text(ENGINE.format(folder=tmp_path, digest=DIGEST, redis=redis))
    engine.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    (tmp_path / "boxed.yaml").write_text(RECIPE)
    (job,) = json.loads(call_prony("run", tmp_path / "boxed.yaml", "--json", "--no-report").stdout)["jobs"]
    words = (tmp_path / "words").read_text().splitlines()
    assert [line for line in words if line.startswith("pull")] == ["pull org.example/redis:7"]
    assert len([line for line in words if line.startswith("run")]) == 2
    assert DIGEST in json.dumps(job)
