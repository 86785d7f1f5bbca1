"""Run shell scripts on this machine, or on another one by the user's own ssh."""

from __future__ import annotations

import base64
import os
import re
import secrets
import shlex
import shutil
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import IO

from prony.errors import AccessError, InputError, TransportError

_LONGEST_SOCKET = 104
_SOCKET_NAME = 60  # the hash that %C stands for, and what ssh adds while it makes the socket
_SSH_FAILED = 255
_COPY = 2**20
_RETRY = "complete files are kept; run prony watch ID to fetch the rest"


@dataclass(frozen=True)
class ShellOutput:
    """What a script printed between two marks: what a login prints around it is not ours."""

    exit_code: int
    stdout: bytes
    stderr: str

    def require(self, command: str) -> bytes:
        """Return what was printed, or say which command failed.

        Raises:
            TransportError: it ended with another exit code than 0.
        """
        if self.exit_code:
            tail = self.stderr.strip()[-600:] or f"exit code {self.exit_code}"
            raise TransportError(
                f"{command} failed: {tail}", hint="run prony targets check NAME to see what is missing"
            )
        return self.stdout


class Shell:
    """This machine's /bin/sh. Values of a script are given by name and never become part of its text."""

    host = ""
    install_hint = "install OpenSSH's client"

    def __init__(self, setup: Sequence[str] = ()) -> None:
        self._setup = tuple(setup)

    def run(
        self, script: str, values: Mapping[str, str], *, stdin: Path | bytes = b"", timeout_s: float = 60.0
    ) -> ShellOutput:
        """Run a script with these variables set; `stdin` is what it reads.

        Raises:
            TransportError: there is no way to the machine, or it did not answer in time.
        """
        mark = secrets.token_hex(8)
        command = self._command(_wrap(script, values, self._setup, mark))
        with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as errors, _open_source(stdin) as source:
            try:
                code = subprocess.run(
                    command, stdin=source, stdout=out, stderr=errors, timeout=timeout_s, check=False
                ).returncode
            except subprocess.TimeoutExpired as exc:
                hint = "check the connection: prony targets check NAME"
                raise TransportError(
                    f"no answer from {self.host or 'the shell'} in {timeout_s:g} s", hint=hint
                ) from exc
            except FileNotFoundError as exc:
                raise TransportError(f"{command[0]} not found", hint=self.install_hint) from exc
            errors.seek(0)
            told = errors.read().decode(errors="replace")
            out.seek(0)
            found = _between_marks(out.read(), mark)
        if found is None:
            raise self._explain_loss(code, told)
        return ShellOutput(found[0], found[1], told)

    def receive(self, script: str, values: Mapping[str, str], into: Path, *, names: Sequence[str]) -> None:
        """Unpack the tar that a script prints, file by file as it comes; the names are its standard input.

        Raises:
            TransportError: it was cut; what came whole is kept.
        """
        mark = secrets.token_hex(8)
        command = self._command(_wrap(script, values, self._setup, mark))
        with _open_source("".join(f"{name}\n" for name in names).encode()) as source:
            process = subprocess.Popen(command, stdin=source, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        try:
            if process.stdout is None:
                raise TransportError("the shell could not be started", hint="check that /bin/sh and ssh work here")
            _skip_to_mark(process.stdout, mark)
            with tarfile.open(fileobj=process.stdout, mode="r|") as archive:
                for member in archive:
                    if member.isfile():
                        _extract_file(archive, member, into)
        except (tarfile.TarError, EOFError) as exc:
            raise TransportError(f"the data from {self.host or 'the shell'} was cut short: {exc}", hint=_RETRY) from exc
        finally:
            process.kill()
            process.wait()
            if process.stdout is not None:
                process.stdout.close()

    def _command(self, script: str) -> list[str]:
        return ["/bin/sh", "-c", script]

    def _explain_loss(self, code: int, told: str) -> TransportError | InputError:
        return TransportError(
            f"the shell ended with {code}: {told.strip()[-600:]}",
            hint="run prony targets check NAME to see what is missing",
        )


class SshShell(Shell):
    """Another machine's /bin/sh, by the user's own ssh: its configuration, agent, jump hosts and open connections.

    One connection is kept open and shared by all commands. A host key that is not known is refused and never added.
    """

    def __init__(self, host: str, folder: Path, setup: Sequence[str] = (), options: Sequence[str] = ()) -> None:
        super().__init__(setup)
        if not re.fullmatch(r"[A-Za-z0-9_.:@%\[\]-]+", host) or host.startswith("-"):
            raise InputError(f"{host!r} is not a host for ssh", hint="use a host from ~/.ssh/config, or user@host")
        self.host = host
        self._options = tuple(options)
        self._sockets = _socket_folder(folder)

    def words(self) -> list[str]:
        """Return the command that reaches the host, before what is to be run there."""
        # Somebody at a terminal may be asked for a second factor, once; a script may not.
        batch = "no" if sys.stdin is not None and sys.stdin.isatty() else "yes"
        settings = {
            "BatchMode": batch,
            "StrictHostKeyChecking": "yes",
            "ControlMaster": "auto",
            "ControlPath": f"{self._sockets}/%C",
            "ControlPersist": "10m",
            "ServerAliveInterval": "15",
            "ConnectTimeout": "15",
        }
        return ["ssh", "-T", *self._options, *(f"-o{name}={value}" for name, value in settings.items())]

    def _command(self, script: str) -> list[str]:
        # Whatever shell the login has: nothing in these words means something else to another one.
        coded = base64.b64encode(script.encode()).decode()
        return [*self.words(), "--", self.host, f"exec /bin/sh -c 'eval \"$(printf %s {coded} | base64 -d)\"'"]

    def _explain_loss(self, code: int, told: str) -> TransportError | InputError:
        words = shlex.join([*self.words(), self.host])
        # At a terminal ssh may ask for a password; BatchMode would forbid it.
        by_hand = shlex.join([*(word for word in self.words() if not word.startswith("-oBatchMode=")), self.host])
        if "REMOTE HOST IDENTIFICATION HAS CHANGED" in told or "Host key verification failed" in told:
            return AccessError(
                f"the host key of {self.host} is not the known one: {self._fingerprint(told)}",
                hint=f"compare the fingerprint with its owner, then run: {self._trust_command(told)}",
                code="host_key",
            )
        if code == _SSH_FAILED and re.search(r"Permission denied|Too many authentication failures", told):
            return AccessError(
                f"{self.host} rejected the login: {told.strip()[-300:]}",
                hint=f"log in once by hand, then try again: {by_hand}",
                code="ssh_login",
            )
        return TransportError(f"ssh to {self.host} failed ({code}): {told.strip()[-600:]}", hint=f"try: {words} true")

    def _trust_command(self, told: str) -> str:
        """Return what makes ssh ask for the key; a changed one is refused until the old one is forgotten."""
        ask = shlex.join(["ssh", *self._options, self.host])
        if "IDENTIFICATION HAS CHANGED" not in told:
            return ask
        named = re.search(r"Host key for (\S+) has changed", told)  # the name in known_hosts, not an alias
        host = named[1] if named else self.host.rpartition("@")[2]
        return f"{shlex.join(['ssh-keygen', '-R', host])} && {ask}"

    def _fingerprint(self, told: str) -> str:
        found = re.search(r"(SHA256:[A-Za-z0-9+/=]+)", told)
        if found is None:  # ssh tells the one of an unknown host only to who asks for more words
            asked = [word for word in self.words() if not word.startswith("-oControl")]
            with suppress(subprocess.TimeoutExpired):
                more = subprocess.run(
                    [*asked, "-v", "-oBatchMode=yes", "--", self.host, "true"],
                    stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=30, check=False,
                )  # fmt: skip
                found = re.search(r"Server host key: \S+ (SHA256:\S+)", more.stderr)
        return found[1] if found else "fingerprint unknown"


def _extract_file(archive: tarfile.TarFile, member: tarfile.TarInfo, into: Path) -> None:
    """Write one file below a folder, in one step: what was cut has another name."""
    parts = PurePosixPath(member.name).parts
    if not parts or parts[0] == "/" or ".." in parts:
        raise TransportError(
            f"the archive contains a file outside its folder: {member.name!r}",
            hint="check who may write into the target's prefix",
        )
    path = into.joinpath(*parts)
    path.parent.mkdir(parents=True, exist_ok=True)
    unfinished = path.with_name(f".{path.name}.part")
    source = archive.extractfile(member)
    if source is not None:
        with source, unfinished.open("wb") as out:
            shutil.copyfileobj(source, out, _COPY)
        unfinished.replace(path)


def _wrap(script: str, values: Mapping[str, str], setup: Sequence[str], mark: str) -> str:
    """Return a script that prints a mark before and after, and its exit code behind that."""
    given = "".join(f"{name}={shlex.quote(value)}\n" for name, value in values.items())
    lines = "".join(f"{line}\n" for line in setup)
    # The setup of a site may print; what it prints stands before the mark.
    return f"{lines}{given}printf '%s\\n' {mark}\n(\n{script}\n)\nprintf '\\n%s %s\\n' {mark} $?\n"


def _between_marks(text: bytes, mark: str) -> tuple[int, bytes] | None:
    found = re.search(rb"(?:^|\n)" + mark.encode() + rb"\n(.*)\n" + mark.encode() + rb" (\d+)\n", text, re.DOTALL)
    return None if found is None else (int(found[2]), found[1])


def _skip_to_mark(stream: IO[bytes], mark: str) -> None:
    for line in stream:
        if line.rstrip(b"\n") == mark.encode():
            return
    raise TransportError(
        "the shell of the target printed nothing", hint="run prony targets check NAME to see what is missing"
    )


def _open_source(stdin: Path | bytes) -> IO[bytes]:
    if isinstance(stdin, Path):
        return stdin.open("rb")
    held = tempfile.TemporaryFile()  # noqa: SIM115 - whoever asked for it closes it
    held.write(stdin)
    held.seek(0)
    return held


def _socket_folder(folder: Path) -> Path:
    """Return where ssh keeps its connections: a socket's path may not be long, so that of a deep home is elsewhere."""
    if len(str(folder)) + _SOCKET_NAME <= _LONGEST_SOCKET:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        return folder
    short = Path(tempfile.gettempdir(), f"prony-ssh-{os.getuid()}")
    short.mkdir(mode=0o700, exist_ok=True)
    if short.stat().st_uid != os.getuid() or short.stat().st_mode & 0o077:
        raise AccessError(f"{short} is accessible to other users", hint="remove it", code="forbidden")
    return short
