"""Services of systemd and launchd: the files that are written, and what the managers are asked to do with them."""

from __future__ import annotations

import getpass
import os
import plistlib
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from prony.app import service_managers
from prony.app.service_managers import Launchd, Systemd, check_account, manager_here
from prony.app.service_units import ServicePlan, launchd_plist, systemd_unit
from prony.errors import CapacityError, InputError, NotFoundError, PronyError
from servers.commands import call_prony
from servers.needs import lack

SYSTEM = ServicePlan(
    program="agent",
    command=(sys.executable, "-P", "-m", "prony", "agent", "start", "--label", 'room=50% "lab" $1'),
    home=Path("/var/lib/prony"),
    user=getpass.getuser(),
    environment_file=Path("/etc/prony/agent.env"),
)
OF_A_USER = replace(SYSTEM, user="", home=Path("/srv/my home"))


class FakeManager:
    """Answers as `systemctl` or `launchctl` would, and keeps what it was asked."""

    def __init__(self, said: str = "", code: int = 0) -> None:
        self.asked: list[list[str]] = []
        self.said, self.code = said, code

    def __call__(self, words: Sequence[str]) -> subprocess.CompletedProcess[str]:
        self.asked.append(list(words))
        return subprocess.CompletedProcess(words, self.code, self.said, "refused" if self.code else "")


@pytest.mark.parametrize("program", ["agent", "server"])
@pytest.mark.parametrize("plan", [SYSTEM, OF_A_USER], ids=["system", "user"])
def test_systemd_finds_nothing_wrong_in_a_unit(program: str, plan: ServicePlan, tmp_path: Path) -> None:
    if shutil.which("systemd-analyze") is None:
        lack("systemd-analyze", "no systemd-analyze on the PATH")
    unit = tmp_path / f"prony-{program}.service"
    unit.write_text(systemd_unit(replace(plan, program=program)))
    scope = [] if plan.user else ["--user"]
    command = ["systemd-analyze", *scope, "verify", "--man=no", str(unit)]
    environment = os.environ | {"XDG_RUNTIME_DIR": str(tmp_path)}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    told = [line for line in done.stderr.splitlines() if unit.name in line]
    assert (done.returncode, told) == (0, []), done.stderr


def test_a_wrong_unit_would_be_found(tmp_path: Path) -> None:
    if shutil.which("systemd-analyze") is None:
        lack("systemd-analyze", "no systemd-analyze on the PATH")
    unit = tmp_path / "prony-agent.service"
    unit.write_text(systemd_unit(SYSTEM).replace("UMask=", "UMusk="))
    done = subprocess.run(
        ["systemd-analyze", "verify", "--man=no", str(unit)], capture_output=True, text=True, check=False
    )
    assert "UMusk" in done.stderr


def test_words_reach_the_program_as_they_were_typed() -> None:
    unit = systemd_unit(SYSTEM)
    assert '--label "room=50%% \\"lab\\" $$1"' in unit
    assert 'Environment="PRONY_HOME=/srv/my home"' in systemd_unit(OF_A_USER)


def test_an_agent_keeps_its_gpus_and_a_server_has_no_devices() -> None:
    server = systemd_unit(replace(SYSTEM, program="server"))
    for line in ("PrivateDevices=yes", "ProtectClock=yes", "RestrictNamespaces=yes"):
        assert line in server
        assert line not in systemd_unit(SYSTEM)
    for line in ("NoNewPrivileges=yes", "ProtectSystem=strict", "CapabilityBoundingSet=\n"):
        assert line in server
        assert line in systemd_unit(SYSTEM)


def test_the_home_is_all_that_a_service_of_the_system_may_write_to() -> None:
    assert "StateDirectory=prony\n" in systemd_unit(SYSTEM)
    assert "ReadWritePaths=/srv/prony\n" in systemd_unit(replace(SYSTEM, home=Path("/srv/prony")))


def test_systemd_is_asked_to_start_look_and_stop(tmp_path: Path) -> None:
    run = FakeManager("ActiveState=active\nSubState=running\nUnitFileState=enabled\nMainPID=77\nExecMainStatus=0\n")
    manager = Systemd(is_user=True, folder=tmp_path / "user", run=run)
    path = manager.install(OF_A_USER)
    assert path.read_text() == systemd_unit(OF_A_USER)
    assert [words[2] for words in run.asked] == ["daemon-reload", "enable", "restart"]
    assert all(words[:2] == ["systemctl", "--user"] for words in run.asked)
    state = manager.look("agent")
    assert (state.is_running, state.process, state.state) == (True, 77, "active (running), enabled")
    assert state.log == "journalctl --user --unit prony-agent"
    assert manager.remove("agent") == path
    assert not path.exists()
    assert [words[2] for words in run.asked[-2:]] == ["disable", "daemon-reload"]


def test_a_service_that_failed_tells_its_exit_code(tmp_path: Path) -> None:
    said = "ActiveState=failed\nSubState=failed\nUnitFileState=enabled\nMainPID=0\nExecMainStatus=2\n"
    manager = Systemd(is_user=False, folder=tmp_path, run=FakeManager(said))
    manager.install(SYSTEM)
    state = manager.look("agent")
    assert (state.is_running, state.process) == (False, None)
    assert state.state == "failed (failed), enabled, last exit code 2"


