"""Ask a cluster by the user's own kubectl, and run scripts in its pods."""

from __future__ import annotations

import json
import shlex
import subprocess
from collections.abc import Mapping, Sequence
from typing import Any

from prony.errors import CapacityError, InputError, TransportError
from prony.plugins.executors.kubernetes_text import KEEPER, explain_refusal
from prony.plugins.executors.shell import Shell

_ANSWER_S = 30.0
_INSTALL = "install kubectl, or set the target's option kubectl"


class Kubectl:
    """One namespace of one cluster, with whatever login the user's configuration has for it."""

    def __init__(self, program: str, target: str, *, kubeconfig: str, context: str, namespace: str) -> None:
        self.namespace = namespace
        self._target = target
        self._words = [program, f"--namespace={namespace}"]
        self._words += [f"--kubeconfig={kubeconfig}"] if kubeconfig else []
        self._words += [f"--context={context}"] if context else []

    def words(self, *more: str) -> list[str]:
        """Return a whole command."""
        return [*self._words, *more]

    def run(self, *more: str, stdin: bytes = b"") -> bytes:
        """Run one command and return what it printed.

        Raises:
            InputError, AccessError, CapacityError: the cluster refuses it; the hint has the command.
            TransportError: the cluster is not reached.
        """
        code, out, told = self.attempt(*more, stdin=stdin)
        if code:
            raise explain_refusal(told, shlex.join(self.words(*more)), self._target)
        return out

    def attempt(self, *more: str, stdin: bytes = b"") -> tuple[int, bytes, str]:
        """Run one command; return its exit code, what it printed and what it complained of."""
        command = self.words(f"--request-timeout={_ANSWER_S:g}s", *more)
        try:
            done = subprocess.run(command, input=stdin, capture_output=True, timeout=2 * _ANSWER_S, check=False)
        except FileNotFoundError as exc:
            raise CapacityError(f"{command[0]} not found", hint=_INSTALL, code="no_kubectl") from exc
        except subprocess.TimeoutExpired as exc:
            raise TransportError(
                f"no answer from {self._target} in {2 * _ANSWER_S:g} s", hint=f"try: {shlex.join(self.words(*more))}"
            ) from exc
        return done.returncode, done.stdout, done.stderr.decode(errors="replace")

    def read(self, *more: str) -> list[dict[str, Any]]:
        """Return the objects that a `get` finds."""
        told = json.loads(self.run("get", *more, "--output=json"))
        items: list[dict[str, Any]] = told["items"]
        return items

    def create(self, path: str, document: Mapping[str, Any]) -> dict[str, Any] | None:
        """Create an object as it is written and return it; None where one of its name is there.

        A server that knows how refuses fields that it does not know, rather than drop them.
        """
        words = ("create", f"--raw={path}?fieldValidation=Strict", "--filename=-")
        code, out, told = self.attempt(*words, stdin=json.dumps(document).encode())
        if code and "(AlreadyExists)" not in told:
            raise explain_refusal(told, shlex.join(self.words(*words)), self._target)
        made: dict[str, Any] | None = None if code else json.loads(out)
        return made


class PodShell(Shell):
    """The /bin/sh of a pod's container."""

    install_hint = _INSTALL

    def __init__(self, kubectl: Kubectl, pod: str, container: str = KEEPER) -> None:
        super().__init__()
        self.host = f"pod {pod}"
        self._kubectl, self._pod, self._container = kubectl, pod, container

    def _command(self, script: str) -> list[str]:
        run: Sequence[str] = ("--stdin", f"--container={self._container}", self._pod, "--", "/bin/sh", "-c", script)
        return self._kubectl.words("exec", *run)

    def _explain_loss(self, code: int, told: str) -> TransportError | InputError:
        return TransportError(
            f"{self.host} does not answer ({code}): {told.strip()[-300:]}",
            hint=f"to see its state: {shlex.join(self._kubectl.words('describe', 'pod', self._pod))}",
        )
