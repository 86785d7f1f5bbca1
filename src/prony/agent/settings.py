"""How one agent is to behave, as its owner said it."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from prony.errors import InputError
from prony.model.agent import Fact
from prony.model.target import Target
from prony.ports.agent_link import OtherServer
from prony.ports.models import AGENT_POLICY, ModelPolicy, policy_of
from prony.ports.workload import default_kinds, kind_names

# Where `prony server` listens unless it is told otherwise.
DEFAULT_SERVER = "http://127.0.0.1:7337"
DEFAULT_SLOTS = 20


@dataclass(frozen=True)
class AgentSettings:
    """`drain_timeout_s`: how long a job may continue after SIGTERM before it is handed back. `address`: where other
    agents reach this machine; by default the address that it has towards the server. `other_server`: another program's
    orchestrator, served instead of a Prony server. `target`: where jobs run instead of on this device, at most `slots`
    of them at once. `otlp_url`: where the spans of its jobs go."""

    name: str | None = None
    address: str | None = None
    device_name: str | None = None
    labels: Mapping[str, str] = field(default_factory=dict)
    share_device: bool = False
    drain_timeout_s: float = 60.0
    metrics_host: str = "127.0.0.1"
    metrics_port: int | None = None
    models: ModelPolicy = AGENT_POLICY
    kinds: tuple[str, ...] = field(default_factory=default_kinds)
    least_free_bytes: int | None = None
    other_server: OtherServer | None = None
    target: Target | None = None
    slots: int = DEFAULT_SLOTS
    otlp_url: str = ""

    def variables(self) -> dict[str, str]:
        """Return what a runner is told of this agent by its environment."""
        found = dict(self.models.variables())
        if self.labels:
            found["PRONY_LABELS"] = ",".join(f"{key}={value}" for key, value in self.labels.items())
        return found

    def policy(self) -> dict[str, Fact]:
        """Return what this device's owner allows and is installed here, as facts."""
        from prony.ports import plugins

        schemes = tuple(plugins.find_plugins(plugins.MODELS)) if self.models.schemes is None else self.models.schemes
        return {"schemes": schemes, "kinds": tuple(one for one in self.kinds if one in kind_names())}


# What each variable of the environment sets of a policy.
_FIELDS = {
    "PRONY_MODEL_SCHEMES": ("schemes",),
    "PRONY_MODEL_PRIVATE": ("private", "private_plain"),
    "PRONY_MODEL_MAX_BYTES": ("max_bytes",),
    "PRONY_MODEL_FOLDERS": ("folders",),
    "PRONY_MODEL_KEEP_BYTES": ("keep_bytes",),
}


def model_policy(
    environment: Mapping[str, str],
    *,
    schemes: str | None = None,
    private: str | None = None,
    max_bytes: int | None = None,
    folders: Sequence[Path] = (),
) -> ModelPolicy:
    """Return what may be fetched: an agent's own caution, changed by the environment, changed by options."""
    given = policy_of(environment)
    fields = [field for variable, own in _FIELDS.items() if variable in environment for field in own]
    policy = replace(AGENT_POLICY, **{field: getattr(given, field) for field in fields})
    if policy.folders and "schemes" not in fields:
        policy = replace(policy, schemes=_with_files(policy.schemes))
    if folders:
        policy = replace(policy, folders=tuple(folders), schemes=_with_files(policy.schemes))
    if schemes is not None:
        policy = replace(policy, schemes=tuple(filter(None, map(str.strip, schemes.split(",")))))
    if private is not None:
        policy = replace(policy, private=private != "refuse", private_plain=private == "plain")
    if max_bytes is not None:
        policy = replace(policy, max_bytes=max_bytes)
    return policy


def _with_files(schemes: tuple[str, ...] | None) -> tuple[str, ...] | None:
    """Return the schemes of who names folders: that means that files are read from them."""
    return schemes if schemes is None or "file" in schemes else (*schemes, "file")


_TOKEN_HINT = "put only the output of `prony tokens add` into it"


def token_from(file: Path | None, environment: Mapping[str, str] = os.environ) -> str | None:
    """Return the token of the file that was given, else that of the environment, else that of the file it names."""
    named = environment.get("PRONY_TOKEN_FILE")
    if file is None and (environment.get("PRONY_TOKEN") or not named):
        return environment.get("PRONY_TOKEN") or None
    file = file or Path(named or "")
    try:
        text = file.read_text(encoding="utf-8").strip()
    except OSError as exc:
        hint = "check the path and its permissions"
        raise InputError(f"cannot read the token in {file}: {exc.strerror}", hint=hint) from exc
    except UnicodeDecodeError as exc:
        raise InputError(f"cannot read the token in {file}: it is not text", hint=_TOKEN_HINT) from exc
    if not text:
        raise InputError(f"{file} is empty", hint=_TOKEN_HINT)
    return text
