"""Write the Helm chart in deploy/helm/prony from the manifests in deploy/kubernetes, which stay the one source.

`python -m tools.helm_chart` puts an expression in the place of each value that a user may set, and writes the
manifests' own values as the defaults. With them, the chart gives the same objects as `kubectl apply -k`, but for the
Namespace, which Helm makes itself. All expressions are of one kind, `toJson`, whose answer is right in any YAML.
"""

from __future__ import annotations

import re
import sys
import tomllib
from pathlib import Path
from typing import Any, NamedTuple

import yaml

ROOT = Path(__file__).parents[1]
MANIFESTS = ROOT / "deploy" / "kubernetes"
CHART = ROOT / "deploy" / "helm" / "prony"


class Substitution(NamedTuple):
    """A text that stands once in a manifest, and the line of a template in its place; groups of it are kept."""

    pattern: str
    template: str


_JSON = "{{{{ toJson .Values.{0} }}}}".format
SERVER = (
    Substitution(r"requests: \{storage: \w+\}", f"requests: {{storage: {_JSON('server.storage')}}}"),
    Substitution(r"image: prony-server", f"image: {_JSON('server.image')}"),
    Substitution(r"( +)env:\n(?:\1  - [^\n]*\n)+", rf"\g<1>env: {_JSON('server.env')}\n"),
    Substitution(r"( +)resources:\n\1  requests: \{cpu[^\n]*", rf"\g<1>resources: {_JSON('server.resources')}"),
)
AGENT = (
    Substitution(r"image: prony-agent", f"image: {_JSON('agent.image')}"),
    Substitution(
        r"( +)automountServiceAccountToken: false\n", rf"\g<0>\g<1>nodeSelector: {_JSON('agent.nodeSelector')}\n"
    ),
    Substitution(r"( +)resources:\n\1  requests: [^\n]*", rf"\g<1>resources: {_JSON('agent.resources')}"),
    Substitution(r"secretName: prony-agent-token", f"secretName: {_JSON('agent.tokenSecret')}"),
)
ROLE = (Substitution(r"(kind: User\n +)name: prony", rf"\g<1>name: {_JSON('role.user')}"),)
# Each template, the values that turn it on, and what is put into it.
TEMPLATES: dict[str, tuple[str, tuple[Substitution, ...]]] = {
    "server.yaml": ("", SERVER),
    "agent.yaml": ("agent.enabled", AGENT),
    "role.yaml": ("role.enabled", ROLE),
}
_NOTES = """\
Prony runs in the namespace {{ .Release.Namespace }}. Next, a token for the agents:

  kubectl -n {{ .Release.Namespace }} exec deploy/prony-server -- prony tokens add cluster --role agent > token
  kubectl -n {{ .Release.Namespace }} create secret generic {{ .Values.agent.tokenSecret }} --from-file=token
"""


def main() -> int:
    for name, text in write_chart().items():
        path = CHART / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        print(path.relative_to(ROOT))
    return 0


def write_chart() -> dict[str, str]:
    """Return the chart's files by their path in it."""
    made = {"Chart.yaml": _write_chart_file(), "values.yaml": _write_values(), "templates/NOTES.txt": _NOTES}
    for name, (switch, substitutions) in TEMPLATES.items():
        text = substitute((MANIFESTS / name).read_text(), substitutions)
        made[f"templates/{name}"] = f"{{{{- if .Values.{switch} }}}}\n{text}{{{{- end }}}}\n" if switch else text
    return made


def substitute(text: str, substitutions: tuple[Substitution, ...]) -> str:
    """Return a manifest with its expressions; a pattern that does not stand there just once is an error."""
    for one in substitutions:
        text, count = re.subn(one.pattern, one.template, text)
        if count != 1:
            raise ValueError(f"{one.pattern!r} stands {count} times in the manifest")
    return text


def read_defaults() -> dict[str, Any]:
    """Return the values of the manifests, by the names that the chart gives them."""
    kustomization = yaml.safe_load((MANIFESTS / "kustomization.yaml").read_text())
    images = {one["name"]: f"{one['newName']}:{one['newTag']}" for one in kustomization["images"]}
    claim, _, deployment = yaml.safe_load_all((MANIFESTS / "server.yaml").read_text())
    server = deployment["spec"]["template"]["spec"]["containers"][0]
    daemon = yaml.safe_load((MANIFESTS / "agent.yaml").read_text())["spec"]["template"]["spec"]
    secret = next(one["secret"]["secretName"] for one in daemon["volumes"] if "secret" in one)
    _, binding = yaml.safe_load_all((MANIFESTS / "role.yaml").read_text())
    return {
        "server": {
            "image": images["prony-server"],
            "storage": claim["spec"]["resources"]["requests"]["storage"],
            "env": server["env"],
            "resources": server["resources"],
        },
        "agent": {
            "enabled": True,
            "image": images["prony-agent"],
            "tokenSecret": secret,
            "nodeSelector": {},
            "resources": daemon["containers"][0]["resources"],
        },
        "role": {"enabled": True, "user": binding["subjects"][0]["name"]},
    }


def _write_chart_file() -> str:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    return (
        "apiVersion: v2\nname: prony\ntype: application\n"
        "description: A Prony server, an agent on every node, and the Role for prony run\n"
        f"version: {project['version']}\nappVersion: {project['version']}\n"
    )


# What each value is for. A value without a line here is an error.
_MEANINGS = {
    "server.image": "Image of the server, in your registry, best by digest. deploy/Containerfile builds it.",
    "server.storage": "Size of the volume for results and the database.",
    "server.env": "Settings of the server, as variables: docs/settings.md.",
    "server.resources": "Requests and limits of the server: docs/sizing.md.",
    "agent.enabled": "Run an agent on every node.",
    "agent.image": "Image of the agents, with their engines.",
    "agent.tokenSecret": "Secret with the file `token`. Agents wait until it is there.",
    "agent.nodeSelector": "Labels of the nodes that measure.",
    "agent.resources": "Whole CPUs and equal limits give good numbers: docs/kubernetes.md.",
    "role.enabled": "Allow a user to run recipes as Jobs: docs/kubernetes.md.",
    "role.user": "The user of `prony run --on`.",
}


def _write_values() -> str:
    lines = ["# Written by tools/helm_chart.py from deploy/kubernetes, whose values these are."]
    for part, values in read_defaults().items():
        lines.append(f"{part}:")
        for name, value in values.items():
            lines += [f"  # {_MEANINGS[f'{part}.{name}']}", *_value_lines(name, value)]
    return "\n".join(lines) + "\n"


def _value_lines(name: str, value: object) -> list[str]:
    style = None if isinstance(value, dict | list) else False  # only what is nested is written in one line
    text = yaml.safe_dump({name: value}, sort_keys=False, default_flow_style=style, width=110)
    return [f"  {line}" for line in text.splitlines()]


if __name__ == "__main__":
    sys.exit(main())
