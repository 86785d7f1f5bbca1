"""`prony docs`: the documentation, from the installed package, without a network."""

from __future__ import annotations

import os
import sys
from argparse import ArgumentParser, Namespace


def arguments(parser: ArgumentParser) -> None:
    """Open the documentation in a browser. It is in the package, so it needs no network."""
    parser.add_argument("topic", nargs="?", default="", help="a page, or a command of prony; else the first page")
    parser.add_argument("--list", action="store_true", help="list the pages")
    parser.add_argument("--no-browser", action="store_true", help="only print the address")


def command(options: Namespace) -> int:
    from prony.app.documentation import find_page, page_names
    from prony.cli.output import print_text

    if options.list:
        find_page("")
        print_text("\n".join(page_names()))
        return 0
    address = _find_address(options.topic)
    print_text(address)
    if not options.no_browser and _has_screen():
        import webbrowser

        webbrowser.open(address)
    return 0


def _find_address(topic: str) -> str:
    """Return the address of a page; a command without a page of its own has a section on that of commands."""
    from prony.app.documentation import find_page, page_names
    from prony.cli.main import COMMANDS

    if topic in COMMANDS and topic not in page_names():
        return f"{find_page('commands').as_uri()}#prony-{topic}"
    return find_page(topic).as_uri()


def _has_screen() -> bool:
    """Is there a screen for a browser? Without one, Python would start a browser of the terminal."""
    return sys.platform in ("darwin", "win32") or bool(os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"))
