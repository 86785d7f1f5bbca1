"""`prony completion`: print a script by which a shell completes Prony's commands and options."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

_SHELLS = ("bash", "zsh", "fish")


def arguments(parser: ArgumentParser) -> None:
    """Print the completion of commands and options for a shell."""
    parser.add_argument("shell", choices=_SHELLS, metavar="SHELL", help="bash, zsh or fish")


def command(options: Namespace) -> int:
    from prony.cli.output import print_text
    from prony.cli.shell_completion import WRITERS, list_command_words

    print_text(WRITERS[options.shell](list_command_words()))
    return 0
