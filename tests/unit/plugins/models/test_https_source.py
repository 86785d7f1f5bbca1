"""The HTTPS model source against a real server that breaks off, lies, hangs and redirects."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper

from prony.errors import InputError, NotFoundError, PronyError, StoreError, TransportError
from prony.plugins.models.fetching import filename_of
from prony.plugins.models.https import HttpsSource
from prony.ports.models import FetchOptions, ModelFiles
from prony.runner.checksum import checksum
from servers.forked import process_context
from servers.web_server import Page, WebServer, serving

CONTENT = np.random.Generator(np.random.PCG64(7)).bytes(3_000_000)


@pytest.fixture
def web() -> Iterator[WebServer]:
    with serving() as server:
        yield server


def fetch(url: str, cache: Path, **options: Any) -> ModelFiles:
    pauses: list[float] = []
    chosen = replace(FetchOptions(cache=cache, formats=(), timeout_s=60.0), **options)
    return HttpsSource(pause=pauses.append).fetch(url, chosen, lambda *_: None)


def sha256(content: bytes) -> str:
    return f"sha256:{hashlib.sha256(content).hexdigest()}"


def test_a_download_lies_at_a_place_named_after_its_content(web: WebServer, tmp_path: Path) -> None:
    web.pages["/m.tflite"] = Page(CONTENT)
    found = fetch(web.url("/m.tflite"), tmp_path, checksum=sha256(CONTENT))
    assert found.path.read_bytes() == CONTENT
    assert found.path == tmp_path / "blobs/sha256" / hashlib.sha256(CONTENT).hexdigest() / "m.tflite"
    assert not list((tmp_path / "partial").iterdir())


def test_progress_grows_to_the_whole_size(web: WebServer, tmp_path: Path) -> None:
    web.pages["/m.tflite"] = Page(CONTENT)
    seen: list[tuple[int, int | None]] = []
    options = FetchOptions(cache=tmp_path, formats=(".tflite",))
    HttpsSource().fetch(web.url("/m.tflite"), options, lambda done, total: seen.append((done, total)))
    assert [done for done, _ in seen] == sorted(done for done, _ in seen)
    assert seen[-1] == (len(CONTENT), len(CONTENT))


def test_a_known_checksum_is_answered_without_the_network(web: WebServer, tmp_path: Path) -> None:
    web.pages["/m.tflite"] = Page(CONTENT)
    first = fetch(web.url("/m.tflite"), tmp_path, checksum=sha256(CONTENT))
    web.log.clear()
    assert fetch(web.url("/m.tflite"), tmp_path, checksum=sha256(CONTENT)) == first
    assert web.log == []


@pytest.mark.parametrize("version", [{"etag": '"v1"'}, {"etag": "", "modified": "Sat, 01 Nov 2025 00:00:00 GMT"}])
def test_without_a_checksum_the_server_is_asked_whether_it_changed(
    web: WebServer, tmp_path: Path, version: dict[str, Any]
) -> None:
    web.pages["/m.tflite"] = Page(CONTENT, **version)
    first = fetch(web.url("/m.tflite"), tmp_path)
    assert fetch(web.url("/m.tflite"), tmp_path) == first
    assert len(web.log) == 2
    web.pages["/m.tflite"] = Page(b"new", etag='"v2"')
    assert fetch(web.url("/m.tflite"), tmp_path).path.read_bytes() == b"new"
    assert first.path.read_bytes() == CONTENT


def test_a_copy_that_was_cut_short_on_disk_is_fetched_again(web: WebServer, tmp_path: Path) -> None:
    web.pages["/m.tflite"] = Page(CONTENT)
    path = fetch(web.url("/m.tflite"), tmp_path).path
    path.write_bytes(CONTENT[:100])
    assert fetch(web.url("/m.tflite"), tmp_path).path.read_bytes() == CONTENT


def test_a_copy_that_rotted_on_disk_is_fetched_again_when_a_checksum_is_asked(web: WebServer, tmp_path: Path) -> None:
    web.pages["/m.tflite"] = Page(CONTENT)
    path = fetch(web.url("/m.tflite"), tmp_path).path
    path.write_bytes(bytes(len(CONTENT)))
    assert fetch(web.url("/m.tflite"), tmp_path, checksum=sha256(CONTENT)).path.read_bytes() == CONTENT


def test_a_broken_transfer_goes_on_where_it_stopped(web: WebServer, tmp_path: Path) -> None:
    web.pages["/m.tflite"] = Page(CONTENT, cuts=[1_000_000, 500_000])
    assert fetch(web.url("/m.tflite"), tmp_path).path.read_bytes() == CONTENT
    offsets = [int(headers.get("Range", "bytes=0-")[6:-1]) for _, headers in web.log]
    assert len(offsets) == 3
    assert 0 == offsets[0] < offsets[1] < offsets[2]
    assert web.log[1][1]["If-Range"] == '"v1"'


def test_what_arrived_is_kept_for_the_next_run(web: WebServer, tmp_path: Path) -> None:
    web.pages["/m.tflite"] = Page(CONTENT, cuts=[2_000_000, 0, 0, 0])
    with pytest.raises(TransportError, match="tries") as caught:
        fetch(web.url("/m.tflite"), tmp_path)
    assert "continues where this one stopped" in caught.value.hint
    web.log.clear()
    assert fetch(web.url("/m.tflite"), tmp_path).path.read_bytes() == CONTENT
    assert int(web.log[0][1]["Range"][6:-1]) > 1_000_000


def test_a_transfer_that_changed_in_between_starts_over(web: WebServer, tmp_path: Path) -> None:
    page = web.pages["/m.tflite"] = Page(CONTENT, cuts=[1_000_000, 0, 0, 0])
    with pytest.raises(TransportError):
        fetch(web.url("/m.tflite"), tmp_path)
    page.content, page.etag = CONTENT[::-1], '"v2"'
    assert fetch(web.url("/m.tflite"), tmp_path).path.read_bytes() == CONTENT[::-1]


@pytest.mark.parametrize("kind", [{"etag": 'W/"v1"'}, {"etag": ""}, {"honours_range": False}])
def test_a_server_that_cannot_continue_is_asked_for_all_again(
    web: WebServer, tmp_path: Path, kind: dict[str, Any]
) -> None:
    web.pages["/m.tflite"] = Page(CONTENT, cuts=[1_000_000], **kind)
    assert fetch(web.url("/m.tflite"), tmp_path).path.read_bytes() == CONTENT


def test_a_wrong_range_is_never_written(web: WebServer, tmp_path: Path) -> None:
    web.pages["/m.tflite"] = Page(CONTENT, cuts=[1_000_000], wrong_range=True)
    with pytest.raises(TransportError, match="another range"):
        fetch(web.url("/m.tflite"), tmp_path)


def test_a_server_that_recovers_is_waited_for(web: WebServer, tmp_path: Path) -> None:
    web.pages["/m.tflite"] = Page(CONTENT, statuses=[503, 429])
    pauses: list[float] = []
    options = FetchOptions(cache=tmp_path, formats=())
    HttpsSource(pause=pauses.append).fetch(web.url("/m.tflite"), options, lambda *_: None)
    assert pauses == [0.5, 1.0]


def test_a_length_that_is_too_long_is_a_broken_transfer(web: WebServer, tmp_path: Path) -> None:
    web.pages["/m.tflite"] = Page(CONTENT, declared=len(CONTENT) + 10, honours_range=False)
    with pytest.raises(TransportError):
        fetch(web.url("/m.tflite"), tmp_path)


def test_a_content_of_unknown_length_is_taken_only_with_a_checksum(web: WebServer, tmp_path: Path) -> None:
    web.pages["/m.tflite"] = Page(CONTENT, says_length=False)
    with pytest.raises(TransportError, match="does not report its size") as caught:
        fetch(web.url("/m.tflite"), tmp_path)
    assert caught.value.hint == "set its `checksum` in the recipe"
    assert fetch(web.url("/m.tflite"), tmp_path, checksum=sha256(CONTENT)).path.read_bytes() == CONTENT


def test_a_content_that_is_compressed_unasked_is_refused(web: WebServer, tmp_path: Path) -> None:
    web.pages["/m.tflite"] = Page(CONTENT, encoding="gzip")
    with pytest.raises(TransportError, match="compressed"):
        fetch(web.url("/m.tflite"), tmp_path)


def test_a_wrong_checksum_leaves_nothing_behind(web: WebServer, tmp_path: Path) -> None:
    web.pages["/m.tflite"] = Page(CONTENT)
    with pytest.raises(InputError) as caught:
        fetch(web.url("/m.tflite"), tmp_path, checksum=sha256(b"other"))
    assert caught.value.code == "checksum_mismatch"
    assert not (tmp_path / "blobs").exists()
    assert not list((tmp_path / "partial").iterdir())


@pytest.mark.parametrize("says_length", [True, False])
def test_the_size_limit_holds_whatever_the_server_says(web: WebServer, tmp_path: Path, says_length: bool) -> None:
    web.pages["/m.tflite"] = Page(CONTENT, says_length=says_length)
    with pytest.raises(InputError, match="larger than the limit of 1000000 bytes") as caught:
        fetch(web.url("/m.tflite"), tmp_path, max_bytes=1_000_000, checksum=sha256(CONTENT))
    assert caught.value.code == "too_big"
    assert caught.value.hint


def test_what_does_not_exist_is_not_found(web: WebServer, tmp_path: Path) -> None:
    with pytest.raises(NotFoundError, match="does not exist") as caught:
        fetch(web.url("/none.onnx"), tmp_path)
    assert caught.value.hint
    assert len(web.log) == 1


@pytest.mark.parametrize(("status", "kind"), [(403, InputError), (400, TransportError), (500, TransportError)])
def test_other_refusals_say_whose_move_it_is(
    web: WebServer, tmp_path: Path, status: int, kind: type[PronyError]
) -> None:
    web.pages["/m.tflite"] = Page(CONTENT, statuses=[status] * 9)
    with pytest.raises(kind, match=str(status)) as caught:
        fetch(web.url("/m.tflite"), tmp_path)
    assert caught.value.hint


def test_a_server_that_hangs_is_given_up(web: WebServer, tmp_path: Path) -> None:
    web.pages["/m.tflite"] = Page(hangs=True)
    with pytest.raises(TransportError, match=r"no answer within 0\.1 s") as caught:
        fetch(web.url("/m.tflite"), tmp_path, timeout_s=0.1)
    assert caught.value.hint


def test_a_refused_connection_is_a_transport_error(web: WebServer, tmp_path: Path) -> None:
    url = web.url("/m.tflite")
    web.server_close()
    with pytest.raises(TransportError, match="no connection to") as caught:
        fetch(url, tmp_path)
    assert caught.value.hint


def test_redirects_are_followed(web: WebServer, tmp_path: Path) -> None:
    web.pages["/m.tflite"] = Page(location="/r1")
    web.pages["/r1"] = Page(location=web.url("/final"))
    web.pages["/final"] = Page(CONTENT)
    assert fetch(web.url("/m.tflite"), tmp_path).path.name == "m.tflite"


def test_redirects_do_not_go_on_for_ever(web: WebServer, tmp_path: Path) -> None:
    web.pages["/m.tflite"] = Page(location="/m.tflite")
    with pytest.raises(TransportError, match="more than 5 redirects"):
        fetch(web.url("/m.tflite"), tmp_path)
    assert len(web.log) == 6


@pytest.mark.parametrize("target", ["http://example.com/m.tflite", "ftp://127.0.0.1/m", "file:///etc/passwd"])
def test_a_redirect_may_not_leave_https(web: WebServer, tmp_path: Path, target: str) -> None:
    web.pages["/m.tflite"] = Page(location=target)
    with pytest.raises((InputError, TransportError)):
        fetch(web.url("/m.tflite"), tmp_path)
    assert not (tmp_path / "blobs").exists()


@pytest.mark.parametrize("url", ["http://example.com/m.onnx", "http://127.0.0.1.example.com/m.onnx", "https:///m.onnx"])
def test_plain_http_is_for_this_machine_only(tmp_path: Path, url: str) -> None:
    with pytest.raises(InputError) as caught:
        fetch(url, tmp_path)
    assert caught.value.hint


@pytest.mark.parametrize("url", ["https://h/", "https://h/a%2F..%2F..", "https://h/..", "https://h/a%5Cb.onnx"])
def test_a_url_must_end_in_a_file_name(url: str) -> None:
    with pytest.raises(InputError, match="does not end in a file name"):
        filename_of(url)


def test_the_format_is_checked_before_anything_is_asked(web: WebServer, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="does not load"):
        fetch(web.url("/m.zip"), tmp_path, formats=(".onnx",))
    assert web.log == []


def external_model(folder: Path, location: str) -> tuple[bytes, bytes]:
    weight = numpy_helper.from_array(np.ones((64, 64), np.float32), "w")
    graph = helper.make_graph([helper.make_node("MatMul", ["x", "w"], ["y"])], "g", [], [], [weight])
    path = folder / "m.onnx"
    onnx.save_model(helper.make_model(graph), path, save_as_external_data=True, location="w.data", size_threshold=0)
    model = onnx.load(path, load_external_data=False)
    model.graph.initializer[0].external_data[0].value = location
    return model.SerializeToString(), (folder / "w.data").read_bytes()


def test_external_data_is_fetched_from_beside_the_model(web: WebServer, tmp_path: Path) -> None:
    main, weights = external_model(tmp_path, "deep/w 1.data")
    web.pages["/x/m.onnx"], web.pages["/x/deep/w%201.data"] = Page(main), Page(weights)
    found = fetch(web.url("/x/m.onnx"), tmp_path / "cache", formats=(".onnx",))
    assert [path.relative_to(found.path.parent).as_posix() for path in found.files] == ["m.onnx", "deep/w 1.data"]
    assert found.files[1].read_bytes() == weights
    web.log.clear()
    assert fetch(web.url("/x/m.onnx"), tmp_path / "cache", checksum=checksum(found.files)) == found
    assert web.log == []


def test_broken_external_data_goes_on_where_it_stopped_in_the_next_run(web: WebServer, tmp_path: Path) -> None:
    main, weights = external_model(tmp_path, "w.data")
    web.pages["/m.onnx"], web.pages["/w.data"] = Page(main), Page(weights, cuts=[9000, 0, 0, 0])
    with pytest.raises(TransportError):
        fetch(web.url("/m.onnx"), tmp_path / "cache")
    web.log.clear()
    assert fetch(web.url("/m.onnx"), tmp_path / "cache").files[1].read_bytes() == weights
    assert "Range" in web.log[-1][1]


def test_the_size_limit_is_for_all_files_together(web: WebServer, tmp_path: Path) -> None:
    main, weights = external_model(tmp_path, "w.data")
    web.pages["/m.onnx"], web.pages["/w.data"] = Page(main), Page(weights)
    with pytest.raises(InputError, match="larger than the limit"):
        fetch(web.url("/m.onnx"), tmp_path / "cache", max_bytes=len(weights) + len(main) - 1)


def test_external_data_outside_the_models_folder_is_never_asked_for(web: WebServer, tmp_path: Path) -> None:
    main, _ = external_model(tmp_path, "../secret")
    web.pages["/x/m.onnx"] = Page(main)
    with pytest.raises(InputError, match="outside its own folder"):
        fetch(web.url("/x/m.onnx"), tmp_path / "cache")
    assert [path for path, _ in web.log] == ["/x/m.onnx"]


def test_a_web_page_in_place_of_a_model_is_refused(web: WebServer, tmp_path: Path) -> None:
    web.pages["/m.onnx"] = Page(b"<html>please log in</html>")
    with pytest.raises(InputError) as caught:
        fetch(web.url("/m.onnx"), tmp_path)
    assert caught.value.code == "damaged_model"
    assert not (tmp_path / "blobs").exists()


def test_a_cache_that_cannot_be_written_is_a_store_error(web: WebServer, tmp_path: Path) -> None:
    web.pages["/m.tflite"] = Page(CONTENT)
    (tmp_path / "cache").write_text("a file where a folder belongs")
    with pytest.raises(StoreError) as caught:
        fetch(web.url("/m.tflite"), tmp_path / "cache")
    assert caught.value.hint


def _fetch_in_child(url: str, cache: Path) -> None:
    assert fetch(url, cache, checksum=sha256(CONTENT)).path.read_bytes() == CONTENT


def test_two_processes_download_once(web: WebServer, tmp_path: Path) -> None:
    web.pages["/m.tflite"] = Page(CONTENT)
    context = process_context()
    children = [context.Process(target=_fetch_in_child, args=(web.url("/m.tflite"), tmp_path)) for _ in range(2)]
    for child in children:
        child.start()
    for child in children:
        child.join(180)
    assert [child.exitcode for child in children] == [0, 0]
    assert len(web.log) == 1
