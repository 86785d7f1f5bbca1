"""Import what a Windows machine imports, without what only other systems have; print what fails."""

import importlib
import os
import pkgutil
import select
import signal
import sys

# What others import first, so that only our own lines miss what is taken away below.
import alembic
import filelock
import httptools
import httpx
import numpy
import polars
import psutil
import rich.console
import rich.table
import sqlalchemy.dialects.sqlite
import yaml

LOADED = (alembic, filelock, httptools, httpx, numpy, polars, psutil, rich, sqlalchemy, yaml)
MODULES = "fcntl resource pwd grp termios pty tty uvloop syslog"
OF_OS = """fork forkpty killpg setsid getsid setpgid getpgid getpgrp getuid geteuid getgid getegid setuid setgid
sched_getaffinity sched_setaffinity sched_setscheduler pwrite pread statvfs wait4 waitid WNOHANG mkfifo getloadavg
sysconf posix_spawn posix_fadvise uname O_NONBLOCK O_CLOEXEC O_DIRECTORY O_NOFOLLOW chown fchown pidfd_open eventfd
openpty nice getpriority sendfile memfd_create"""
OF_SIGNAL = """SIGKILL SIGHUP SIGCHLD SIGUSR1 SIGUSR2 SIGQUIT SIGPIPE SIGALRM SIGSTOP SIGCONT SIGTSTP SIGXFSZ
pthread_sigmask pthread_kill sigwait setitimer alarm"""
# The server and what belongs to it alone are not promised on Windows.
UNPROMISED = ("prony.server", "prony.app.fleet", "prony.compat", "prony.store.migrations", "prony.recipe.examples",
              "prony.shims")  # fmt: skip


def take_away() -> None:
    for name in MODULES.split():
        sys.modules[name] = None  # type: ignore[assignment]
    for module, names in ((os, OF_OS), (signal, OF_SIGNAL), (select, "epoll poll kqueue")):
        for name in names.split():
            if hasattr(module, name):
                delattr(module, name)
    sys.platform = "win32"


def find_faults() -> list[str]:
    import prony

    faults = []
    for found in pkgutil.walk_packages(prony.__path__, "prony."):
        if found.name.startswith(UNPROMISED) or found.name.endswith("__main__"):
            continue
        try:
            importlib.import_module(found.name)
        except (ImportError, AttributeError) as exc:
            faults.append(f"{found.name}: {type(exc).__name__}: {exc}")
    return faults


if __name__ == "__main__":
    take_away()
    sys.exit("\n".join(find_faults()))
