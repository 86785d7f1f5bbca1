"""A recording of a terminal is drawn as it was shown, line by line in its time."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest

from tools.record_terminal import (
    ROWS,
    ShownLine,
    Span,
    TerminalEvent,
    cut_silences,
    draw_cast,
    draw_lines,
    record_commands,
    write_cast,
)

IMAGES = Path(__file__).parents[3] / "docs" / "images"
HEAD = {"width": 20, "height": 3, "title": "a & b"}
SVG = "{http://www.w3.org/2000/svg}"


def test_a_silence_is_cut_and_the_order_stays() -> None:
    events = [TerminalEvent(0.2, "a"), TerminalEvent(30.2, "b"), TerminalEvent(30.5, "c")]
    assert [(round(one.at_s, 3), one.text) for one in cut_silences(events)] == [(0.2, "a"), (1.2, "b"), (1.5, "c")]


def test_a_line_is_visible_in_its_time_alone_and_the_last_screen_stands_still() -> None:
    early = ShownLine(0, (Span(0, "<one>", "#fff", False),), 0.0, 5.0)
    late = ShownLine(1, (Span(2, "two", "#abc", True),), 5.0, 10.0)
    root = ElementTree.fromstring(draw_lines([early, late], HEAD, 10.0))
    first, second = root.findall(f"{SVG}g")
    assert (first.get("visibility"), second.get("visibility")) == ("hidden", None)
    moves = [one.find(f"{SVG}animate") for one in (first, second)]
    assert [(one.get("values"), one.get("keyTimes")) for one in moves if one is not None] == [
        ("visible;hidden", "0;0.5"),
        ("hidden;visible", "0;0.5"),
    ]
    assert [one.text for one in root.iter(f"{SVG}text")] == ["<one>", "two"]


@pytest.mark.skipif(sys.platform == "win32", reason="a pseudo-terminal needs a Unix")
def test_a_command_is_recorded_with_what_it_prints() -> None:
    command = f"{sys.executable} -c 'print(6 * 7)'"
    events = record_commands([command])
    text = "".join(one.text for one in events)
    assert "42\r\n" in text
    assert command in text
    assert [one.at_s for one in events] == sorted(one.at_s for one in events)
    assert write_cast(events, [command]).count("\n") == len(events) + 1


@pytest.mark.skipif(sys.platform == "win32", reason="a pseudo-terminal needs a Unix")
def test_a_command_that_fails_is_no_recording() -> None:
    with pytest.raises(SystemExit, match="ended with 3"):
        record_commands([f"{sys.executable} -c 'raise SystemExit(3)'"])


def test_the_drawing_of_the_readme_is_that_of_its_recording() -> None:
    pytest.importorskip("pyte", reason="pyte is missing: pip install pyte")
    assert draw_cast((IMAGES / "terminal.cast").read_text()) == (IMAGES / "terminal.svg").read_text()


def test_the_drawing_of_the_readme_lasts_about_twenty_seconds_and_fetches_nothing() -> None:
    text = (IMAGES / "terminal.svg").read_text()
    lasts = {float(one) for one in re.findall(r'dur="([\d.]+)s"', text)}
    assert len(lasts) == 1
    assert 15 <= lasts.pop() <= 25
    assert not re.search(r"<script|<style|href|style=", text)
    rows = {one.get("y") for one in ElementTree.fromstring(text).iter(f"{SVG}text")}
    assert 5 < len(rows) <= ROWS
