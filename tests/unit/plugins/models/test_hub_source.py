"""Repositories of a hub: listed, chosen from, fetched, checked and kept by commit."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from prony.errors import InputError, NotFoundError, PronyError, TransportError
from prony.plugins.models.hub import Hub, HubReference, HubSource
from prony.ports.models import FOLDER, FetchOptions, ModelFiles, ModelPolicy
from prony.runner.models import fetch as fetch_model
from servers.web_server import Page, WebServer, serving

FIRST, SECOND = "a" * 40, "b" * 40
LLM = {"config.json": b"{}", "model.safetensors": b"weights" * 500, "tokenizer.json": b"[]"}


def sibling(name: str, content: bytes) -> dict[str, object]:
    """Return a file as the hub lists it: git's hash of a small one, the SHA-256 of weights."""
    blob = hashlib.sha1(b"blob %d\0" % len(content) + content, usedforsecurity=False).hexdigest()
    found: dict[str, object] = {"rfilename": name, "size": len(content), "blobId": blob}
    if name.endswith((".safetensors", ".gguf", ".onnx")):
        digest = hashlib.sha256(content).hexdigest()
        found["lfs"] = {"sha256": digest, "size": len(content), "pointerSize": 134}
    return found


def add_repo(web: WebServer, files: dict[str, bytes], commit: str = FIRST, revision: str = "main") -> None:
    """Serve a repository as the hub does: its list by revision, small files at once, weights by a redirect."""
    listing = {"id": "org/name", "sha": commit, "siblings": [sibling(*one) for one in files.items()]}
    for asked in (revision, commit):
        path = f"/api/models/org/name/revision/{asked}?blobs=true"
        web.pages[path] = Page(json.dumps(listing).encode(), etag="")
    for name, content in files.items():
        stored = f"/cdn/{commit}/{name}"
        is_large = "lfs" in sibling(name, content)
        web.pages[stored] = Page(content)
        # Another name of the same machine, as the bytes of the real hub come from another host.
        elsewhere = f"http://localhost:{web.server_address[1]}{stored}"
        web.pages[f"/org/name/resolve/{commit}/{name}"] = Page(location=elsewhere) if is_large else Page(content)


@pytest.fixture
def web(monkeypatch: pytest.MonkeyPatch) -> Iterator[WebServer]:
    for name in ("HF_TOKEN", "HF_HUB_OFFLINE"):
        monkeypatch.delenv(name, raising=False)
    with serving() as server:
        monkeypatch.setenv("HF_ENDPOINT", server.url("/"))
        yield server


@pytest.fixture
def options(tmp_path: Path) -> FetchOptions:
    return FetchOptions(cache=tmp_path / "cache", formats=(FOLDER, ".gguf"))


def fetch(reference: str, options: FetchOptions) -> ModelFiles:
    return HubSource(pause=lambda _: None).fetch(reference, options, lambda *_: None)


def names(found: ModelFiles) -> list[str]:
    return [path.relative_to(found.path).as_posix() for path in found.files]


def refusal(reference: str, options: FetchOptions) -> PronyError:
    with pytest.raises(PronyError) as caught:
        fetch(reference, options)
    assert caught.value.hint
    return caught.value


def test_a_repository_is_a_folder_at_the_commit_that_the_revision_means(web: WebServer, options: FetchOptions) -> None:
    add_repo(web, LLM)
    steps: list[tuple[int, int | None]] = []
    found = HubSource().fetch("hf:org/name@main", options, lambda *step: steps.append(step))
    assert {path.name: path.read_bytes() for path in found.files} == LLM
    assert found.source == f"hf:org/name@{FIRST}"
    size = sum(map(len, LLM.values()))
    assert steps[0] == (0, size)
    assert steps[-1] == (size, size)


def test_the_commit_is_recorded_with_the_model(web: WebServer, options: FetchOptions) -> None:
    add_repo(web, {"a.gguf": b"GGUF"}, revision="v1%2Fx")
    _, facts = fetch_model("hf:org/name@v1%2Fx/a.gguf", options, lambda *_: None)
    assert facts.source == f"hf:org/name@{FIRST}/a.gguf"
    assert facts.sha256 == hashlib.sha256(b"GGUF").hexdigest()


def test_of_several_formats_and_folders_one_copy_of_the_weights_is_fetched(
    web: WebServer, options: FetchOptions
) -> None:
    more = ("pytorch_model.bin", "tf_model.h5", ".gitattributes", "onnx/model.onnx", "consolidated.safetensors")
    add_repo(web, LLM | dict.fromkeys(more, b"x"))
    assert names(fetch("hf:org/name", options)) == list(LLM)


