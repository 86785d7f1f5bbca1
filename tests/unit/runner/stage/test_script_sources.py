"""What a script finds on the disk: fetched before it begins, laid where it looks, and nothing runs without it."""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from prony.errors import InputError
from prony.kinds.script.runner.sources import below, replace_source_paths
from prony.model.result import ResultState
from prony.ports.models import AGENT_POLICY
from servers.ftp_server import FtpServer, serving_ftp
from servers.web_server import Page, WebServer, serving

from .staged_runs import Runs, notes, why

READ = """
import json, pathlib, sys
print(json.dumps({"bytes": sum(len(pathlib.Path(name).read_bytes()) for name in sys.argv[1:])}))
"""


@pytest.fixture
def web() -> Iterator[WebServer]:
    with serving() as server:
        server.pages["/mnist.bin"] = Page(b"12345")
        yield server


@pytest.fixture
def ftp() -> Iterator[FtpServer]:
    with serving_ftp() as server:
        server.files["mnist.bin"] = b"1234567"
        yield server


def command(*words: str) -> list[str]:
    return [sys.executable, "-c", READ, *words]


def test_sources_of_every_kind_lie_where_the_script_looks(
    runs: Runs, web: WebServer, ftp: FtpServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL_S3", web.url("").rstrip("/"))
    web.pages["/bucket/key.bin"] = Page(b"1")
    local = runs.write("local/file.bin", "12")
    runs.write("local/folder/deep/file.bin", "123")
    sources = [
        {"source": web.url("/mnist.bin"), "path": "data/http.bin"},
        {"source": ftp.url("/mnist.bin"), "path": "data/ftp.bin"},
        {"source": "s3://bucket/key.bin", "path": "data/s3.bin"},
        {"source": f"file://{local}", "path": "data/file.bin"},
        {"source": str(local.parent / "folder"), "path": "data/folder"},
    ]
    words = ["data/http.bin", "data/ftp.bin", "data/s3.bin", "data/file.bin", "data/folder/deep/file.bin"]
    result = runs.run(command=command(*words), sources=sources)
    assert result.state is ResultState.COMPLETE, result.failure
    assert runs.told()["bytes"] == [5 + 7 + 1 + 2 + 3]


def test_a_whole_path_is_found_by_the_command_and_by_its_variables(runs: Runs, web: WebServer) -> None:
    source = {"source": web.url("/mnist.bin"), "path": "/data/mnist.bin"}
    runs.write("scripts/read.py", "import os, pathlib\nprint({'no'})\n" + READ)
    result = runs.run(
        command=[sys.executable, "read.py", "/data/mnist.bin", "$(WHERE)"],
        directory=str(runs.base / "scripts"),
        environment={"WHERE": "/data/mnist.bin"},
        sources=[source],
    )
    assert result.state is ResultState.COMPLETE, result.failure
    assert runs.told()["bytes"] == [10]
    assert not Path("/data/mnist.bin").exists()


@pytest.mark.parametrize(
    ("word", "becomes"),
    [
        ("/data", "/run/data"),
        ("--data=/data/x", "--data=/run/data/x"),
        ("/data/", "/run/data/"),
        ("/database", "/database"),
        ("x/data", "x/data"),
        ("/data.bin", "/data.bin"),
        ("a:/data", "a:/run/data"),
    ],
)
def test_only_the_path_itself_is_replaced(word: str, becomes: str) -> None:
    from prony.kinds.script.runner.sources import FetchedSource
    from prony.kinds.script.schema import ScriptSource

    thing = FetchedSource(ScriptSource(source="/x", path="/data"), Path("/x"), (Path("/x"),))
    assert replace_source_paths(word, [thing], Path("/run")) == becomes


def test_a_failed_fetch_stops_the_job_before_anything_runs(runs: Runs, web: WebServer) -> None:
    mark = runs.base / "ran"
    result = runs.run(command=["touch", str(mark)], sources=[{"source": web.url("/none.bin"), "path": "x"}])
    assert (result.state, why(result).code) == (ResultState.FAILED, "unknown_model")
    assert why(result).message.startswith("x: ")
    assert result.repetitions == ()
    assert not mark.exists()


def test_a_failed_model_of_the_server_stops_the_job_too(runs: Runs, web: WebServer) -> None:
    mark = runs.base / "ran"
    server = {"command": ["touch", str(mark)], "ports": [1], "sources": [{"source": web.url("/none"), "path": "x"}]}
    result = runs.run(command=["touch", str(mark)], server=server)
    assert (result.state, why(result).code) == (ResultState.FAILED, "unknown_model")
    assert not mark.exists()


def test_a_wrong_md5_stops_the_job_and_a_right_one_is_kept_with_the_result(runs: Runs, web: WebServer) -> None:
    right = f"md5:{hashlib.md5(b'12345').hexdigest()}"
    source = {"source": web.url("/mnist.bin"), "path": "x.bin"}
    wrong = runs.run(command=command("x.bin"), sources=[source | {"checksum": f"md5:{'0' * 32}"}])
    assert why(wrong).code == "checksum_mismatch"
    good = runs.run(command=command("x.bin"), sources=[source | {"checksum": right}])
    assert good.state is ResultState.COMPLETE
    assert right in (runs.folder / "environment.json").read_text()
    asked = len(web.log)
    assert runs.run(command=command("x.bin"), sources=[source | {"checksum": right}]).state is ResultState.COMPLETE
    assert len(web.log) == asked


def test_what_a_script_changes_in_the_cache_is_told_and_fetched_again(runs: Runs, web: WebServer) -> None:
    source = {"source": web.url("/mnist.bin"), "path": "x.bin"}
    result = runs.run(command=["sh", "-c", "echo more >> x.bin"], sources=[source])
    assert "the script changed the fetched file x.bin" in notes(result)
    assert runs.run(command=command("x.bin"), sources=[source]).state is ResultState.COMPLETE
    assert runs.told()["bytes"] == [5]


def test_a_script_may_put_files_of_its_own_beside_its_data(runs: Runs) -> None:
    runs.write("data/a.bin", "1")
    result = runs.run(
        command=["sh", "-c", "echo more > data/own && cat data/a.bin"],
        sources=[{"source": str(runs.base / "data"), "path": "data"}],
    )
    assert result.state is ResultState.COMPLETE, result.failure
    assert not (runs.base / "data" / "own").exists()


def test_a_policy_that_allows_fewer_kinds_of_sources_holds(runs: Runs, ftp: FtpServer) -> None:
    runs.policy = AGENT_POLICY
    result = runs.run(command=command("x"), sources=[{"source": ftp.url("/mnist.bin"), "path": "x"}])
    assert why(result).code == "model_refused"
    assert ftp.log == []


@pytest.mark.parametrize("path", ["../x", "/", "~", "a/../../b", "."])
def test_a_path_that_leads_out_of_the_folder_is_refused(path: str) -> None:
    with pytest.raises(InputError, match="not a valid path for a source"):
        below(path, Path("/run"))


def test_a_source_never_takes_the_place_of_a_file_of_the_script(runs: Runs) -> None:
    runs.write("scripts/x.bin", "mine")
    other = runs.write("other.bin", "theirs")
    result = runs.run(
        command=command("x.bin"),
        directory=str(runs.base / "scripts"),
        sources=[{"source": str(other), "path": "x.bin"}],
    )
    assert "the script's folder already has" in why(result).message


def test_what_came_by_a_plain_way_without_a_checksum_is_told(runs: Runs, web: WebServer) -> None:
    result = runs.run(command=command("x"), sources=[{"source": web.url("/mnist.bin"), "path": "x"}])
    assert notes(result) == "x was fetched without encryption or checksum: it may have been changed"


def test_where_others_submit_a_plain_way_needs_a_checksum(runs: Runs) -> None:
    runs.policy = AGENT_POLICY
    result = runs.run(command=command("x"), sources=[{"source": "http://example.org/mnist.bin", "path": "x"}])
    assert why(result).code == "insecure_url"
