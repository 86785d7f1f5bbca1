"""The files of deploy/ fit together: commands that Prony takes, variables that it reads, images and volumes that exist.

No container engine and no cluster runs here. What can run does: the script that makes tokens, and kubectl's kustomize.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from prony.cli.main import COMMANDS
from prony.cli.option_settings import list_settings
from prony.cli.parsers import build_parser
from servers.needs import lack

ROOT = Path(__file__).parents[2]
DEPLOY = ROOT / "deploy"
KUBERNETES = DEPLOY / "kubernetes"
Document = dict[str, Any]
FINAL = ("runner", "agent", "server")
# Every key that the files may use: a key that is misspelt would be refused by the engine, or worse, passed over.
SERVICE_KEYS = {
    "image", "build", "environment", "command", "entrypoint", "volumes", "networks", "ports", "depends_on",
    "healthcheck", "stop_grace_period", "restart", "read_only", "tmpfs", "cap_drop", "security_opt", "init", "user",
    "network_mode", "profiles", "env_file", "hostname",
}  # fmt: skip
INSTRUCTIONS = {
    "ARG", "FROM", "ENV", "RUN", "VOLUME", "COPY", "USER", "CMD", "ENTRYPOINT", "HEALTHCHECK", "STOPSIGNAL", "EXPOSE",
}  # fmt: skip


def check_command(words: list[str]) -> None:
    """Have Prony's own parser take a command; it ends the test where it does not."""
    assert words[0] in COMMANDS, words
    build_parser(words[0]).parse_args(words[1:])


def check_variables(names: Any) -> None:
    known = {one.variable for one in list_settings()}
    assert {name for name in names if name.startswith("PRONY_")} <= known


# The images


def instructions() -> list[tuple[str, str]]:
    """Return each instruction of the Containerfile with its arguments."""
    text = re.sub(r"^#.*\n", "", (DEPLOY / "Containerfile").read_text(), flags=re.MULTILINE)
    return [(word, rest.strip()) for word, _, rest in (line.partition(" ") for line in text.splitlines()) if word]


def stages() -> dict[str, list[tuple[str, str]]]:
    """Return the stages by name, each with the instructions of those that it is made from before its own."""
    found: dict[str, list[tuple[str, str]]] = {}
    own: list[tuple[str, str]] = []
    for word, rest in instructions():
        if word == "FROM":
            base, _, name = rest.partition(" AS ")
            own = found[name] = list(found.get(base, []))
        else:
            own.append((word, rest))
    return found


def last(stage: str, word: str) -> str:
    return [rest for one, rest in stages()[stage] if one == word][-1]


def test_the_containerfile_has_only_instructions_that_there_are() -> None:
    assert {word for word, _ in instructions()} <= INSTRUCTIONS
    assert set(FINAL) <= set(stages())
    named = {rest.split()[0].removeprefix("--from=") for word, rest in instructions() if "--from=" in rest}
    assert named <= set(stages())


@pytest.mark.parametrize("stage", FINAL)
def test_an_image_runs_as_a_user_that_is_not_root(stage: str) -> None:
    assert int(last(stage, "USER")) > 0
    assert any(f"--uid {last(stage, 'USER')}" in rest for word, rest in stages()[stage] if word == "RUN")


@pytest.mark.parametrize("stage", ["agent", "server"])
def test_an_image_starts_and_is_checked_by_commands_that_prony_takes(stage: str) -> None:
    assert json.loads(last(stage, "ENTRYPOINT")) == ["prony"]
    check_command(json.loads(last(stage, "CMD")))
    program, *words = json.loads(last(stage, "HEALTHCHECK").partition("CMD ")[2])
    assert program == "prony"
    check_command(words)


def test_the_runner_shows_its_device_by_default() -> None:
    program, *words = json.loads(last("runner", "CMD"))
    assert program == "prony"
    check_command(words)


def test_the_extras_of_the_images_are_those_of_the_package() -> None:
    known = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    text = (DEPLOY / "Containerfile").read_text()
    engines = re.findall(r"^ARG ENGINES=(\S+)", text, re.MULTILINE)
    given = re.findall(r"prony-\*\.whl\)\[([a-z,]+)\]", text)
    assert len(engines) == len(given) == 1
    assert set(",".join(engines + given).split(",")) <= set(known)


def test_only_the_wheel_goes_to_the_build() -> None:
    assert (DEPLOY / "Containerfile.dockerignore").read_text().splitlines() == ["*", "!dist/*.whl"]
    copied = [rest for word, rest in instructions() if word == "COPY" and "--from=" not in rest]
    assert set(copied) == {"dist/*.whl /wheels/"}


