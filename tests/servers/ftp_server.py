"""Real FTP server for tests that breaks off, ignores commands and refuses on request."""

from __future__ import annotations

import socketserver
from collections.abc import Iterator
from contextlib import contextmanager
from socket import create_server
from typing import Any

from servers.answering import answering


class Handler(socketserver.StreamRequestHandler):
    server: FtpServer

    def handle(self) -> None:
        self._say("220 ready")
        self._offset, self._name = 0, ""
        for line in iter(self.rfile.readline, b""):
            verb, _, word = line.decode().rstrip("\r\n").partition(" ")
            self.server.log.append(f"{verb} {word}".strip())
            answer = getattr(self, f"do_{verb.lower()}", None)
            if verb in self.server.unknown or answer is None:
                self._say("502 not implemented")
            elif answer(word):
                return

    def _say(self, text: str) -> None:
        self.wfile.write(f"{text}\r\n".encode())

    def do_user(self, word: str) -> None:
        self._name = word
        self._say("331 your word")

    def do_pass(self, word: str) -> None:
        good = self.server.accounts.get(self._name, "*") in ("*", word) and self._name in self.server.accounts
        self._say("230 come in" if good else "530 who are you?")

    def do_type(self, _: str) -> None:
        self._say("200 fine")

    def do_size(self, word: str) -> None:
        content = self.server.files.get(word)
        self._say("550 no such file" if content is None else f"213 {len(content)}")

    def do_mdtm(self, word: str) -> None:
        self._say(f"213 {self.server.modified}" if word in self.server.files else "550 no such file")

    def do_rest(self, word: str) -> None:
        self._offset = int(word)
        self._say("350 from there")

    def do_epsv(self, _: str) -> None:
        self._data = create_server(("127.0.0.1", 0))
        self._say(f"229 there (|||{self._data.getsockname()[1]}|)")

    def do_pasv(self, _: str) -> None:
        self._data = create_server(("127.0.0.1", 0))
        port = self._data.getsockname()[1]
        self._say(f"227 there (127,0,0,1,{port // 256},{port % 256})")

    def do_retr(self, word: str) -> bool:
        content = self.server.files.get(word)
        if content is None:
            self._say("550 no such file")
            return False
        self._say("150 here it comes")
        offset, self._offset = self._offset, 0
        cut = self.server.cuts.pop(0) if self.server.cuts else None
        with self._data, self._data.accept()[0] as stream:
            stream.sendall(content[offset:][:cut])
        if cut is not None:
            return True
        self._say("226 that was all")
        return False

    def do_quit(self, _: str) -> bool:
        self._say("221 bye")
        return True


class FtpServer(socketserver.ThreadingTCPServer):
    daemon_threads = True
    allow_reuse_address = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.files: dict[str, bytes] = {}
        self.accounts: dict[str, str] = {"anonymous": "*"}
        self.modified = "20260101000000"
        self.unknown: set[str] = set()
        self.cuts: list[int] = []
        self.log: list[str] = []

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that hangs up early is what some tests are about."""

    def url(self, path: str, who: str = "") -> str:
        return f"ftp://{who}127.0.0.1:{self.server_address[1]}{path}"


@contextmanager
def serving_ftp() -> Iterator[FtpServer]:
    """A server that answers for as long as the block runs."""
    server = FtpServer()
    with answering(server):
        yield server
