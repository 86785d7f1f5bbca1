"""A request to stop ends what a runner waits for."""

from __future__ import annotations

import subprocess
import sys

# A signal that another thread takes interrupts no call of the main thread, like one that comes just before the call.
_PROGRAM = """
import signal, socket, threading, time
from prony.app.stop_request import StopRequest
from prony.runner.context import Stopped

def ask():
    time.sleep(0.2)
    signal.pthread_kill(threading.get_ident(), signal.SIGTERM)

stop = StopRequest(then_interrupts=True)
silent, _ = socket.socketpair()
silent.settimeout(120)
begin = time.monotonic()
try:
    with stop.interrupting():
        threading.Thread(target=ask).start()
        silent.recv(1)
except Stopped:
    print("stopped" if time.monotonic() - begin < 60 else "too late", stop.asked, threading.active_count())
"""


def test_a_stop_that_interrupts_no_call_ends_the_call_all_the_same() -> None:
    done = subprocess.run([sys.executable, "-c", _PROGRAM], capture_output=True, text=True, check=False, timeout=300)
    assert done.stdout.split() == ["stopped", "True", "1"], done.stderr


def test_what_listens_for_signals_is_as_before_when_the_block_ends() -> None:
    program = """
import signal
from prony.app.stop_request import StopRequest

stop = StopRequest()
before = signal.getsignal(signal.SIGURG)
for _ in range(3):
    with stop.interrupting():
        pass
print(signal.getsignal(signal.SIGURG) == before, signal.set_wakeup_fd(-1))
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False, timeout=300)
    assert done.stdout.split() == ["True", "-1"], done.stderr