# Compose


@pytest.fixture(scope="module")
def compose() -> Document:
    return dict(yaml.safe_load((DEPLOY / "compose.yaml").read_text()))


def test_compose_uses_only_keys_and_names_that_there_are(compose: Document) -> None:
    assert {key for key in compose if not key.startswith("x-")} == {"name", "services", "networks", "volumes"}
    services = compose["services"]
    used_volumes, used_networks = set(), set()
    for name, service in services.items():
        assert set(service) <= SERVICE_KEYS, name
        used_networks |= set(service.get("networks", ()))
        for volume in service.get("volumes", ()):
            source = volume.split(":")[0]
            if source.startswith("."):
                assert (DEPLOY / source).exists(), volume
            else:
                used_volumes.add(source)
        assert set(service.get("depends_on", ())) <= set(services), name
        mode = service.get("network_mode", "")
        assert not mode or (mode.removeprefix("service:") in services and "networks" not in service)
    assert used_volumes == set(compose["volumes"])
    assert used_networks == set(compose["networks"])


def test_compose_waits_for_what_can_be_waited_for(compose: Document) -> None:
    services = compose["services"]
    for name, service in services.items():
        needs = service.get("depends_on", {})
        for needed, how in needs.items() if isinstance(needs, dict) else ():
            if how["condition"] == "service_healthy":
                assert "healthcheck" in services[needed], (name, needed)
            else:
                assert how["condition"] == "service_completed_successfully"
                assert services[needed]["restart"] == "no", (name, needed)


def test_compose_builds_targets_of_the_containerfile(compose: Document) -> None:
    built = {name: one["build"] for name, one in compose["services"].items() if "build" in one}
    assert set(built) == {"server", "agent"}
    for name, build in built.items():
        assert (DEPLOY / build["context"] / build["dockerfile"]).samefile(DEPLOY / "Containerfile")
        assert build["target"] == name
        assert build["target"] in stages()


@pytest.mark.parametrize("name", ["server", "tokens", "agent"])
def test_containers_of_prony_can_change_nothing_but_their_volumes(compose: Document, name: str) -> None:
    service = compose["services"][name]
    assert service["read_only"] is True
    assert service["cap_drop"] == ["ALL"]
    assert service["security_opt"] == ["no-new-privileges:true"]
    check_variables(service["environment"])


@pytest.mark.parametrize("name", ["server", "agent"])
def test_compose_starts_and_checks_by_commands_that_prony_takes(compose: Document, name: str) -> None:
    service = compose["services"][name]
    check_command(service["command"])
    how, program, *words = service["healthcheck"]["test"]
    assert (how, program) == ("CMD", "prony")
    check_command(words)


def test_only_this_machine_reaches_the_published_ports(compose: Document) -> None:
    ports = [port for one in compose["services"].values() for port in one.get("ports", ())]
    assert len(ports) == 3
    assert [port for port in ports if not port.startswith("127.0.0.1:")] == []
    assert compose["networks"]["database"] == {"internal": True}


def test_the_script_of_compose_makes_each_token_once(compose: Document, tmp_path: Path) -> None:
    service = compose["services"]["tokens"]
    (script,) = service["command"]
    script = script.replace("$$", "$").replace("/tokens/", f"{tmp_path}/tokens/")
    for volume in ("agent", "prometheus"):
        (tmp_path / "tokens" / volume).mkdir(parents=True)
    place = tmp_path / "bin"
    place.mkdir()
    (place / "prony").write_text(f'#!/bin/sh\nexec {sys.executable} -m prony "$@"\n')
    (place / "prony").chmod(0o755)
    environment = os.environ | {"PATH": f"{place}:{os.environ['PATH']}", "PRONY_HOME": str(tmp_path / "home")}

    def run() -> list[str]:
        command = [*service["entrypoint"], script]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        return [(tmp_path / "tokens" / volume / "prony-token").read_text() for volume in ("agent", "prometheus")]

    made = run()
    assert all(re.fullmatch(r"prony_\S+\n", secret) for secret in made)
    assert run() == made


