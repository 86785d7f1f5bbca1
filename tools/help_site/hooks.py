"""Hooks of mkdocs: bring in files from outside docs/, give headings GitHub's anchors, make the search work offline."""

from __future__ import annotations

import json
import posixpath
import re
import shutil
from pathlib import Path
from typing import Any

from mkdocs.contrib import search
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).parents[2]
# Pages that stand at the root of the repository, and what they are called in the site.
ROOT_PAGES = {"README.md": "index.md", "CONTRIBUTING.md": "contributing.md", "CHANGELOG.md": "changes.md"}
_LINK = re.compile(r"(!?)\[((?:[^\[\]]|\[[^\]]*\])*)\]\(([^)\s]+)\)")
_FENCED = re.compile(r"^( *)```.*?^\1```$", re.DOTALL | re.MULTILINE)
_SHOWN = (".md", ".png", ".svg")
# Decisions are for people who change the code: they would only crowd the search.
_DECISION = re.compile(r"decisions/\d")
# A list goes on right after a paragraph that belongs to one of its items.
_GOES_ON = re.compile(r"(\n\n(?: {4}\S[^\n]*\n)+)(?=(?:[-*]|\d+\.) )")
_NARROW = re.compile(r"^ {2,3}(?=\S)", re.MULTILINE)


def on_config(config: Any) -> Any:
    """Name anchors as GitHub does, because the pages are read there too."""
    config.mdx_configs.setdefault("toc", {})["slugify"] = github_anchor
    return config


def on_files(files: Files, config: Any) -> Files:
    """Add the pages of the root, and every other file that a page links to, as text."""
    for name, page in ROOT_PAGES.items():
        files.append(File.generated(config, page, content=(ROOT / name).read_text()))
    sources = [file.src_uri for file in files.documentation_pages()]
    linked = {path for source in sources for path in _linked_files(_repository_path(source))}
    for path in sorted(linked):
        files.append(File.generated(config, _published_as(path), content=(ROOT / path).read_text()))
    return files


def on_page_markdown(markdown: str, page: Page, **_: Any) -> str:
    """Point links at the pages of the site, and indent lists as Python-Markdown wants them."""
    source = _repository_path(page.file.src_uri)

    def change(text: str) -> str:
        linked = _LINK.sub(lambda found: _site_link(found, source), text)
        return _GOES_ON.sub(r"\1\n", _NARROW.sub("    ", linked))

    parts, end = [], 0
    for fence in _FENCED.finditer(markdown):
        parts += [change(markdown[end : fence.start()]), _block_in_list(fence) if fence[1] else fence[0]]
        end = fence.end()
    return "".join([*parts, change(markdown[end:])])


def on_post_build(config: Any) -> None:
    """Write the search index as a script: a browser that opens pages from a folder may load scripts but not JSON."""
    site = Path(config.site_dir)
    index = json.loads((site / "search" / "search_index.json").read_text())
    index["docs"] = [one for one in index["docs"] if not _DECISION.match(one["location"])]
    (site / "search" / "index.js").write_text(f"window.searchIndex = {json.dumps(index['docs'])};\n")
    shutil.copy(Path(search.__file__).parent / "templates" / "search" / "lunr.js", site / "search" / "lunr.js")
    for name in ("search/search_index.json", "sitemap.xml", "sitemap.xml.gz"):
        (site / name).unlink(missing_ok=True)


def github_anchor(heading: str, separator: str = "-") -> str:
    """Return the name that GitHub gives a heading."""
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", separator)


def _repository_path(page: str) -> str:
    """Return where a page of the site stands in the repository."""
    roots = {name: file for file, name in ROOT_PAGES.items()}
    return roots.get(page, f"docs/{page}")


def _linked_files(source: str) -> set[str]:
    """Return the files in the repository that a page links to and that are neither pages nor pictures."""
    text = _FENCED.sub("", (ROOT / source).read_text())
    targets = {_target(source, link) for _, _, link in _LINK.findall(text) if not _is_address(link)}
    return {path for path in targets if (ROOT / path).is_file() and not path.endswith(_SHOWN)}


def _site_link(found: re.Match[str], source: str) -> str:
    mark, text, link = found.groups()
    if _is_address(link) or link.startswith("#"):
        return found[0]
    path, anchor = _target(source, link), link.partition("#")[2]
    page = _page_of(path)
    if page is None:
        return text
    here = posixpath.dirname(source.removeprefix("docs/"))
    return f"{mark}[{text}]({posixpath.relpath(page, here or '.')}{f'#{anchor}' if anchor else ''})"


def _page_of(path: str) -> str | None:
    """Return what the site calls a file of the repository; None where the site does not have it."""
    if path in ROOT_PAGES:
        return ROOT_PAGES[path]
    if (ROOT / path / "README.md").is_file() and path.startswith("docs/"):
        path = f"{path}/README.md"
    if path.endswith(_SHOWN) or not (ROOT / path).exists():  # what does not exist is left to mkdocs to complain about
        return path.removeprefix("docs/") if path.startswith("docs/") else None
    return _published_as(path) if (ROOT / path).is_file() else None


def _published_as(path: str) -> str:
    return f"files/{path.removeprefix('docs/')}.txt"


def _target(source: str, link: str) -> str:
    return posixpath.normpath(posixpath.join(posixpath.dirname(source), link.partition("#")[0] or source))


def _is_address(link: str) -> bool:
    return re.match(r"[a-z]+:", link) is not None


def _block_in_list(fence: re.Match[str]) -> str:
    """Return a fenced block within a list as an indented one: Python-Markdown knows no fences there."""
    lines = [line.removeprefix(fence[1]) for line in fence[0].splitlines()[1:-1]]
    return "\n".join(["", *(f"        {line}" for line in lines), ""])