def test_the_only_file_that_the_engine_loads_needs_no_name(web: WebServer, options: FetchOptions) -> None:
    gguf = replace(options, formats=(".gguf",))
    add_repo(web, LLM | {"a-Q4.gguf": b"4"})
    found = fetch("hf:org/name", gguf)
    assert (found.path.read_bytes(), found.source) == (b"4", f"hf:org/name@{FIRST}/a-Q4.gguf")
    add_repo(web, LLM | {"a-Q4.gguf": b"4", "a-Q8.gguf": b"8"})
    error = refusal("hf:org/name", gguf)
    assert error.code == "format_unavailable"
    assert "a-Q4.gguf, a-Q8.gguf" in error.hint


def test_a_model_is_looked_up_without_its_bytes(web: WebServer, options: FetchOptions) -> None:
    add_repo(web, LLM)
    HubSource().look_up("hf:org/name", options)
    assert not list(options.cache.rglob("*.safetensors"))
    with pytest.raises(NotFoundError, match="does not exist"):
        HubSource().look_up("hf:org/name@main/gone.gguf", options)
    with pytest.raises(NotFoundError, match="has no hf:org/other"):
        HubSource().look_up("hf:org/other", options)


def test_a_split_gguf_comes_with_all_its_parts(web: WebServer, options: FetchOptions) -> None:
    parts = {f"q/m-0000{n}-of-00002.gguf": bytes([n]) for n in (1, 2)}
    add_repo(web, parts | {"q/other-00001-of-00002.gguf": b"x"})
    found = fetch("hf:org/name@main/q/m-00001-of-00002.gguf", options)
    assert [path.name for path in found.files] == ["m-00001-of-00002.gguf", "m-00002-of-00002.gguf"]


def test_a_file_comes_with_what_lies_beside_it(web: WebServer, options: FetchOptions) -> None:
    add_repo(web, {"ov/m.xml": b"<net/>", "ov/m.bin": b"w", "m.bin": b"x"})
    found = fetch("hf:org/name/ov/m.xml", replace(options, formats=(".xml",)))
    assert [path.read_bytes() for path in found.files] == [b"<net/>", b"w"]


def test_a_revision_is_asked_for_again_and_only_new_bytes_are_fetched(web: WebServer, options: FetchOptions) -> None:
    add_repo(web, {"a.gguf": b"old"})
    for _ in range(2):
        assert fetch("hf:org/name@main/a.gguf", options).path.read_bytes() == b"old"
    assert [path for path, _ in web.log].count(f"/cdn/{FIRST}/a.gguf") == 1
    add_repo(web, {"a.gguf": b"new"}, SECOND)
    assert fetch("hf:org/name@main/a.gguf", options).path.read_bytes() == b"new"
    assert fetch(f"hf:org/name@{FIRST}/a.gguf", options).path.read_bytes() == b"old"


def test_a_commit_that_is_here_needs_no_hub(web: WebServer, options: FetchOptions) -> None:
    add_repo(web, LLM)
    fetch("hf:org/name", options)
    web.pages.clear()
    web.log.clear()
    assert names(fetch(f"hf:org/name@{FIRST}", options)) == list(LLM)
    assert web.log == []


def test_without_the_hub_the_cache_is_used_only_when_asked_for(
    web: WebServer, options: FetchOptions, monkeypatch: pytest.MonkeyPatch
) -> None:
    add_repo(web, LLM)
    fetch("hf:org/name", options)
    web.pages = {path: Page(status=503) for path in web.pages}
    error = refusal("hf:org/name", options)
    assert isinstance(error, TransportError)
    assert f"HF_HUB_OFFLINE=1 uses the cached version: commit {FIRST}" in error.hint
    web.log.clear()
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    assert fetch("hf:org/name", options).source == f"hf:org/name@{FIRST}"
    assert "HF_HUB_OFFLINE is set" in refusal("hf:org/other", options).message
    assert web.log == []


def test_a_broken_transfer_goes_on_where_it_stopped(web: WebServer, options: FetchOptions) -> None:
    content = bytes(range(256)) * 64
    add_repo(web, {"a.gguf": content})
    web.pages[f"/cdn/{FIRST}/a.gguf"].cuts = [5000]
    assert fetch("hf:org/name/a.gguf", options).path.read_bytes() == content
    asked = [headers.get("Range") for path, headers in web.log if path.startswith("/cdn")]
    assert asked[0] is None
    assert asked[1] == "bytes=5000-"


