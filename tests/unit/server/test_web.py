"""The web application's files: which requests are theirs, and what browsers are told about them."""

from __future__ import annotations

from pathlib import Path

import pytest

from prony.server import web

from .house import House

PAGE = {"Accept": "text/html,application/xhtml+xml"}


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A site of two files, one of them with its compressed twins."""
    folder = tmp_path / "site"
    (folder / "assets").mkdir(parents=True)
    (folder / "index.html").write_text("<!doctype html><title>Prony</title>")
    script = folder / "assets" / "index-1a2b.js"
    script.write_text("let plain;")
    script.with_name("index-1a2b.js.br").write_bytes(b"brotli")
    script.with_name("index-1a2b.js.gz").write_bytes(b"gzip")
    monkeypatch.setattr(web, "SITE", folder)
    return folder


@pytest.mark.usefixtures("site")
@pytest.mark.parametrize("path", ["/", "/experiments", "/experiments/1r98xyt1j"])
def test_an_address_that_a_browser_opens_is_the_applications(house: House, path: str) -> None:
    answer = house.client.get(path, headers=PAGE)
    assert answer.status_code == 200
    assert "<title>Prony</title>" in answer.text
    assert answer.headers["cache-control"] == "no-cache"
    policy = answer.headers["content-security-policy"]
    assert "script-src 'self';" in policy
    assert "unsafe" not in policy
    assert "frame-ancestors 'none'" in policy
    assert answer.headers["x-content-type-options"] == "nosniff"


@pytest.mark.usefixtures("site")
def test_a_hashed_file_is_kept_for_ever_and_sent_in_the_form_that_the_client_takes(house: House) -> None:
    path = "/assets/index-1a2b.js"
    plain = house.client.get(path, headers={"Accept-Encoding": "identity"})
    assert plain.text == "let plain;"
    assert "immutable" in plain.headers["cache-control"]
    head = house.client.head(path, headers={"Accept-Encoding": "gzip, deflate, br"})
    assert head.headers["content-encoding"] == "br"
    assert head.headers["content-length"] == str(len(b"brotli"))
    assert house.client.head(path, headers={"Accept-Encoding": "gzip"}).headers["content-encoding"] == "gzip"


@pytest.mark.usefixtures("site")
def test_who_has_the_file_is_not_sent_it_again(house: House) -> None:
    tag = house.client.get("/", headers=PAGE).headers["etag"]
    assert house.client.get("/", headers=PAGE | {"If-None-Match": tag}).status_code == 304


@pytest.mark.usefixtures("site")
@pytest.mark.parametrize("path", ["/api/v1/nope", "/docs/nope", "/metrics/nope"])
def test_what_is_the_apis_is_never_answered_with_a_page(house: House, path: str) -> None:
    assert "json" in house.client.get(path, headers=PAGE).headers["content-type"]


@pytest.mark.usefixtures("site")
@pytest.mark.parametrize("path", ["/../pyproject.toml", "/assets/../../secret", "/assets/index-1a2b.js.gz"])
def test_nothing_outside_of_the_list_of_files_is_served(house: House, path: str) -> None:
    assert house.client.get(path).status_code == 404


def test_a_site_that_is_built_anew_is_served_as_it_is_now(house: House, site: Path) -> None:
    old, new = site / "assets" / "index-1a2b.js", site / "assets" / "index-3c4d.js"
    assert house.client.head("/assets/index-1a2b.js").status_code == 200
    for gone in (old, old.with_name(f"{old.name}.br"), old.with_name(f"{old.name}.gz")):
        gone.unlink()
    assert house.client.get("/assets/index-1a2b.js").status_code == 404
    new.write_text("let fresh;")
    (site / "index.html").write_text("<!doctype html><title>Prony anew</title>")
    assert house.client.get("/assets/index-3c4d.js").text == "let fresh;"
    assert "Prony anew" in house.client.get("/", headers=PAGE).text
    # Its compressed form is written a moment later.
    new.with_name(f"{new.name}.br").write_bytes(b"brotli")
    assert (
        house.client.head("/assets/index-3c4d.js", headers={"Accept-Encoding": "br"}).headers["content-encoding"]
        == "br"
    )


def test_where_the_pages_are_not_built_it_is_said_how(
    house: House, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(web, "SITE", tmp_path / "nowhere")
    assert "make ui" in house.client.get("/", headers=PAGE).text


@pytest.mark.usefixtures("site")
def test_only_the_frame_of_reports_may_be_framed_and_it_has_no_origin(house: House, site: Path) -> None:
    (site / "frame.html").write_text("<!doctype html>")
    policy = house.client.get("/frame.html", headers=PAGE).headers["content-security-policy"]
    assert policy.startswith("sandbox allow-scripts; default-src 'none'; script-src 'self';")
    assert "frame-ancestors 'self'" in policy
    assert "allow-same-origin" not in policy
    assert "connect-src" not in policy
