"""A page is printed whole by a browser, or not at all."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from prony.errors import CapacityError
from prony.model.experiment_data import ExperimentData
from prony.report import render
from prony.report.pdf import find_browser, print_pdf


def _has_browser() -> bool:
    try:
        find_browser()
    except CapacityError:
        return False
    return True


def _stand_in(folder: Path, script: str) -> str:
    path = folder / "browser"
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    return str(path)


@pytest.mark.skipif(not _has_browser(), reason="no Chromium, Chrome or Edge is on PATH, nor named by PRONY_BROWSER")
def test_a_browser_prints_the_page(partial: ExperimentData) -> None:
    page = render(partial, "html")
    assert isinstance(page, str)
    document = print_pdf(page.encode())
    assert document.startswith(b"%PDF-")
    assert b"/Type /Page" in document


@pytest.mark.skipif(not _has_browser(), reason="no Chromium, Chrome or Edge is on PATH, nor named by PRONY_BROWSER")
def test_one_job_is_printed_on_a_few_pages(full: ExperimentData) -> None:
    page = render(full.model_copy(update={"entries": full.entries[:1]}), "html")
    assert isinstance(page, str)
    pages = re.findall(rb"/Type /Page\b(?!s)", print_pdf(page.encode()))
    assert 2 <= len(pages) <= 4


def test_a_browser_that_is_not_there_is_said_with_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PRONY_BROWSER", "/nowhere/browser")
    with pytest.raises(CapacityError, match="'/nowhere/browser', which was not found") as caught:
        print_pdf(b"<p>x")
    assert caught.value.code == "no_browser"
    assert "PRONY_BROWSER" in caught.value.hint


def test_no_browser_at_all_is_said_too(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("PRONY_BROWSER", raising=False)
    monkeypatch.setattr("prony.report.pdf._KNOWN", ("no-such-browser",))
    with pytest.raises(CapacityError, match="no browser found"):
        find_browser()


@pytest.mark.parametrize(
    ("script", "said"),
    [
        ("exit 0", "wrote no complete PDF$"),
        ("echo out of memory >&2; exit 7", "ended with 7: out of memory"),
        (
            'for one; do case $one in --print-to-pdf=*) printf "%%PDF-1.4 half" > "${one#*=}";; esac; done',
            "no complete PDF",
        ),
    ],
)
def test_half_a_document_is_never_handed_on(
    script: str, said: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PRONY_BROWSER", _stand_in(tmp_path, script))
    with pytest.raises(CapacityError, match=said) as caught:
        print_pdf(b"<p>x")
    assert caught.value.code == "browser_failed"
