"""Files over FTP, from a real server that behaves badly where a test says so."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from prony.errors import InputError, NotFoundError, TransportError
from prony.plugins.models.ftp import FtpSource
from prony.ports.models import FetchOptions, ModelPolicy
from servers.ftp_server import FtpServer, serving_ftp

CONTENT = bytes(range(256)) * 1000


@pytest.fixture
def ftp() -> Iterator[FtpServer]:
    with serving_ftp() as server:
        server.files["data/mnist.bin"] = CONTENT
        yield server


@pytest.fixture
def options(tmp_path: Path) -> FetchOptions:
    return FetchOptions(cache=tmp_path / "cache", formats=())


def fetch(url: str, options: FetchOptions) -> bytes:
    return FtpSource(pause=lambda _: None).fetch(url, options, lambda *_: None).path.read_bytes()


def test_a_file_is_fetched_once_and_asked_for_again_by_its_version(ftp: FtpServer, options: FetchOptions) -> None:
    assert fetch(ftp.url("/data/mnist.bin"), options) == CONTENT
    assert fetch(ftp.url("/data/mnist.bin"), options) == CONTENT
    assert ftp.log.count("RETR data/mnist.bin") == 1
    ftp.files["data/mnist.bin"], ftp.modified = b"newer", "20260102000000"
    assert fetch(ftp.url("/data/mnist.bin"), options) == b"newer"


def test_a_broken_transfer_goes_on_where_it_stopped(ftp: FtpServer, options: FetchOptions) -> None:
    ftp.cuts = [100_000]
    assert fetch(ftp.url("/data/mnist.bin"), options) == CONTENT
    assert "REST 100000" in ftp.log


def test_what_never_comes_whole_is_given_up(ftp: FtpServer, options: FetchOptions) -> None:
    ftp.cuts = [0] * 20
    with pytest.raises(TransportError, match="could not be fetched in 4 tries"):
        fetch(ftp.url("/data/mnist.bin"), options)


def test_no_error_shows_the_word_of_an_account(ftp: FtpServer, options: FetchOptions) -> None:
    ftp.cuts, ftp.accounts = [0] * 20, {"me": "secret"}
    with pytest.raises(TransportError) as found:
        fetch(ftp.url("/data/mnist.bin", "me:secret@"), options)
    assert "secret" not in str(found.value)


def test_an_account_is_needed_where_the_server_says_so(ftp: FtpServer, options: FetchOptions) -> None:
    ftp.accounts = {"me": "secret"}
    assert fetch(ftp.url("/data/mnist.bin", "me:secret@"), options) == CONTENT
    with pytest.raises(InputError, match="needs a login"):
        fetch(ftp.url("/data/other.bin"), options)


def test_a_missing_file_is_told(ftp: FtpServer, options: FetchOptions) -> None:
    with pytest.raises(NotFoundError, match="not found"):
        fetch(ftp.url("/data/none.bin"), options)


def test_a_server_that_tells_no_size_and_no_version_still_serves(ftp: FtpServer, options: FetchOptions) -> None:
    ftp.unknown = {"SIZE", "MDTM"}
    assert fetch(ftp.url("/data/mnist.bin"), options) == CONTENT


def test_an_md5_is_checked_and_serves_from_the_cache_without_a_question(ftp: FtpServer, options: FetchOptions) -> None:
    right = replace(options, checksum=f"md5:{hashlib.md5(CONTENT).hexdigest()}")
    assert fetch(ftp.url("/data/mnist.bin"), right) == CONTENT
    asked = len(ftp.log)
    assert fetch(ftp.url("/data/mnist.bin"), right) == CONTENT
    assert len(ftp.log) == asked
    with pytest.raises(InputError, match="has the wrong checksum"):
        fetch(ftp.url("/data/mnist.bin"), replace(options, checksum=f"md5:{'0' * 32}"))


def test_what_is_larger_than_the_limit_is_refused_before_it_is_read(ftp: FtpServer, options: FetchOptions) -> None:
    with pytest.raises(InputError, match="larger than the limit"):
        fetch(ftp.url("/data/mnist.bin"), replace(options, max_bytes=1000))
    assert "RETR data/mnist.bin" not in ftp.log


def test_a_private_address_is_not_reached_where_the_policy_says_so(ftp: FtpServer, options: FetchOptions) -> None:
    with pytest.raises(InputError, match="private network"):
        fetch(ftp.url("/data/mnist.bin"), replace(options, policy=ModelPolicy(private=False)))
    assert ftp.log == []


@pytest.mark.parametrize("url", ["ftp:///x", "ftp://host/a%0d%0aDELE b", "ftp://host:x/y"])
def test_what_is_no_url_of_a_file_is_refused(url: str, options: FetchOptions) -> None:
    with pytest.raises(InputError, match=r"is not (a|the) URL"):
        fetch(url, options)


def test_a_model_from_elsewhere_needs_a_checksum(options: FetchOptions) -> None:
    with pytest.raises(InputError, match="no protection against changes"):
        fetch("ftp://example.org/x.onnx", options)
