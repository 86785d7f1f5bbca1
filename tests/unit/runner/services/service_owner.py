"""Starts an odd server and says where it lives, then waits to be killed: `service_owner.py MODE LOG`."""

import json
import signal
import sys
from pathlib import Path

from prony.plugins.services.command import Command, CommandOptions
from prony.runner.services.host import Wish, start_service

ODD = Path(__file__).with_name("odd_server.py")


def say(**facts: object) -> None:
    sys.stdout.write(json.dumps(facts) + "\n")
    sys.stdout.flush()


def main(mode: str, log: str) -> None:
    command = [sys.executable, str(ODD), mode, "{port}"]
    options = CommandOptions(command=command, ready="http://127.0.0.1:{port}/", grace=0.2)
    told = False

    def stop_asked() -> bool:
        nonlocal told
        if not told:
            say(event="starting")
        told = True
        return False

    with start_service(Command(), options, Wish(Path(log), stop_asked=stop_asked)) as running:
        say(event="serving", port=running.endpoint.port, folder=str(running.folder))
        signal.pause()


if __name__ == "__main__":
    main(*sys.argv[1:])
