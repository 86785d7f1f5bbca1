"""Every page and every dialog, light and dark, in the windows that people have: `make screens` keeps the pictures.

Nothing scrolls sideways, no text is cut without a title that says it whole, and no text stands on another.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from .conftest import open_windows
from .screens import SCHEMES
from .showcase import DIALOGS, PAGES, Showcase, add_agent, go, open_dialog, open_showcase
from .test_accessibility import UI

FOLDER = Path(__file__).parents[2] / "build" / "screens"
WIDTHS = (1440, 1024, 390)
_HEIGHT = 900
# An example comes into the editor, and readings into their charts, after the page is there.
_SETTLED_MS = 700
# What is wrong with what is shown: wider than the window, a text that is cut, a table that hides columns without a
# sign of it, or hides any in the widest window, or two texts on each other. What lies outside the box that scrolls it
# is not seen, and so not compared.
FAULTS = """() => {
  const found = [];
  const page = document.scrollingElement;
  if (page.scrollWidth > innerWidth) found.push(`the page is ${page.scrollWidth} wide`);
  const dialog = document.querySelector("dialog[open]");
  const root = dialog ?? document.body;
  const name = (one) => `${one.tagName.toLowerCase()} "${one.textContent.trim().slice(0, 40)}"`;
  const isUnseen = (one) => one.closest(".unseen, .skip, svg, [hidden], option, .cm-editor, .toasts") !== null;
  const isCut = (one) => getComputedStyle(one).overflowX !== "visible" && one.scrollWidth > one.clientWidth + 1;
  for (const one of root.querySelectorAll("button, .button, .badge, .label, label, h1, h2, h3, th, summary, dt")) {
    if (isUnseen(one) || one.clientWidth === 0 || one.closest("[title]")) continue;
    if (isCut(one)) found.push(`cut: ${name(one)}`);
  }
  for (const one of root.querySelectorAll(".scroll"))
    if (one.scrollWidth > one.clientWidth + 1 && !getComputedStyle(one).backgroundImage.includes("gradient"))
      found.push(`hides columns: ${one.getAttribute("aria-label")}`);
    else if (one.scrollWidth > one.clientWidth + 1 && innerWidth >= 1440 && one.querySelectorAll("th").length < 16)
      found.push(`does not fit: ${one.getAttribute("aria-label")}`);
  const texts = [];
  const walker = document.createTreeWalker(root, NodeFilter.SHOW_TEXT);
  for (let node = walker.nextNode(); node; node = walker.nextNode()) {
    const parent = node.parentElement;
    if (!node.data.trim() || isUnseen(parent) || !parent.checkVisibility({ visibilityProperty: true })) continue;
    let [left, top, right, bottom] = [-Infinity, -Infinity, Infinity, Infinity];
    let isOver = false;
    for (let box = parent; box && box !== page; box = box.parentElement) {
      const style = getComputedStyle(box);
      if (style.position === "sticky" || style.position === "fixed") isOver = box !== dialog;
      if (style.overflowX === "visible" && style.overflowY === "visible") continue;
      const edge = box.getBoundingClientRect();
      left = Math.max(left, edge.left); right = Math.min(right, edge.right);
      top = Math.max(top, edge.top); bottom = Math.min(bottom, edge.bottom);
    }
    if (isOver) continue;
    const range = document.createRange();
    range.selectNodeContents(node);
    for (const line of range.getClientRects()) {
      const [x, y] = [[Math.max(left, line.left), Math.min(right, line.right)],
                      [Math.max(top, line.top), Math.min(bottom, line.bottom)]];
      const seen = { left: x[0], right: x[1], top: y[0], bottom: y[1], node };
      if (seen.right - seen.left > 1 && seen.bottom - seen.top > 1) texts.push(seen);
    }
  }
  texts.sort((one, other) => one.top - other.top);
  texts.forEach((one, place) => {
    for (let next = place + 1; next < texts.length && texts[next].top < one.bottom - 4; next++) {
      const other = texts[next];
      if (other.node !== one.node && Math.min(one.right, other.right) - Math.max(one.left, other.left) > 2)
        found.push(`"${one.node.data.trim().slice(0, 30)}" covers "${other.node.data.trim().slice(0, 30)}"`);
    }
  });
  return [...new Set(found)].slice(0, 12);
}"""


@pytest.fixture(scope="module")
def showcase(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Showcase]:
    folder = tmp_path_factory.mktemp("screens")
    with open_showcase(folder / "server") as made, add_agent(made, folder / "agent") as whole:
        yield whole


@pytest.fixture(scope="module")
def window(browser: Browser, showcase: Showcase) -> Iterator[Page]:
    with open_windows(browser) as open_window:
        yield open_window(showcase.url)


def look(page: Page, name: str) -> dict[str, list[str]]:
    """Take the pictures of what is shown in every window and scheme; return what is wrong, by the picture's name."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    wrong: dict[str, list[str]] = {}
    for width in WIDTHS:
        page.set_viewport_size({"width": width, "height": _HEIGHT})
        for scheme in SCHEMES:
            page.emulate_media(color_scheme=scheme, reduced_motion="reduce")
            settle(page)
            picture = f"{name}-{width}-{scheme}"
            page.screenshot(path=FOLDER / f"{picture}.png", full_page=page.locator("dialog[open]").count() == 0)
            if found := page.evaluate(FAULTS):
                wrong[picture] = found
    return wrong


