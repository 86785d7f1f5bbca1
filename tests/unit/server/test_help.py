"""A server's /help: the documentation in the package, with the headers of the other pages."""

from __future__ import annotations

from pathlib import Path

import pytest

from prony.app import documentation

from .house import House


@pytest.fixture
def pages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "help"
    (folder / "search").mkdir(parents=True)
    (folder / "index.html").write_text("<!doctype html><title>Prony</title>")
    (folder / "search" / "index.js").write_text("window.searchIndex = [];")
    (folder / "files").mkdir()
    (folder / "files" / "nginx.conf.txt").write_text("server {}")
    monkeypatch.setattr(documentation, "FOLDER", folder)
    return folder


@pytest.mark.usefixtures("pages")
@pytest.mark.parametrize("path", ["/help", "/help/"])
def test_help_leads_to_its_first_page(house: House, path: str) -> None:
    answer = house.client.get(path, follow_redirects=False)
    assert (answer.status_code, answer.headers["location"]) == (307, "/help/index.html")


@pytest.mark.usefixtures("pages")
def test_a_page_has_the_policy_of_the_web_pages(house: House) -> None:
    answer = house.client.get("/help/index.html")
    assert (answer.status_code, answer.headers["content-type"]) == (200, "text/html; charset=utf-8")
    policy = answer.headers["content-security-policy"]
    assert "script-src 'self'; style-src 'self';" in policy
    assert "unsafe" not in policy
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert answer.headers["cache-control"] == "no-cache"


@pytest.mark.usefixtures("pages")
@pytest.mark.parametrize(
    ("path", "kind"), [("/help/search/index.js", "text/javascript"), ("/help/files/nginx.conf.txt", "text/plain")]
)
def test_files_of_the_documentation_are_served(house: House, path: str, kind: str) -> None:
    answer = house.client.get(path)
    assert answer.status_code == 200
    assert answer.headers["content-type"].startswith(kind)


@pytest.mark.usefixtures("pages")
@pytest.mark.parametrize("path", ["/help/nothing.html", "/help/../documentation.py", "/helpful.html"])
def test_nothing_but_files_of_the_documentation_is_served(house: House, path: str) -> None:
    assert house.client.get(path).status_code == 404


def test_an_installation_without_documentation_says_how_to_build_it(
    house: House, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(documentation, "FOLDER", tmp_path / "nowhere")
    answer = house.client.get("/help", headers={"Accept": "text/html"})
    assert answer.status_code == 404
    assert "make docs" in answer.text