def test_prometheus_and_grafana_find_their_files(compose: Document) -> None:
    services = compose["services"]
    held = {volume.split(":")[1] for volume in services["prometheus"]["volumes"]}
    assert {"/etc/prometheus", "/etc/prometheus/prometheus.yml", "/etc/prometheus/rules.yml"} <= held
    written = [volume for volume in services["tokens"]["volumes"] if volume.startswith("prometheus:")]
    assert written == ["prometheus:/tokens/prometheus"]
    provider = yaml.safe_load((DEPLOY / "grafana/provisioning/dashboards/prony.yaml").read_text())["providers"][0]
    assert f"./grafana/dashboards:{provider['options']['path']}:ro" in services["grafana"]["volumes"]
    source = yaml.safe_load((DEPLOY / "grafana/provisioning/datasources/prony.yaml").read_text())["datasources"][0]
    assert source["url"].removeprefix("$") in services["grafana"]["environment"]


# Kubernetes


def objects() -> Iterator[Document]:
    for path in sorted(KUBERNETES.glob("*.yaml")):
        if path.name != "kustomization.yaml":
            yield from yaml.safe_load_all(path.read_text())


def workloads() -> list[Document]:
    return [one for one in objects() if one["kind"] in ("Deployment", "DaemonSet")]


def test_kustomize_takes_every_file_of_the_folder() -> None:
    kustomization = yaml.safe_load((KUBERNETES / "kustomization.yaml").read_text())
    here = {path.name for path in KUBERNETES.glob("*.yaml")} - {"kustomization.yaml"}
    assert set(kustomization["resources"]) == here
    images = {container["image"] for one in workloads() for container in one["spec"]["template"]["spec"]["containers"]}
    assert {image["name"] for image in kustomization["images"]} == images


@pytest.mark.parametrize("workload", workloads(), ids=lambda one: one["metadata"]["name"])
def test_a_pod_is_hardened_and_has_what_it_mounts(workload: Document) -> None:
    spec = workload["spec"]
    assert spec["selector"]["matchLabels"].items() <= spec["template"]["metadata"]["labels"].items()
    pod = spec["template"]["spec"]
    assert pod["automountServiceAccountToken"] is False
    assert pod["securityContext"]["runAsNonRoot"] is True
    assert pod["securityContext"]["runAsUser"] == int(last("agent", "USER"))
    (container,) = pod["containers"]
    assert container["securityContext"] == {
        "allowPrivilegeEscalation": False, "readOnlyRootFilesystem": True, "capabilities": {"drop": ["ALL"]},
    }  # fmt: skip
    assert {mount["name"] for mount in container["volumeMounts"]} == {volume["name"] for volume in pod["volumes"]}
    assert {"/tmp", "/var/lib/prony"} <= {mount["mountPath"] for mount in container["volumeMounts"]}
    check_command(container["args"])
    check_variables(one["name"] for one in container["env"])
    asked = set(re.findall(r"\$\((\w+)\)", " ".join(container["args"])))
    assert asked <= {one["name"] for one in container["env"]}


def test_the_service_leads_to_the_server() -> None:
    (service,) = [one for one in objects() if one["kind"] == "Service"]
    (server,) = [one for one in workloads() if one["metadata"]["name"] == "prony-server"]
    template = server["spec"]["template"]
    assert service["spec"]["selector"].items() <= template["metadata"]["labels"].items()
    (port,) = service["spec"]["ports"]
    (container,) = template["spec"]["containers"]
    assert port["targetPort"] in {one["name"] for one in container["ports"]}
    agent = next(one for one in workloads() if one["metadata"]["name"] == "prony-agent")
    (container,) = agent["spec"]["template"]["spec"]["containers"]
    address = next(one["value"] for one in container["env"] if one["name"] == "PRONY_SERVER")
    assert address == f"http://{service['metadata']['name']}:{port['port']}"


def test_the_published_schemas_know_every_field_of_the_manifests() -> None:
    try:
        import kubernetes_validate  # type: ignore[import-not-found,import-untyped,unused-ignore]
    except ImportError:
        lack("kubernetes_validate", "the package with the published schemas is not installed")
    for minor in range(25, 38):
        for document in objects():
            kubernetes_validate.validate(document, f"1.{minor}", strict=True)


def test_kubectl_renders_the_folder_with_the_images_of_a_registry() -> None:
    kubectl = shutil.which("kubectl")
    if kubectl is None:
        lack("kubectl", "kubectl is not installed")
    done = subprocess.run([kubectl, "kustomize", str(KUBERNETES)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    rendered = list(yaml.safe_load_all(done.stdout))
    assert len(rendered) == len(list(objects()))
    assert {one["metadata"].get("namespace", "prony") for one in rendered} == {"prony"}
    assert re.findall(r"image: (?!registry\.example/)\S+", done.stdout) == []