def settle(page: Page) -> None:
    """Wait until the charts are drawn in this window: what is on a canvas nobody can ask."""
    for place in page.locator("figure.chart [role=img]").all():
        expect(place.locator("canvas").first).to_be_visible()
    page.wait_for_timeout(250)


@pytest.mark.slow
@pytest.mark.parametrize("name", PAGES)
def test_a_page_shows_all_of_its_text_in_every_window(name: str, window: Page, showcase: Showcase) -> None:
    go(window, showcase, PAGES[name])
    window.wait_for_timeout(_SETTLED_MS)
    assert look(window, name) == {}


@pytest.mark.slow
@pytest.mark.parametrize("steps", DIALOGS, ids=" > ".join)
def test_a_dialog_shows_all_of_its_text_in_every_window(
    steps: tuple[str, ...], window: Page, showcase: Showcase
) -> None:
    window.set_viewport_size({"width": WIDTHS[0], "height": _HEIGHT})
    path, *rest = steps
    open_dialog(window, showcase, path, *rest)
    assert look(window, "dialog-" + re.sub(r"\W+", "-", " ".join(steps)).strip("-").lower()) == {}


@pytest.mark.parametrize(
    ("html", "fault"),
    [
        ('<p style="width: 2000px">wide</p>', "the page is"),
        ('<button style="width: 40px; overflow: hidden; white-space: nowrap">a long label</button>', "cut: button"),
        ('<div class="scroll" aria-label="T" style="width: 90px; overflow: auto"><p style="width: 300px">x</p></div>',
         "hides columns: T"),
        ('<p>one text</p><p style="margin-top: -30px">another text</p>', "covers"),
    ],
)  # fmt: skip
def test_what_is_wrong_with_a_page_is_found(html: str, fault: str, browser: Browser) -> None:
    page = browser.new_page(viewport={"width": 390, "height": 800})
    page.set_content(f"<!doctype html><h1>Title</h1>{html}")
    (found,) = page.evaluate(FAULTS)
    assert fault in found
    page.set_content("<!doctype html><h1>Title</h1><p>one text</p><p>another text</p>")
    assert page.evaluate(FAULTS) == []
    page.close()


def test_every_address_of_the_application_has_a_picture() -> None:
    routes = set(re.findall(r'path: "(/[^"]*)"', (UI / "src" / "app" / "routes.tsx").read_text(encoding="utf-8")))
    shown = {re.sub(r"\?.*", "", path) for path in PAGES.values()}
    missing = [one for one in routes if not any(re.fullmatch(re.sub(r"\$\w+", "[^/]+", one), path) for path in shown)]
    assert missing == []
