"""`prony docs`: prints the address of a page in the package, and opens it where there is a screen."""

from __future__ import annotations

import webbrowser
from pathlib import Path

import pytest

from prony.app import documentation
from servers.commands import call_prony


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    made = tmp_path / "help"
    made.mkdir()
    for name in ("index", "commands", "load", "measuring"):
        (made / f"{name}.html").write_text("<!doctype html>")
    monkeypatch.setattr(documentation, "FOLDER", made)
    for name in ("DISPLAY", "WAYLAND_DISPLAY"):
        monkeypatch.delenv(name, raising=False)
    return made


@pytest.mark.parametrize(
    ("words", "page"),
    [
        ((), "index.html"),
        (("measuring",), "measuring.html"),
        (("load",), "load.html"),
        (("run",), "commands.html#prony-run"),
    ],
)
def test_docs_prints_the_address_of_a_page(folder: Path, words: tuple[str, ...], page: str) -> None:
    assert call_prony("docs", *words, "--no-browser").stdout == f"{folder.as_uri()}/{page}\n"


def test_docs_opens_a_browser_where_there_is_a_screen(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[str] = []
    monkeypatch.setattr(webbrowser, "open", opened.append)
    monkeypatch.setattr("prony.cli.commands.docs.sys.platform", "linux")
    call_prony("docs")
    assert opened == []
    monkeypatch.setenv("DISPLAY", ":0")
    call_prony("docs", "--no-browser")
    assert opened == []
    call_prony("docs", "load")
    assert opened == [f"{folder.as_uri()}/load.html"]


def test_docs_lists_its_pages() -> None:
    assert call_prony("docs", "--list").stdout.split() == ["commands", "load", "measuring"]


def test_an_unknown_topic_is_refused_with_the_nearest_page() -> None:
    done = call_prony("docs", "measurin", code=2)
    assert "did you mean measuring?" in done.stderr


def test_an_installation_without_documentation_says_how_to_build_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(documentation, "FOLDER", tmp_path / "nowhere")
    assert "make docs" in call_prony("docs", code=2).stderr
