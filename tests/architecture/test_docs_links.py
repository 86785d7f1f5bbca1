"""Every link within the repository leads somewhere, to the heading that it names."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

from .house import ROOT, files, pages

LINK = re.compile(r"\]\(([^)\s]+)\)")
FENCED = re.compile(r"^( *)```.*?^\1```", re.DOTALL | re.MULTILINE)


def links(path: Path) -> list[str]:
    plain = FENCED.sub("", path.read_text())
    return [link for link in LINK.findall(plain) if not re.match(r"[a-z]+:", link)]


@cache
def anchors(path: Path) -> set[str]:
    """Return the names that GitHub gives the headings of a page."""
    headings = re.findall(r"^#+ (.+)$", FENCED.sub("", path.read_text()), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def test_every_link_resolves() -> None:
    broken = []
    for path in pages():
        for link in links(path):
            name, _, anchor = link.partition("#")
            target = (path.parent / name).resolve() if name else path
            if not target.exists() or (anchor and anchor not in anchors(target)):
                broken.append((str(path.relative_to(ROOT)), link))
    assert broken == []


def test_every_page_can_be_reached_from_the_readme() -> None:
    found, waiting = set(), [ROOT / "README.md"]
    while waiting:
        path = waiting.pop()
        found.add(path)
        targets = {(path.parent / link.partition("#")[0]).resolve() for link in links(path)}
        waiting += [target for target in targets if target.suffix == ".md" and target not in found]
    assert set(pages()) - found == set()


def test_every_picture_is_shown_on_a_page() -> None:
    shown = {(path.parent / link).resolve() for path in pages() for link in links(path)}
    assert [path.name for path in files() if path.parent == ROOT / "docs" / "images" and path not in shown] == []


def test_the_readme_stays_short() -> None:
    assert len((ROOT / "README.md").read_text().splitlines()) < 150


def test_the_table_of_decisions_has_every_one_and_says_which_were_changed() -> None:
    folder = ROOT / "docs" / "decisions"
    table = (folder / "README.md").read_text()
    for path in sorted(folder.glob("0*.md")):
        row = next((line for line in table.splitlines() if f"]({path.name}) |" in line), None)
        assert row is not None, path.name
        first = path.read_text().split("\n\n")[1]
        assert ("changed in part" in row) == first.startswith("**Changed in part"), path.name
        assert not first.startswith("**Changed in part") or LINK.search(first), path.name
