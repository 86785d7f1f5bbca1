"""Man pages: one for each command, with every option of its help, in roff that groff reads without a warning."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from prony.cli.main import COMMANDS
from prony.cli.parsers import list_options, list_parsers
from servers.needs import lack
from tools.man_pages import EXIT_STATUS, man_pages


def test_every_command_has_a_page_with_all_its_options() -> None:
    pages = man_pages()
    assert pages.keys() == {"prony.1", *(f"prony-{name}.1" for name in COMMANDS)}
    for path, parser in list_parsers().items():
        page = pages[f"prony-{path.split()[1]}.1"]
        for action in list_options(parser):
            assert action.option_strings[-1].replace("-", "\\-") in page, path


def test_the_exit_codes_are_those_of_the_page_of_commands() -> None:
    page = (Path(__file__).parents[3] / "docs" / "commands.md").read_text()
    assert [code for code, meaning in EXIT_STATUS.items() if f"| {code} | {meaning} |" not in page] == []


@pytest.mark.parametrize("name", ["prony.1", "prony-run.1", "prony-agent.1", "prony-bench.1"])
def test_groff_reads_a_page_and_shows_no_trace_of_its_signs(name: str) -> None:
    if shutil.which("groff") is None:
        lack("groff", "no groff on the PATH")
    # A line that cannot be adjusted is only a long word: the warning for it is turned off.
    command = ["groff", "-man", "-ww", "-Wbreak", "-Tascii", "-P-c", "-P-b", "-P-u", "-P-o"]
    done = subprocess.run(command, input=man_pages()[name], capture_output=True, text=True, check=True)
    assert done.stderr == ""
    assert "exit" in done.stdout.lower()
    assert "\\-" not in done.stdout
