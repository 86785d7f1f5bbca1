"""Call a command of Prony in this process: the same to whoever asks, and none of the cost of an interpreter's start.

What is about the process itself (signals, streams, what stays behind) starts one instead.
"""

from __future__ import annotations

import gc
import os
import signal
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from io import BytesIO, TextIOWrapper
from pathlib import Path
from subprocess import CompletedProcess
from unittest.mock import patch

from prony.cli.main import main
from servers.quiet_machine import QUIET_ROOT, quiet_process


def call_prony(
    *words: str | Path, code: int | None = 0, environment: Mapping[str, str] | None = None
) -> CompletedProcess[str]:
    """Call a command as it would be typed; fail where its exit code is another (None: any).

    `environment` is all that it sees of one, in the place of ours. Where forked commands find the machine quiet, this
    one does too.
    """
    arguments = [str(word) for word in words]
    out, err = (TextIOWrapper(BytesIO(), "utf-8") for _ in range(2))
    with _as_before(), _seeing(environment), quiet_process(), redirect_stdout(out), redirect_stderr(err):
        found = _exit_code(arguments)
    done = CompletedProcess(arguments, found, _said(out), _said(err))
    assert code in (None, found), done.stdout + done.stderr
    return done


def _said(stream: TextIOWrapper) -> str:
    stream.seek(0)
    return stream.read()


def _exit_code(arguments: list[str]) -> int:
    try:
        return main(arguments)
    except SystemExit as exc:  # a word that no command knows
        return exc.code if isinstance(exc.code, int) else 1


@contextmanager
def _seeing(environment: Mapping[str, str] | None) -> Iterator[None]:
    with patch.dict(os.environ):
        if environment is not None:
            quiet = {name: value for name, value in os.environ.items() if name == QUIET_ROOT}
            os.environ.clear()
            os.environ.update({**environment, **quiet})
        yield


@contextmanager
def _as_before() -> Iterator[None]:
    """Take back what a command may change of its process."""
    handlers = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        gc.enable()
        for number, handler in handlers.items():
            signal.signal(number, handler)
