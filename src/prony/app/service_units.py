"""Write the files by which systemd and launchd run an agent or a server in the background."""

from __future__ import annotations

import plistlib
import re
from dataclasses import dataclass
from pathlib import Path

_STATE = Path("/var/lib")
_PLAIN = re.compile(r"[\w@+=:,./-]+")
# What takes nothing from a measurement, and works without the rights of root.
_FOR_ALL = """\
NoNewPrivileges=yes
LockPersonality=yes
RestrictSUIDSGID=yes
SystemCallArchitectures=native
UMask=0077
"""
# Home folders can be read, because the Python that runs this may lie in one.
_FOR_SYSTEM = """\
CapabilityBoundingSet=
ProtectSystem=strict
ProtectHome=read-only
PrivateTmp=yes
ProtectHostname=yes
ProtectKernelLogs=yes
ProtectKernelModules=yes
ProtectKernelTunables=yes
"""
_FOR_SERVER = """\
PrivateDevices=yes
ProtectControlGroups=yes
ProtectClock=yes
RestrictNamespaces=yes
RestrictRealtime=yes
RestrictAddressFamilies=AF_UNIX AF_INET AF_INET6 AF_NETLINK
"""
# ProtectClock and PrivateDevices would take the GPUs away; containers need namespaces and control groups.
_FOR_AGENT = """\
# The clients of a load ask for a real-time priority of 1.
LimitRTPRIO=1
"""


@dataclass(frozen=True)
class ServicePlan:
    """What is to run in the background: the words of the command, as whom, and with which home.

    `user` is empty for a service of the person who installs it. `stop_s` is how long it may take to end in order.
    """

    program: str
    command: tuple[str, ...]
    home: Path
    user: str = ""
    environment_file: Path | None = None
    log_file: Path | None = None
    stop_s: int = 120

    @property
    def name(self) -> str:
        return service_name(self.program)


def service_name(program: str) -> str:
    """Return what the service of a program is called."""
    return f"prony-{program}"


def systemd_unit(plan: ServicePlan) -> str:
    """Return the unit of a service of the system, or of a user where the plan names none."""
    edit = "systemctl edit" if plan.user else "systemctl --user edit"
    return f"""\
# Written by `prony service install {plan.program}`. To change it, use `{edit} {plan.name}`.
[Unit]
Description=Prony {plan.program}
Documentation=man:prony-{plan.program}(1)
{_network(plan)}
[Service]
Type=exec
{_identity(plan)}ExecStart={" ".join(map(_quote_word, plan.command))}
Restart=always
RestartSec=5
# Exit code 2: a wrong option, or a token that is refused. To start again would not help.
RestartPreventExitStatus=2
# A stop goes to the main process alone, which ends its children in order.
KillMode=mixed
TimeoutStopSec={plan.stop_s}
{_restrictions(plan)}
[Install]
WantedBy={"multi-user.target" if plan.user else "default.target"}
"""


def _restrictions(plan: ServicePlan) -> str:
    """Return what the service may not do; the manager of a user has no right to restrict much."""
    own = {"agent": _FOR_AGENT, "server": _FOR_SERVER}[plan.program]
    return own + _FOR_SYSTEM + _FOR_ALL if plan.user else _FOR_ALL


def _network(plan: ServicePlan) -> str:
    """Return what a service of the system waits for; the manager of a user knows no network."""
    return "Wants=network-online.target\nAfter=network-online.target\n" if plan.user else ""


def _identity(plan: ServicePlan) -> str:
    lines = [f"User={plan.user}", *_writable(plan)] if plan.user else []
    lines.append(f"Environment={_quote_assignment(f'PRONY_HOME={plan.home}')}")
    if plan.environment_file is not None:
        # The dash: it need not be there.
        lines.append(f"EnvironmentFile=-{_quote_path(plan.environment_file)}")
    return "".join(f"{line}\n" for line in lines)


def _writable(plan: ServicePlan) -> list[str]:
    """Return what gives the service its home; systemd makes one that lies where the state of services does."""
    if is_made_by_systemd(plan.home):
        name = _quote_path(plan.home.relative_to(_STATE))
        return [f"StateDirectory={name}", "StateDirectoryMode=0700"]
    return [f"ReadWritePaths={_quote_path(plan.home)}"]


def is_made_by_systemd(home: Path) -> bool:
    """Does systemd make this folder for its service, and give it to the service's user?"""
    return home.is_relative_to(_STATE) and home != _STATE


def _quote_word(word: str) -> str:
    """Return a word of ExecStart, in which systemd would replace `%` and `$`."""
    return _quote_assignment(word).replace("$", "$$")


def _quote_assignment(text: str) -> str:
    if _PLAIN.fullmatch(text):
        return text
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n").replace("%", "%%")
    return f'"{escaped}"'


def _quote_path(path: Path) -> str:
    return _quote_assignment(str(path))


def launchd_plist(plan: ServicePlan) -> str:
    """Return the property list of a daemon, or of an agent of a user where the plan names none."""
    document: dict[str, object] = {
        "Label": plan.name,
        "ProgramArguments": list(plan.command),
        "EnvironmentVariables": {"PRONY_HOME": str(plan.home)},
        "RunAtLoad": True,
        "KeepAlive": {"SuccessfulExit": False},
        "ThrottleInterval": 10,
        "ExitTimeOut": plan.stop_s,
        # Without it, macOS slows a process down that no window belongs to, and may keep it on the efficient cores.
        "ProcessType": "Interactive",
        "Umask": 0o077,
    }
    if plan.log_file is not None:
        document |= {"StandardOutPath": str(plan.log_file), "StandardErrorPath": str(plan.log_file)}
    if plan.user:
        document["UserName"] = plan.user
    return plistlib.dumps(document, sort_keys=False).decode()
