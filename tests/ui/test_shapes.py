"""Pages, dialogs and charts in the windows that people have: nothing overlaps, is cut off or scrolls sideways."""

from __future__ import annotations

import struct
from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import Locator, Page, expect

from lanes import only_slowly

from .showcase import DIALOGS, Showcase, go, open_dialog

Opened = Callable[[str], Page]
_WIDTHS = (1440, 1024, 390)
_PARTS = ("results", "jobs", "samples", "details", "telemetry", "logs", "files", "environment", "recipe")
# What is wrong with the open dialog: it leaves the window, scrolls sideways, or two parts of it cover each other.
_FAULTS = """() => {
  const dialog = document.querySelector("dialog[open]");
  const found = [];
  const box = dialog.getBoundingClientRect();
  if (box.left < 0 || box.right > document.documentElement.clientWidth + 0.5) found.push("leaves the window");
  if (getComputedStyle(dialog).textAlign !== "left") found.push("its text is not aligned to the left");
  for (const one of [dialog, dialog.querySelector(".body")])
    if (one.scrollWidth > one.clientWidth) found.push(`${one.className || "dialog"} scrolls sideways`);
  const parts = [...dialog.querySelectorAll("button, input, select, textarea, h2, label > span, .field > span")];
  const boxes = parts.map((one) => [one, one.getBoundingClientRect()]).filter(([, b]) => b.width > 0);
  boxes.forEach(([one, a], place) => {
    if (one.tagName === "BUTTON" && one.scrollWidth > one.clientWidth + 1) found.push(`${one.textContent} is cut`);
    for (const [other, b] of boxes.slice(place + 1)) {
      const wide = Math.min(a.right, b.right) - Math.max(a.left, b.left);
      const high = Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top);
      if (wide > 1 && high > 1 && !one.contains(other) && !other.contains(one))
        found.push(`${one.textContent || one.tagName} covers ${other.textContent || other.tagName}`);
    }
  });
  return found;
}"""


def test_no_part_of_an_experiment_with_long_titles_scrolls_sideways_on_a_phone(opened: Opened, shown: Showcase) -> None:
    page = opened(shown.url)
    page.set_viewport_size({"width": 390, "height": 844})
    too_wide = []
    for part in _PARTS:
        go(page, shown, f"/experiments/{{tasks}}?part={part}")
        if page.evaluate("document.documentElement.scrollWidth > document.documentElement.clientWidth"):
            too_wide.append(part)
    assert too_wide == []


def test_the_usual_columns_of_numbers_fit_a_window_of_1440_pixels(opened: Opened, shown: Showcase) -> None:
    page = opened(shown.url)
    page.set_viewport_size({"width": 1440, "height": 900})
    go(page, shown, "/experiments/{tasks}")
    numbers = page.get_by_role("region", name="Numbers of every job")
    expect(numbers.get_by_role("columnheader")).to_have_count(7)
    assert numbers.evaluate("one => one.scrollWidth - one.clientWidth") <= 0


@pytest.mark.slow
def test_no_part_of_a_dialog_covers_another_or_leaves_the_window(opened: Opened, shown: Showcase) -> None:
    page = opened(shown.url)
    wrong = {}
    for path, *steps in DIALOGS:
        page.set_viewport_size({"width": 1440, "height": 900})
        open_dialog(page, shown, path, *steps)
        for width in _WIDTHS:
            page.set_viewport_size({"width": width, "height": 844})
            if found := page.evaluate(_FAULTS):
                wrong[f"{' > '.join((path, *steps))} at {width}"] = found
    assert wrong == {}


@pytest.mark.parametrize("path", ["/experiments/{tasks}", *only_slowly("/experiments/{tasks}?part=samples")])
def test_every_chart_is_saved_as_a_picture_of_twice_its_pixels(
    opened: Opened, shown: Showcase, path: str, tmp_path: Path
) -> None:
    page = opened(shown.url)
    go(page, shown, path)
    charts = page.locator("figure.chart").filter(has=page.get_by_role("img"))
    expect(charts.first.locator("canvas").first).to_be_visible()
    for chart in charts.all():
        drawn = chart.locator("canvas").first
        expect(drawn).to_be_visible()
        with page.expect_download() as download:
            chart.get_by_role("button", name="Save as PNG").click()
        download.value.save_as(tmp_path / "chart.png")
        head = (tmp_path / "chart.png").read_bytes()[:24]
        assert head.startswith(b"\x89PNG\r\n\x1a\n")
        width, height = struct.unpack(">II", head[16:24])
        box = drawn.bounding_box()
        assert box is not None
        assert (width, height) == (round(2 * box["width"]), round(2 * box["height"]))


def test_a_chart_is_zoomed_by_the_wheel_and_shown_whole_again(opened: Opened, shown: Showcase) -> None:
    page = opened(shown.url)
    go(page, shown, "/experiments/{tasks}")
    chart = page.locator("figure.chart").first
    whole = settled_picture(page, chart)
    chart.get_by_role("button", name="Zoom").click()
    expect(chart.get_by_role("button", name="Show all")).to_have_attribute("aria-pressed", "true")
    barred = settled_picture(page, chart)
    chart.get_by_role("img").hover()
    page.mouse.wheel(0, -400)
    page.wait_for_function("([one, before]) => one.toDataURL() !== before", arg=[canvas(chart), barred])
    chart.get_by_role("button", name="Show all").click()
    expect(chart.get_by_role("button", name="Zoom")).to_be_visible()
    page.mouse.move(0, 0)
    page.wait_for_function("([one, before]) => one.toDataURL() === before", arg=[canvas(chart), whole])


def canvas(chart: Locator) -> object:
    return chart.locator("canvas").first.element_handle()


def settled_picture(page: Page, chart: Locator) -> str:
    """Return what is drawn once two frames apart show the same."""
    expect(chart.locator("canvas").first).to_be_visible()
    drawn: str = page.evaluate(
        """async (one) => {
          const frames = () => new Promise((done) => setTimeout(done, 400));
          for (let before = ""; ; await frames()) {
            const now = one.toDataURL();
            if (now === before) return now;
            before = now;
          }
        }""",
        canvas(chart),
    )
    return drawn
