"""Objects and folders of an S3 store, as the store's pages say."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from prony.errors import InputError, NotFoundError, StoreError
from prony.plugins.models.s3 import S3Source, S3Store
from prony.plugins.s3_sign import Signer
from prony.ports.models import FetchOptions, ModelFiles
from servers.web_server import Page, WebServer, serving

LIST = "/data?list-type=2&prefix=mnist%2F"


def listing(*objects: tuple[str, str, int], token: str = "") -> bytes:
    contents = "".join(
        f"<Contents><Key>{key}</Key><ETag>&quot;{etag}&quot;</ETag><Size>{size}</Size></Contents>"
        for key, etag, size in objects
    )
    more = f"<NextContinuationToken>{token}</NextContinuationToken>" if token else ""
    return f'<ListBucketResult xmlns="http://s3.amazonaws.com/doc/2006-03-01/">{contents}{more}</ListBucketResult>'.encode()


@pytest.fixture
def web(monkeypatch: pytest.MonkeyPatch) -> Iterator[WebServer]:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_ENDPOINT_URL"):
        monkeypatch.delenv(name, raising=False)
    for name in ("AWS_PROFILE", "AWS_DEFAULT_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    for name in ("AWS_CONFIG_FILE", "AWS_SHARED_CREDENTIALS_FILE"):  # whoever runs the tests may have some
        monkeypatch.setenv(name, "/nonexistent")
    with serving() as server:
        monkeypatch.setenv("AWS_ENDPOINT_URL_S3", server.url("").rstrip("/"))
        yield server


@pytest.fixture
def options(tmp_path: Path) -> FetchOptions:
    return FetchOptions(cache=tmp_path / "cache", formats=())


def fetch(reference: str, options: FetchOptions) -> ModelFiles:
    return S3Source(pause=lambda _: None).fetch(reference, options, lambda *_: None)


def test_an_object_is_fetched_once_and_without_keys_by_nobody(web: WebServer, options: FetchOptions) -> None:
    web.pages["/data/a%20b.bin"] = Page(b"content")
    for _ in range(2):
        assert fetch("s3://data/a%20b.bin", options).path.read_bytes() == b"content"
    assert [headers.get("If-None-Match") for _, headers in web.log] == [None, '"v1"']
    assert all("authorization" not in {name.lower() for name in headers} for _, headers in web.log)


def test_with_keys_each_request_is_signed(
    web: WebServer, options: FetchOptions, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in (("ACCESS_KEY_ID", "me"), ("SECRET_ACCESS_KEY", "hidden"), ("SESSION_TOKEN", "lent")):
        monkeypatch.setenv(f"AWS_{name}", value)
    web.pages["/data/a.bin"] = Page(b"content")
    assert fetch("s3://data/a.bin", options).path.read_bytes() == b"content"
    _, headers = web.log[0]
    told = {name.lower(): value for name, value in headers.items()}
    assert told["authorization"].startswith("AWS4-HMAC-SHA256 Credential=me/")
    assert told["x-amz-security-token"] == "lent"
    assert "hidden" not in str(headers)


def test_what_is_below_a_prefix_is_a_folder_and_only_what_changed_is_fetched_again(
    web: WebServer, options: FetchOptions
) -> None:
    web.pages[LIST] = Page(listing(("mnist/", "", 0), ("mnist/a.bin", "1", 1), token="t"), etag="")
    web.pages["/data?continuation-token=t&list-type=2&prefix=mnist%2F"] = Page(
        listing(("mnist/deep/b.bin", "1", 2)), etag=""
    )
    web.pages |= {"/data/mnist/a.bin": Page(b"a"), "/data/mnist/deep/b.bin": Page(b"bb")}
    found = fetch("s3://data/mnist", options)
    assert {path.relative_to(found.path).as_posix(): path.read_bytes() for path in found.files} == {
        "a.bin": b"a",
        "deep/b.bin": b"bb",
    }
    web.pages[LIST] = Page(listing(("mnist/deep/b.bin", "2", 3)), etag="")
    web.pages["/data/mnist/deep/b.bin"] = Page(b"ccc", etag='"v2"')
    found = fetch("s3://data/mnist/", options)
    assert [path.read_bytes() for path in found.path.rglob("*") if path.is_file()] == [b"ccc"]
    assert [path for path, _ in web.log].count("/data/mnist/a.bin") == 1


def test_a_name_that_leads_out_of_the_folder_is_refused(web: WebServer, options: FetchOptions) -> None:
    web.pages[LIST] = Page(listing(("mnist/../../etc/passwd", "1", 1)), etag="")
    with pytest.raises(InputError, match="not a valid file name"):
        fetch("s3://data/mnist", options)


def test_what_is_neither_an_object_nor_a_folder_is_told(web: WebServer, options: FetchOptions) -> None:
    with pytest.raises(NotFoundError, match="does not exist"):
        fetch("s3://data/mnist", options)
    web.pages[LIST] = Page(listing(), etag="")
    with pytest.raises(NotFoundError, match="does not exist"):
        fetch("s3://data/mnist", options)


def test_a_folder_has_a_sha256_and_no_md5(web: WebServer, options: FetchOptions) -> None:
    web.pages[LIST] = Page(listing(("mnist/a", "1", 1), ("mnist/b", "1", 1)), etag="")
    web.pages |= {"/data/mnist/a": Page(b"a"), "/data/mnist/b": Page(b"b")}
    with pytest.raises(InputError, match="a folder has no md5"):
        fetch("s3://data/mnist", replace(options, checksum=f"md5:{'0' * 32}"))
    lines = "".join(f"{hashlib.sha256(one).hexdigest()}  {one.decode()}\n" for one in (b"a", b"b"))
    right = f"sha256:{hashlib.sha256(lines.encode()).hexdigest()}"
    assert len(fetch("s3://data/mnist", replace(options, checksum=right)).files) == 2


@pytest.mark.parametrize("reference", ["s3://", "s3:///x", "s3://a b/c", "s3://bucket/key?versionId=3"])
def test_what_is_no_place_in_s3_is_refused(reference: str, options: FetchOptions) -> None:
    with pytest.raises(InputError, match="not an S3 address"):
        fetch(reference, options)


def test_without_an_endpoint_it_is_amazons_in_the_region_of_the_environment() -> None:
    store = S3Store.of({"AWS_DEFAULT_REGION": "eu-west-1"})
    assert store.url("data", "a b") == "https://data.s3.eu-west-1.amazonaws.com/a%20b"
    assert store.url("my.data", "a") == "https://s3.eu-west-1.amazonaws.com/my.data/a"


def test_keys_are_shown_to_the_store_alone() -> None:
    store = S3Store(endpoint="https://store.example", region="x", access_key="me", secret_key="hidden")
    assert store.headers("https://store.example/data/a")
    assert store.headers("https://store.example.evil.org/data/a") == {}
    amazon = replace(store, endpoint="")
    assert amazon.headers("https://elsewhere.example/a") == {}


def test_a_cache_that_cannot_be_written_is_told(web: WebServer, tmp_path: Path) -> None:
    (tmp_path / "cache").write_text("a file")
    with pytest.raises(StoreError, match="cache"):
        fetch("s3://data/mnist", FetchOptions(cache=tmp_path / "cache", formats=()))


@pytest.mark.parametrize(
    ("query", "signature"),
    [
        ({"lifecycle": ""}, "fea454ca298b7da1c68078a5d1bdbfbbe0d65c699e0f91ac7a200a0136783543"),
        ({"max-keys": "2", "prefix": "J"}, "34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7"),
    ],
)
def test_the_signature_is_the_one_that_amazon_gives_as_an_example(query: dict[str, str], signature: str) -> None:
    host, at = "examplebucket.s3.amazonaws.com", datetime(2013, 5, 24, tzinfo=UTC)
    signer = Signer("AKIAIOSFODNN7EXAMPLE", "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY", "us-east-1", host, at)
    assert signer.headers("GET", "/", query)["authorization"].endswith(f"Signature={signature}")


CREDENTIALS = """\
[default]
aws_access_key_id = mine
aws_secret_access_key = hid%den
[lab]
aws_access_key_id = labs
aws_secret_access_key = other
aws_session_token = lent
"""
CONFIG = """\
[default]
region = eu-west-1
[profile lab]
region = eu-north-1
endpoint_url = https://store.example/
"""


@pytest.fixture
def aws_home(tmp_path: Path) -> dict[str, str]:
    (tmp_path / ".aws").mkdir()
    (tmp_path / ".aws" / "credentials").write_text(CREDENTIALS)
    (tmp_path / ".aws" / "config").write_text(CONFIG)
    return {"HOME": str(tmp_path)}


def test_keys_and_region_come_from_the_shared_files(aws_home: dict[str, str]) -> None:
    assert S3Store.of(aws_home) == S3Store("", "eu-west-1", "mine", "hid%den")
    lab = S3Store.of(aws_home | {"AWS_PROFILE": "lab"})
    assert lab == S3Store("https://store.example", "eu-north-1", "labs", "other", "lent")


def test_files_in_other_places_are_read(aws_home: dict[str, str], tmp_path: Path) -> None:
    named = {"AWS_SHARED_CREDENTIALS_FILE": f"{tmp_path}/.aws/credentials", "AWS_PROFILE": "lab"}
    assert S3Store.of(named).access_key == "labs"


def test_keys_of_the_environment_come_first_and_are_not_mixed_with_a_profiles(aws_home: dict[str, str]) -> None:
    own = {"AWS_ACCESS_KEY_ID": "a", "AWS_SECRET_ACCESS_KEY": "b", "AWS_PROFILE": "lab"}
    assert S3Store.of(aws_home | own) == S3Store("https://store.example", "eu-north-1", "a", "b", "")


def test_a_profile_that_is_missing_or_a_broken_file_is_refused(aws_home: dict[str, str], tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no AWS profile is called nobody"):
        S3Store.of(aws_home | {"AWS_PROFILE": "nobody"})
    (tmp_path / ".aws" / "config").write_text("region = x\n")
    with pytest.raises(InputError, match="cannot be read as an AWS file"):
        S3Store.of(aws_home)