def test_what_a_manager_refuses_is_told_in_its_own_words(tmp_path: Path) -> None:
    manager = Systemd(is_user=False, folder=tmp_path, run=FakeManager(code=1))
    with pytest.raises(PronyError, match="systemctl daemon-reload failed: refused"):
        manager.install(SYSTEM)


def test_launchd_is_asked_to_start_look_and_stop(tmp_path: Path) -> None:
    plan = replace(OF_A_USER, log_file=tmp_path / "Logs" / "agent.log")
    run = FakeManager("prony-agent = {\n\tstate = running\n\tpid = 78\n}\n")
    manager = Launchd(is_user=False, folder=tmp_path / "LaunchDaemons", run=run)
    path = manager.install(plan)
    assert run.asked == [["launchctl", "bootstrap", "system", str(path)]]
    assert plan.log_file is not None
    assert plan.log_file.parent.is_dir()
    state = manager.look("agent")
    assert (state.is_running, state.process, state.log) == (True, 78, str(plan.log_file))
    manager.install(plan)
    assert run.asked[-2:] == [["launchctl", "bootout", "system/prony-agent"], run.asked[0]]
    manager.remove("agent")
    assert not path.exists()


def test_a_property_list_has_the_command_and_the_home() -> None:
    document = plistlib.loads(launchd_plist(SYSTEM).encode())
    assert document["ProgramArguments"] == list(SYSTEM.command)
    assert document["EnvironmentVariables"] == {"PRONY_HOME": "/var/lib/prony"}
    assert (document["UserName"], document["ProcessType"]) == (SYSTEM.user, "Interactive")
    assert "UserName" not in plistlib.loads(launchd_plist(OF_A_USER).encode())


def test_a_service_that_is_not_there_is_not_found(tmp_path: Path) -> None:
    for manager in (Systemd(is_user=True, folder=tmp_path), Launchd(is_user=False, folder=tmp_path)):
        with pytest.raises(NotFoundError, match="no service for the server is installed"):
            manager.look("server")


def test_a_user_and_a_home_that_are_missing_are_refused() -> None:
    with pytest.raises(InputError, match="no user 'nobody-of-that-name'") as caught:
        check_account(replace(SYSTEM, user="nobody-of-that-name"), "systemd")
    assert "useradd --system --home-dir /var/lib/prony" in caught.value.hint
    with pytest.raises(InputError, match="no folder /srv/my home"):
        check_account(replace(SYSTEM, home=Path("/srv/my home")), "systemd")
    check_account(replace(SYSTEM, home=Path("/var/lib/prony-not-there")), "systemd")


def test_only_systemd_makes_the_home_of_a_service() -> None:
    with pytest.raises(InputError, match="no folder /var/lib/prony-not-there"):
        check_account(replace(SYSTEM, home=Path("/var/lib/prony-not-there")), "launchd")
    with pytest.raises(InputError, match="no user") as caught:
        check_account(replace(SYSTEM, user="nobody-of-that-name"), "launchd")
    assert "sysadminctl -addUser nobody-of-that-name" in caught.value.hint


def test_a_unit_says_how_it_is_changed() -> None:
    assert "use `systemctl edit prony-agent`" in systemd_unit(SYSTEM)
    assert "use `systemctl --user edit prony-agent`" in systemd_unit(OF_A_USER)


def test_other_systems_are_told_what_to_do_instead() -> None:
    assert (manager_here("linux"), manager_here("darwin")) == ("systemd", "launchd")
    with pytest.raises(CapacityError, match="win32"):
        manager_here("win32")


def test_the_command_prints_the_unit_with_the_options_after_the_dashes() -> None:
    words = ("service", "install", "agent", "--system", "--manager", "systemd", "--print", "--run-as", "lab")
    told = call_prony(*words, "--", "--name", "rack-7", "--drain-timeout", "5m").stdout
    assert "agent start --name rack-7 --drain-timeout 5m\n" in told
    assert "User=lab\n" in told
    assert "TimeoutStopSec=360\n" in told
    server = call_prony("service", "install", "server", "--user", "--manager", "launchd", "--print").stdout
    assert plistlib.loads(server.encode())["ProgramArguments"][-1] == "server"


def test_a_wrong_option_of_the_program_is_refused_before_anything_is_written() -> None:
    said = call_prony("service", "install", "agent", "--print", "--manager", "systemd", "--", "--nope", code=2).stderr
    assert "unrecognized arguments: --nope" in said
    said = call_prony("service", "status", "agent", "--", "--name", "x", code=2).stderr
    assert "unrecognized arguments" in said
    said = call_prony("service", "install", "agent", "--user", "--run-as", "lab", "--print", code=2).stderr
    assert "--run-as needs --system" in said


def test_a_machine_without_the_manager_is_told_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(service_managers, "_BOOTED", tmp_path / "not-there")
    said = call_prony("service", "install", "agent", "--manager", "systemd", code=3).stderr
    assert "systemd does not run on this machine" in said
    assert "--print" in said
