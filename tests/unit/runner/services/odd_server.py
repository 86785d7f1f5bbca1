"""A server that misbehaves on order: `odd_server.py MODE PORT`; it answers `GET /` with its pid. Standard library only.

serve: in the foreground. daemon: forks twice, leaves its session, closes what it has, and answers there. brood: has a
child that did all that, and answers. stubborn: ignores SIGTERM and SIGINT. mute: lives and never listens. slow: says
503 for a while. selfish: shares its address with nobody. die: says why and ends.
"""

import os
import signal
import socket
import sys
from contextlib import suppress


def daemonise() -> bool:
    """Leave everything that a parent could hold on to; return whether this is the process that left."""
    if os.fork():
        return False
    os.setsid()
    if os.fork():
        os._exit(0)
    os.chdir("/")
    for descriptor in range(3):
        os.close(descriptor)
    os.open(os.devnull, os.O_RDWR)
    os.dup(0)
    os.dup(0)
    return True


def serve(port: int, *, refusals: int = 0, reuse: bool = True) -> None:
    """Answer each connection once; the first ones with a refusal."""
    with socket.socket() as server:
        server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, int(reuse))
        server.bind(("127.0.0.1", port))
        server.listen()
        while True:
            line, _ = server.accept()
            with line, suppress(OSError):  # who asked may have given up
                line.recv(4096)
                status = "503 Not Yet" if refusals > 0 else "200 OK"
                refusals -= 1
                line.sendall(f"HTTP/1.0 {status}\r\nServer: odd/1\r\n\r\n{os.getpid()}".encode())


def main(mode: str, port: int) -> int:
    if mode == "die":
        sys.stderr.write("the moon is in the wrong house\n")
        return 3
    if mode == "mute":
        sys.stderr.write("thinking\n")
        sys.stderr.flush()
        signal.pause()
    if mode == "stubborn":
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, signal.SIG_IGN)
    if mode == "daemon" and not daemonise():
        return 0
    if mode == "brood" and daemonise():
        signal.pause()
    serve(port, refusals=4 if mode == "slow" else 0, reuse=mode != "selfish")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], int(sys.argv[2])))
