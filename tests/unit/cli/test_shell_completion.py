"""Shell completion: each shell, where it is installed, offers what the parsers know."""

from __future__ import annotations

import shlex
import shutil
import subprocess
from functools import cache
from pathlib import Path

import pytest

from prony.cli.main import COMMANDS
from prony.cli.shell_completion import WRITERS, list_command_words
from servers.commands import call_prony
from servers.needs import lack

# What zsh's own functions would offer, printed; and the words as its line editor hands them over.
_ZSH = """
compdef() { }
_files() { print -r -- FILES }
compadd() { shift; print -rl -- "$@" }
_describe() { print -rl -- "${(@P)@[-1]}" }
source %s
words=(%s)
CURRENT=$#words
_prony
"""
_BASH = """
source %s
COMP_WORDS=(%s)
COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
_prony
printf '%%s\\n' "${COMPREPLY[@]}"
"""


@cache
def script(shell: str) -> str:
    return WRITERS[shell](list_command_words())


def offered(shell: str, line: list[str], folder: Path) -> set[str]:
    """Return what a shell offers for the last of these words."""
    program = shutil.which(shell)
    if program is None:
        lack(shell, f"no {shell} on the PATH")
    file = folder / f"completion.{shell}"
    file.write_text(script(shell))
    if shell == "fish":
        asked = f"source {shlex.quote(str(file))}; complete -C {shlex.quote(' '.join(line))}"
        command = [program, "--no-config", "-c", asked]
    else:
        words = " ".join(map(shlex.quote, line))
        text = {"bash": _BASH, "zsh": _ZSH}[shell] % (shlex.quote(str(file)), words)
        command = [program, *(["--norc"] if shell == "bash" else ["-f"]), "-c", text]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=folder)
    assert done.stderr == ""
    last = line[-1]
    found = {one.partition("\t")[0].partition(":")[0] for one in done.stdout.splitlines() if one}
    return {one for one in found if one.startswith(last)} | ({"FILES"} & found)


@pytest.mark.parametrize("shell", WRITERS)
def test_a_shell_offers_commands_actions_options_and_choices(shell: str, tmp_path: Path) -> None:
    assert offered(shell, ["prony", "be"], tmp_path) == {"bench"}
    assert offered(shell, ["prony", "agent", "st"], tmp_path) == {"start"}
    assert offered(shell, ["prony", "agent", "start", "--drain"], tmp_path) == {"--drain-timeout"}
    assert offered(shell, ["prony", "run", "--gates", ""], tmp_path) == {"lenient", "strict"}
    assert offered(shell, ["prony", "completion", ""], tmp_path) == {"bash", "zsh", "fish"}


@pytest.mark.parametrize("shell", WRITERS)
def test_a_value_that_has_no_choices_is_a_file(shell: str, tmp_path: Path) -> None:
    (tmp_path / "mine.yaml").touch()
    found = offered(shell, ["prony", "report", "last", "--out", ""], tmp_path)
    # bash completes files itself where the function offers nothing.
    assert found == {"bash": set(), "zsh": {"FILES"}, "fish": {"mine.yaml", "completion.fish"}}[shell]


@pytest.mark.parametrize("shell", WRITERS)
def test_the_command_prints_the_script(shell: str) -> None:
    said = call_prony("completion", shell).stdout
    assert said == script(shell)
    assert all(name in said for name in COMMANDS)


def test_another_shell_is_refused() -> None:
    assert "invalid choice: 'csh'" in call_prony("completion", "csh", code=2).stderr