@pytest.mark.parametrize("name", ["model.safetensors", "config.json"])
def test_other_bytes_than_the_listed_ones_are_refused(web: WebServer, options: FetchOptions, name: str) -> None:
    add_repo(web, LLM)
    for page in (f"/cdn/{FIRST}/{name}", f"/org/name/resolve/{FIRST}/{name}"):
        web.pages[page].content = bytes(len(LLM[name]))
    assert refusal("hf:org/name", options).code == "checksum_mismatch"
    assert not list(options.cache.rglob(name))


def test_the_token_is_shown_to_the_hub_alone(
    web: WebServer, options: FetchOptions, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_TOKEN", "hidden")
    add_repo(web, LLM)
    fetch("hf:org/name", options)
    shown = {path: headers.get("Authorization") for path, headers in web.log}
    assert {value for path, value in shown.items() if not path.startswith("/cdn")} == {"Bearer hidden"}
    assert {value for path, value in shown.items() if path.startswith("/cdn")} == {None}


@pytest.mark.parametrize("status", [401, 403])
def test_a_closed_model_asks_for_a_token(web: WebServer, options: FetchOptions, status: int) -> None:
    add_repo(web, LLM)
    web.pages[f"/org/name/resolve/{FIRST}/model.safetensors"] = Page(statuses=[status])
    error = refusal("hf:org/name", options)
    assert (error.code, "HF_TOKEN" in error.hint) == ("no_access", True)


def test_what_the_hub_does_not_have_is_told(web: WebServer, options: FetchOptions) -> None:
    add_repo(web, LLM)
    for reference in ("hf:org/none", "hf:org/name@v9", "hf:org/name/none.gguf"):
        assert isinstance(refusal(reference, options), NotFoundError)


def test_limits_hold_for_the_whole_model_before_a_byte_of_it_comes(web: WebServer, options: FetchOptions) -> None:
    add_repo(web, LLM)
    assert refusal("hf:org/name", replace(options, max_bytes=3000)).code == "too_big"
    assert refusal("hf:org/name", replace(options, policy=ModelPolicy(max_bytes=3000))).code == "model_refused"
    assert not [path for path, _ in web.log if "resolve" in path]


def test_an_agents_guard_holds_for_the_hub(web: WebServer, options: FetchOptions) -> None:
    add_repo(web, LLM)
    assert refusal("hf:org/name", replace(options, policy=ModelPolicy(private=False))).code == "model_refused"
    assert web.log == []


@pytest.mark.parametrize("answer", [b"<html>", b"{}", b"[]", b'{"sha": "x", "siblings": [{"rfilename": "a"}]}'])
def test_what_is_no_list_of_a_hub_is_told(web: WebServer, options: FetchOptions, answer: bytes) -> None:
    web.pages["/api/models/org/name/revision/main?blobs=true"] = Page(answer, etag="")
    assert refusal("hf:org/name", options).code == "bad_status"


def test_a_name_that_leads_out_of_the_folder_is_refused(web: WebServer, options: FetchOptions) -> None:
    add_repo(web, LLM | {"../../evil": b"x"})
    assert isinstance(refusal("hf:org/name", options), InputError)


@pytest.mark.parametrize("reference", ["hf:", "hf:name", "hf://org/name", "hf:org/../x", "hf:org/n@a b", "hf:o/n/../x"])
def test_what_names_no_model_is_refused(reference: str, options: FetchOptions) -> None:
    assert "not a model on a hub" in refusal(reference, options).message


def test_without_a_variable_the_hub_is_the_public_one() -> None:
    hub = Hub.of({})
    wanted = HubReference.parse("hf:org/name@refs%2Fpr%2F1/a b.gguf")
    assert hub.listing_url(wanted) == "https://huggingface.co/api/models/org/name/revision/refs%2Fpr%2F1?blobs=true"
    assert hub.file_url(wanted.repo, FIRST, wanted.path) == (
        f"https://huggingface.co/org/name/resolve/{FIRST}/a%20b.gguf"
    )


def test_a_first_download_that_broke_is_no_cached_version(web: WebServer, options: FetchOptions) -> None:
    add_repo(web, LLM)
    web.pages[f"/cdn/{FIRST}/model.safetensors"] = Page(status=503)
    error = refusal("hf:org/name", options)
    assert isinstance(error, TransportError)
    assert "HF_HUB_OFFLINE" not in error.hint
