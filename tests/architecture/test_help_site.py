"""The documentation's site: built strictly, in four parts, with nothing from elsewhere."""

from __future__ import annotations

import importlib.util
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from servers.needs import lack

from .house import ROOT, files

CONFIG = yaml.safe_load((ROOT / "mkdocs.yml").read_text())
PARTS = ["Start here", "How to", "Reference", "Understanding"]
# What a browser fetches by itself; a link that a reader follows may lead anywhere.
FETCHED = re.compile(r"<(?:script|img|iframe|source|link)\b[^>]*?\b(?:src|href)=\"([^\"]*)\"")


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site as `make docs` builds it, in a folder of its own."""
    if importlib.util.find_spec("mkdocs") is None:
        lack("docs", "mkdocs is not installed: make docs")
    folder = tmp_path_factory.mktemp("help")
    command = [sys.executable, "-m", "mkdocs", "build", "--quiet", "--site-dir", str(folder)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return folder


def html_pages(site: Path) -> list[Path]:
    return sorted(site.rglob("*.html"))


def test_there_is_a_page_for_every_page_of_the_documentation(site: Path) -> None:
    sources = [path.relative_to(ROOT / "docs") for path in files() if path.is_relative_to(ROOT / "docs")]
    wanted = {path.with_suffix(".html") for path in sources if path.suffix == ".md" and path.name != "README.md"}
    made = {path.relative_to(site) for path in html_pages(site)}
    assert wanted - made == set()
    assert {Path("index.html"), Path("contributing.html"), Path("changes.html")} <= made


def test_pages_fetch_nothing_from_elsewhere(site: Path) -> None:
    for page in html_pages(site):
        fetched = FETCHED.findall(page.read_text())
        assert fetched, page
        for address in fetched:
            assert (page.parent / address).resolve().is_relative_to(site), (page, address)
            assert (page.parent / address).is_file(), (page, address)
    for style in site.rglob("*.css"):
        assert not re.search(r"@import|url\(", style.read_text()), style


def test_pages_hold_no_script_and_no_style_that_the_servers_policy_refuses(site: Path) -> None:
    for page in html_pages(site):
        text = re.sub(r"<pre>.*?</pre>", "", page.read_text(), flags=re.DOTALL)
        assert re.findall(r"<script(?![^>]* src=)|<style|<[^>]+ (?:style|on[a-z]+)=\"", text) == [], page


def test_no_markdown_is_left_over_in_a_page(site: Path) -> None:
    for page in html_pages(site):
        text = re.sub(r"<pre>.*?</pre>|<code>.*?</code>", "", page.read_text(), flags=re.DOTALL)
        paragraphs = re.findall(r"<p>(.*?)</p>", text, re.DOTALL)
        assert [one for one in paragraphs if re.search(r"```|^\s*(?:[-*]|\d+\.|\|) ", one, re.MULTILINE)] == [], page


def test_the_search_index_holds_every_page_but_single_decisions(site: Path) -> None:
    text = (site / "search" / "index.js").read_text()
    found = json.loads(text.removeprefix("window.searchIndex = ").rstrip(";\n"))
    indexed = {one["location"].partition("#")[0] or "index.html" for one in found}
    shown = {str(page.relative_to(site)) for page in html_pages(site)}
    assert indexed == {name for name in shown if not re.match(r"decisions/\d", name)}


def test_the_site_has_four_parts() -> None:
    assert [next(iter(part)) for part in CONFIG["nav"]] == PARTS


def test_the_build_is_strict_about_links_anchors_and_pages_outside_of_the_navigation() -> None:
    assert CONFIG["strict"] is True
    assert CONFIG["validation"] == dict.fromkeys(
        ("omitted_files", "absolute_links", "unrecognized_links", "anchors"), "warn"
    )
