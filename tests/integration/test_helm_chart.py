"""The Helm chart is written from the manifests, and its defaults give the same objects.

Templates use two expressions alone, so that a few lines here can render them; where helm is installed, it does too.
"""

from __future__ import annotations

import copy
import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from servers.needs import lack
from tools.helm_chart import CHART, MANIFESTS, Substitution, substitute, write_chart

Document = dict[str, Any]
IF = re.compile(r"\{\{- if \.Values\.([\w.]+) \}\}\n(.*)\{\{- end \}\}\n", re.DOTALL)
JSON = re.compile(r"\{\{ toJson \.Values\.([\w.]+) \}\}")


def look_up(values: Document, path: str) -> Any:
    for name in path.split("."):
        values = values[name]
    return values


def render(values: Document) -> list[Document]:
    """Return the objects that the templates give."""
    found: list[Document] = []
    for path in sorted((CHART / "templates").glob("*.yaml")):
        text = IF.sub(lambda block: block[2] if look_up(values, block[1]) else "", path.read_text())
        text = JSON.sub(lambda one: json.dumps(look_up(values, one[1])), text)
        assert "{{" not in text, path
        found += [document for document in yaml.safe_load_all(text) if document]
    return found


def defaults() -> Document:
    found: Document = yaml.safe_load((CHART / "values.yaml").read_text())
    return found


def manifests() -> list[Document]:
    """Return the objects of the kustomization with its images, but for the namespace."""
    kustomization = yaml.safe_load((MANIFESTS / "kustomization.yaml").read_text())
    images = {one["name"]: f"{one['newName']}:{one['newTag']}" for one in kustomization["images"]}
    names = sorted(set(kustomization["resources"]) - {"namespace.yaml"})
    found = [document for name in names for document in yaml.safe_load_all((MANIFESTS / name).read_text())]
    for document in found:
        for container in (
            document["spec"]["template"]["spec"]["containers"] if "template" in document.get("spec", {}) else ()
        ):
            container["image"] = images[container["image"]]
    return found


def without_empty_selector(documents: list[Document]) -> list[Document]:
    """Return the objects without the selector of nodes that selects nothing, which the manifests do not have."""
    for document in documents:
        pod = document.get("spec", {}).get("template", {}).get("spec", {})
        if pod.get("nodeSelector") == {}:
            del pod["nodeSelector"]
    return documents


def of_kind(documents: list[Document], kind: str) -> list[Document]:
    return [one for one in documents if one["kind"] == kind]


def test_the_chart_is_as_the_manifests_say() -> None:
    there = {path.relative_to(CHART).as_posix(): path.read_text() for path in CHART.rglob("*") if path.is_file()}
    assert there == write_chart(), "run python -m tools.helm_chart"


def test_the_defaults_give_the_objects_of_the_kustomization() -> None:
    assert without_empty_selector(render(defaults())) == manifests()


def test_every_value_is_used_and_changes_what_it_names() -> None:
    used = {
        name for path in (CHART / "templates").glob("*") for name in re.findall(r"\.Values\.([\w.]+)", path.read_text())
    }
    assert used == {f"{part}.{name}" for part, values in defaults().items() for name in values}
    values = copy.deepcopy(defaults())
    values["server"] |= {
        "image": "r/server@sha256:1",
        "storage": "1Ti",
        "env": [],
        "resources": {"limits": {"cpu": "2"}},
    }
    values["agent"] |= {"image": "r/agent:2", "tokenSecret": "other", "nodeSelector": {"gpu": "yes: it has"}}
    values["role"] |= {"user": "ann"}
    found = render(values)
    server = of_kind(found, "Deployment")[0]["spec"]["template"]["spec"]["containers"][0]
    assert (server["image"], server["env"], server["resources"]) == ("r/server@sha256:1", [], {"limits": {"cpu": "2"}})
    assert of_kind(found, "PersistentVolumeClaim")[0]["spec"]["resources"]["requests"] == {"storage": "1Ti"}
    pod = of_kind(found, "DaemonSet")[0]["spec"]["template"]["spec"]
    assert (pod["containers"][0]["image"], pod["nodeSelector"]) == ("r/agent:2", {"gpu": "yes: it has"})
    assert [one["secret"]["secretName"] for one in pod["volumes"] if "secret" in one] == ["other"]
    assert of_kind(found, "RoleBinding")[0]["subjects"][0]["name"] == "ann"


@pytest.mark.parametrize(("part", "kinds"), [("agent", {"DaemonSet"}), ("role", {"Role", "RoleBinding"})])
def test_a_part_can_be_left_out(part: str, kinds: set[str]) -> None:
    values = defaults()
    values[part]["enabled"] = False
    assert {one["kind"] for one in render(defaults())} - {one["kind"] for one in render(values)} == kinds


def test_a_manifest_that_lost_its_place_is_an_error() -> None:
    with pytest.raises(ValueError, match="stands 0 times"):
        substitute("image: other\n", (Substitution("image: prony-server", "x"),))
    with pytest.raises(ValueError, match="stands 2 times"):
        substitute("a a", (Substitution("a", "x"),))


def test_helm_renders_the_chart_as_the_test_does(tmp_path: Path) -> None:
    helm = shutil.which("helm")
    if helm is None:
        lack("helm", "helm is not installed")
    command = [helm, "template", "prony", str(CHART), "--namespace", "prony"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    found = [document for document in yaml.safe_load_all(done.stdout) if document]

    def key(document: Document) -> tuple[str, str]:
        return document["kind"], document["metadata"]["name"]

    assert sorted(found, key=key) == sorted(render(defaults()), key=key)
