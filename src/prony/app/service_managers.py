"""Install, look at and remove services of systemd and launchd."""

from __future__ import annotations

import os
import plistlib
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from prony.app.service_units import ServicePlan, is_made_by_systemd, launchd_plist, service_name, systemd_unit
from prony.errors import CapacityError, InputError, NotFoundError, PronyError, StoreError

RunCommand = Callable[[Sequence[str]], "subprocess.CompletedProcess[str]"]
_BOOTED = Path("/run/systemd/system")


@dataclass(frozen=True)
class ServiceState:
    """What a manager says of a service; `state` is in its own words."""

    name: str
    file: Path
    is_running: bool
    state: str
    process: int | None
    log: str


class ServiceManager(Protocol):
    """Who starts services when the machine starts, and again when they end."""

    def file_of(self, program: str) -> Path: ...

    def text_of(self, plan: ServicePlan) -> str: ...

    def check(self) -> None:
        """Raise CapacityError where this manager does not run here."""

    def install(self, plan: ServicePlan) -> Path: ...

    def look(self, program: str) -> ServiceState: ...

    def remove(self, program: str) -> Path: ...


def call_manager(words: Sequence[str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(words, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)


class Systemd:
    """Units of the system, or of one user."""

    def __init__(self, *, is_user: bool, folder: Path, run: RunCommand = call_manager) -> None:
        self._scope = ("--user",) if is_user else ()
        self._folder, self._run, self._is_user = folder, run, is_user

    def file_of(self, program: str) -> Path:
        return self._folder / f"{service_name(program)}.service"

    def text_of(self, plan: ServicePlan) -> str:
        return systemd_unit(plan)

    def check(self) -> None:
        if shutil.which("systemctl") is None or not _BOOTED.is_dir():
            raise CapacityError("systemd does not run on this machine", hint=_PRINT_HINT, code="no_service_manager")

    def install(self, plan: ServicePlan) -> Path:
        path = _write(self.file_of(plan.program), self.text_of(plan))
        self._call("daemon-reload")
        self._call("enable", path.name)
        # Not `enable --now`: one that runs already must take up a unit that has changed.
        self._call("restart", path.name)
        return path

    def look(self, program: str) -> ServiceState:
        path = _find_installed(self.file_of(program), program)
        shown = ("ActiveState", "SubState", "UnitFileState", "MainPID", "ExecMainStatus")
        said = self._call("show", "--property", ",".join(shown), path.name).stdout
        found = dict(line.split("=", 1) for line in said.splitlines() if "=" in line)
        state = f"{found.get('ActiveState', 'unknown')} ({found.get('SubState', '')}), {found.get('UnitFileState', '')}"
        if found.get("ExecMainStatus", "0") != "0":
            state += f", last exit code {found['ExecMainStatus']}"
        process = int(found.get("MainPID", "0")) or None
        journal = " ".join(["journalctl", *self._scope, "--unit", path.stem])
        return ServiceState(path.stem, path, found.get("ActiveState") == "active", state, process, journal)

    def remove(self, program: str) -> Path:
        path = _find_installed(self.file_of(program), program)
        self._call("disable", "--now", path.name)
        path.unlink()
        self._call("daemon-reload")
        return path

    def _call(self, *words: str) -> subprocess.CompletedProcess[str]:
        return _expect(self._run, ["systemctl", *self._scope, *words])


class Launchd:
    """Daemons of the system, or agents of one user who is logged in."""

    def __init__(self, *, is_user: bool, folder: Path, run: RunCommand = call_manager) -> None:
        self._folder, self._run = folder, run
        self._domain = f"gui/{os.getuid()}" if is_user else "system"

    def file_of(self, program: str) -> Path:
        return self._folder / f"{service_name(program)}.plist"

    def text_of(self, plan: ServicePlan) -> str:
        return launchd_plist(plan)

    def check(self) -> None:
        if shutil.which("launchctl") is None:
            raise CapacityError("launchd does not run on this machine", hint=_PRINT_HINT, code="no_service_manager")

    def install(self, plan: ServicePlan) -> Path:
        path = self.file_of(plan.program)
        if path.exists():  # launchd takes up a changed file only after it has let go of the old one
            self._run(["launchctl", "bootout", f"{self._domain}/{plan.name}"])
        if plan.log_file is not None:
            plan.log_file.parent.mkdir(parents=True, exist_ok=True)
        _write(path, self.text_of(plan))
        _expect(self._run, ["launchctl", "bootstrap", self._domain, str(path)])
        return path

    def look(self, program: str) -> ServiceState:
        path = _find_installed(self.file_of(program), program)
        said = self._run(["launchctl", "print", f"{self._domain}/{path.stem}"])
        state = _field("state", said.stdout) if said.returncode == 0 else "not loaded"
        process = _field("pid", said.stdout)
        log = str(plistlib.loads(path.read_bytes()).get("StandardErrorPath", ""))
        return ServiceState(
            path.stem, path, state == "running", state or "unknown", int(process) if process else None, log
        )

    def remove(self, program: str) -> Path:
        path = _find_installed(self.file_of(program), program)
        self._run(["launchctl", "bootout", f"{self._domain}/{path.stem}"])  # fails where it was not loaded
        path.unlink()
        return path


_PRINT_HINT = "--print shows the file, for another service manager"
_USER_HINTS = {
    "systemd": "make one with: useradd --system --home-dir {home} --shell /usr/sbin/nologin {user}",
    "launchd": "make one with: sysadminctl -addUser {user} -home {home} -shell /usr/bin/false",
}
MANAGERS: dict[str, type[Systemd] | type[Launchd]] = {"systemd": Systemd, "launchd": Launchd}


def manager_here(platform: str = sys.platform) -> str:
    """Return the name of the manager that this system has.

    Raises:
        CapacityError: It has neither of the two.
    """
    if platform.startswith("linux"):
        return "systemd"
    if platform == "darwin":
        return "launchd"
    hint = "run `prony agent start` by the task scheduler, or by a program such as WinSW"
    raise CapacityError(f"services cannot be installed on {platform}", hint=hint, code="no_service_manager")


def open_manager(name: str, *, is_user: bool) -> ServiceManager:
    """Return a manager with the folder in which it looks for its files."""
    home = Path.home()
    config = Path(os.environ.get("XDG_CONFIG_HOME") or home / ".config")
    folders = {
        ("systemd", True): config / "systemd" / "user",
        ("systemd", False): Path("/etc/systemd/system"),
        ("launchd", True): home / "Library" / "LaunchAgents",
        ("launchd", False): Path("/Library/LaunchDaemons"),
    }
    return MANAGERS[name](is_user=is_user, folder=folders[name, is_user])


def check_account(plan: ServicePlan, manager: str) -> None:
    """Refuse a user or a home that this machine does not have: the manager would start the service in vain.

    Raises:
        InputError: There is no such user, or no such folder.
    """
    import pwd

    try:
        pwd.getpwnam(plan.user)
    except KeyError:
        hint = _USER_HINTS[manager].format(home=plan.home, user=plan.user)
        raise InputError(f"there is no user {plan.user!r}", hint=hint) from None
    is_made = manager == "systemd" and is_made_by_systemd(plan.home)
    if not is_made and not plan.home.is_dir():
        hint = f"create it for the user: install -d -m 700 -o {plan.user} {plan.home}"
        raise InputError(f"there is no folder {plan.home}", hint=hint)


def _write(path: Path, text: str) -> Path:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    except PermissionError as exc:
        raise StoreError(f"cannot write {path}", hint="run it as root, or install with --user") from exc
    return path


def _find_installed(path: Path, program: str) -> Path:
    if path.is_file():
        return path
    hint = f"install it with: prony service install {program}; --user and --system services are separate"
    raise NotFoundError(f"no service for the {program} is installed: there is no {path}", hint=hint)


def _expect(run: RunCommand, words: list[str]) -> subprocess.CompletedProcess[str]:
    done = run(words)
    if done.returncode:
        said = (done.stderr or done.stdout).strip()
        raise PronyError(f"{' '.join(words)} failed: {said}", hint="see the log of the service manager")
    return done


def _field(name: str, said: str) -> str:
    found = re.search(rf"^\s*{name} = (.+)$", said, re.MULTILINE)
    return found[1] if found else ""
