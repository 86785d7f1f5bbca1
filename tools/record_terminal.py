"""Record commands in a terminal, and draw a recording as an SVG that plays by itself.

`python -m tools.record_terminal record OUT.cast 'prony list' ...` runs each command in a pseudo-terminal and writes
what it prints, with its times, in the format of asciinema (version 2). The typing of a command, and the pause in
which a reader reads its output, are added. The output keeps its own times, but a silence of over a second is cut to
one. `draw IN.cast OUT.svg` needs the package pyte. The drawing has no script and no style sheet: it also plays where
a page's policy allows neither, and a viewer that does not animate shows the last screen.
"""

from __future__ import annotations

import argparse
import json
import os
import shlex
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape
from itertools import groupby
from pathlib import Path
from typing import Any, NamedTuple

COLUMNS, ROWS = 100, 26
_TYPING_S, _READING_S, _LONGEST_SILENCE_S = 0.045, 4.0, 1.0
_CLEAR = "\x1b[2J\x1b[H"
_CELL_X, _CELL_Y, _MARGIN = 8.4, 18, 14
_BACKGROUND, _FOREGROUND = "#16181d", "#d8dbe2"
# pyte's names of the sixteen colours; any other is six hexadecimal digits.
_COLOURS = {
    "default": _FOREGROUND, "black": "#16181d", "red": "#ff7b72", "green": "#7ee787", "brown": "#e3b341",
    "blue": "#79c0ff", "magenta": "#d2a8ff", "cyan": "#76e3ea", "white": "#d8dbe2", "brightblack": "#8b949e",
    "brightred": "#ffa198", "brightgreen": "#9be9a8", "brightbrown": "#f2cc60", "brightblue": "#a5d6ff",
    "brightmagenta": "#e2c5ff", "brightcyan": "#a5f3fc", "brightwhite": "#ffffff",
}  # fmt: skip


class TerminalEvent(NamedTuple):
    """What a terminal was sent, and when."""

    at_s: float
    text: str


class Span(NamedTuple):
    """Letters of one look, side by side."""

    column: int
    text: str
    colour: str
    is_bold: bool


Line = tuple[Span, ...]


@dataclass(frozen=True)
class ShownLine:
    """A line of the screen, and from when until when it stands there."""

    row: int
    spans: Line
    from_s: float
    until_s: float


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    actions = parser.add_subparsers(dest="action", required=True)
    recording = actions.add_parser("record", help="run commands and write what they print")
    recording.add_argument("out", type=Path)
    recording.add_argument("commands", nargs="+", metavar="COMMAND")
    drawing = actions.add_parser("draw", help="draw a recording as SVG")
    drawing.add_argument("recording", type=Path)
    drawing.add_argument("out", type=Path)
    options = parser.parse_args()
    if options.action == "record":
        events = record_commands(options.commands)
        options.out.write_text(write_cast(events, options.commands))
        print(f"{options.out}: {events[-1].at_s:.1f} s")
    else:
        options.out.write_text(draw_cast(options.recording.read_text()))
        print(f"{options.out}: {options.out.stat().st_size} bytes")
    return 0


# Record


def record_commands(commands: Sequence[str]) -> list[TerminalEvent]:
    """Run one command after another, each on an empty screen; a command that fails ends the recording with an error."""
    events: list[TerminalEvent] = []
    at_s = 0.0
    for command in commands:
        typed = [f"{_CLEAR}\x1b[1;32m$\x1b[0m ", *command, "\r\n"]
        for text in typed:
            events.append(TerminalEvent(at_s, text))
            at_s += _TYPING_S
        printed = cut_silences(run_in_terminal(shlex.split(command)))
        events += [TerminalEvent(at_s + after_s, text) for after_s, text in printed]
        at_s = events[-1].at_s + _READING_S
    return [*events, TerminalEvent(at_s, "")]


def cut_silences(events: Sequence[TerminalEvent]) -> list[TerminalEvent]:
    """Return the events with no more than a second between one and the next."""
    cut: list[TerminalEvent] = []
    before_s = at_s = 0.0
    for one in events:
        at_s += min(one.at_s - before_s, _LONGEST_SILENCE_S)
        before_s = one.at_s
        cut.append(TerminalEvent(at_s, one.text))
    return cut


def run_in_terminal(words: Sequence[str]) -> list[TerminalEvent]:
    """Run a command in a pseudo-terminal of this size and return what it wrote, with the seconds since its start."""
    import pty

    ours, theirs = pty.openpty()
    size = {"COLUMNS": str(COLUMNS), "LINES": str(ROWS), "TERM": "xterm-256color"}
    began_ns = time.monotonic_ns()
    events: list[TerminalEvent] = []
    with subprocess.Popen(
        words, stdin=subprocess.DEVNULL, stdout=theirs, stderr=theirs, env=os.environ | size
    ) as child:
        os.close(theirs)
        while data := _read_some(ours):
            events.append(TerminalEvent((time.monotonic_ns() - began_ns) / 1e9, data.decode(errors="replace")))
    os.close(ours)
    if child.returncode:
        raise SystemExit(f"{shlex.join(words)} ended with {child.returncode}:\n{''.join(one.text for one in events)}")
    return events


