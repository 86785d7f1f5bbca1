"""Send raw HTTP request bytes on a new connection and read the reply."""

from __future__ import annotations

import httptools
import numpy as np

from prony.plugins.drivers.sockets import connect
from prony.ports.driver import Endpoint, Reply


def sent(endpoint: Endpoint, content: bytes) -> Reply:
    body = bytearray()
    ended: list[bool] = []

    class Parts:
        on_body = staticmethod(body.extend)
        on_message_complete = staticmethod(lambda: ended.append(True))

    parser = httptools.HttpResponseParser(Parts())
    with connect(endpoint) as line:
        line.sendall(content)
        while not ended:
            parser.feed_data(line.recv(1 << 16))
    return reply(bytes(body), parser.get_status_code())


def reply(body: bytes, status: int = 200) -> Reply:
    return Reply(status, np.zeros(1, np.int64), [len(body)], body)
