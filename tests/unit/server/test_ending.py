"""A process that was told to end ends, whatever it is busy with."""

from __future__ import annotations

import subprocess
import sys
import time

import pytest

BUSY = {
    "a thread that never ends": "import threading, time; threading.Thread(target=time.sleep, args=(600,)).start()",
    "a call that lets no other thread go on": "import re; re.match(r'(a+)+$', 'a' * 60 + 'b')",
}


@pytest.mark.parametrize("what", list(BUSY))
def test_it_ends_in_time_and_not_as_if_all_were_well(what: str) -> None:
    code = f"from prony.server.ending import end_within; end_within(1.0); {BUSY[what]}"
    begin = time.monotonic()
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode in (1, 3), (done.returncode, done.stderr)
    assert time.monotonic() - begin < 10
    assert "stopped by force" in done.stdout + done.stderr or "Timeout" in done.stderr