def _read_some(terminal: int) -> bytes:
    try:
        return os.read(terminal, 65536)
    except OSError:  # Linux says so when the last writer has gone
        return b""


def write_cast(events: Sequence[TerminalEvent], commands: Sequence[str]) -> str:
    """Return a recording in the format of asciinema, version 2."""
    head = {"version": 2, "width": COLUMNS, "height": ROWS, "title": "; ".join(commands)}
    lines: list[object] = [head, *([round(one.at_s, 3), "o", one.text] for one in events)]
    return "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines)


# Draw


def draw_cast(recording: str) -> str:
    """Return a recording as an SVG that plays for ever."""
    head, *lines = [json.loads(line) for line in recording.splitlines()]
    events = [TerminalEvent(at_s, text) for at_s, _, text in lines]
    return draw_lines(list(play_events(events, head["width"], head["height"])), head, events[-1].at_s)


def play_events(events: Sequence[TerminalEvent], columns: int, rows: int) -> Iterator[ShownLine]:
    """Yield every line that the terminal shows, with its times."""
    import pyte

    screen = pyte.Screen(columns, rows)
    stream = pyte.Stream(screen)
    shown: dict[int, tuple[Line, float]] = {}
    for at_s, text in events:
        stream.feed(text)
        for row in sorted(screen.dirty):
            spans = tuple(_read_spans(screen.buffer[row], columns))
            before, since_s = shown.get(row, ((), 0.0))
            if spans == before:
                continue
            if before and at_s > since_s:
                yield ShownLine(row, before, since_s, at_s)
            shown[row] = spans, at_s
        screen.dirty.clear()
    for row, (spans, since_s) in sorted(shown.items()):
        if spans:
            yield ShownLine(row, spans, since_s, events[-1].at_s)


def _read_spans(cells: Any, columns: int) -> Iterator[Span]:
    """Yield the parts of a line of the screen, without what is blank at its end."""
    line = [(column, cells[column]) for column in range(columns)]
    for (colour, is_bold), group in groupby(line, key=lambda one: (one[1].fg, one[1].bold)):
        part = list(group)
        text = "".join(cell.data for _, cell in part)
        lead = len(text) - len(text.lstrip())
        if text.strip():
            yield Span(part[0][0] + lead, text.strip(), _COLOURS.get(colour, f"#{colour}"), is_bold)


def draw_lines(lines: Sequence[ShownLine], head: dict[str, Any], whole_s: float) -> str:
    """Return the SVG of lines that come and go."""
    width, height = head["width"] * _CELL_X + 2 * _MARGIN, head["height"] * _CELL_Y + 2 * _MARGIN
    size = f'viewBox="0 0 {width:g} {height:g}" width="{width:g}" height="{height:g}"'
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" {size} '
        f'font-family="ui-monospace, SFMono-Regular, Menlo, Consolas, DejaVu Sans Mono, monospace" font-size="14">',
        f"<title>{escape(head['title'])}</title>",
        f'<rect width="100%" height="100%" rx="8" fill="{_BACKGROUND}"/>',
        *(_draw_line(line, whole_s) for line in lines),
        "</svg>\n",
    ]
    return "\n".join(parts)


def _draw_line(line: ShownLine, whole_s: float) -> str:
    y = _MARGIN + (line.row + 0.75) * _CELL_Y
    spans = "".join(_draw_span(span, y) for span in line.spans)
    hidden = "" if line.until_s >= whole_s else ' visibility="hidden"'
    return f"<g{hidden}>{_draw_times(line, whole_s)}{spans}</g>"


def _draw_span(span: Span, y: float) -> str:
    bold = ' font-weight="bold"' if span.is_bold else ""
    # The length keeps columns in line, whichever font the reader has.
    long = f' textLength="{len(span.text) * _CELL_X:g}" lengthAdjust="spacingAndGlyphs"' if len(span.text) > 1 else ""
    x = _MARGIN + span.column * _CELL_X
    return f'<text x="{x:g}" y="{y:g}" fill="{span.colour}"{bold}{long} xml:space="preserve">{escape(span.text)}</text>'


def _draw_times(line: ShownLine, whole_s: float) -> str:
    """Return the animation that shows a line in its time; none where it always stands there."""
    begin, end = line.from_s / whole_s, line.until_s / whole_s
    states = [(0.0, "hidden")] * (begin > 0) + [(begin, "visible")] + [(end, "hidden")] * (end < 1)
    if len(states) == 1:
        return ""
    values, times = (
        ";".join(state for _, state in states),
        ";".join(f"{at:.5f}".rstrip("0").rstrip(".") for at, _ in states),
    )
    return (
        f'<animate attributeName="visibility" calcMode="discrete" dur="{whole_s:g}s" repeatCount="indefinite" '
        f'values="{values}" keyTimes="{times}"/>'
    )


if __name__ == "__main__":
    sys.exit(main())
