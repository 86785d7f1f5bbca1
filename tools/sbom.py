"""Write the bill of materials of a release: CycloneDX 1.6, from the metadata of what is installed here.

`python -m tools.sbom FILE` lists Prony, the Python packages that its extra `all` requires, as they are installed in
this environment, and the JavaScript packages that are built into the web pages, as ui/package-lock.json names them.
"""

from __future__ import annotations

import base64
import json
import os
import platform
import sys
import uuid
from collections.abc import Iterator
from datetime import UTC, datetime
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path
from typing import Any
from urllib.parse import quote

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

LOCK = Path(__file__).parents[1] / "ui" / "package-lock.json"
ROOT_PACKAGE, ROOT_EXTRA = "prony", "all"
_OSI = "License :: OSI Approved :: "

Document = dict[str, Any]


def main() -> int:
    epoch = int(os.environ.get("SOURCE_DATE_EPOCH", "0"))
    bill = bill_of_materials(datetime.fromtimestamp(epoch, UTC), json.loads(LOCK.read_text()))
    Path(sys.argv[1]).write_text(json.dumps(bill, indent=1) + "\n")
    print(f"{len(bill['components'])} components in {sys.argv[1]}")
    return 0


def bill_of_materials(at: datetime, lock: Document) -> Document:
    """Return the document; the same input gives the same one, its serial number with it."""
    found = installed_closure(ROOT_PACKAGE, ROOT_EXTRA)
    root = _python_component(found.pop(ROOT_PACKAGE)[0])
    components = [_python_component(one) for one, _ in found.values()] + list(_npm_components(lock))
    components.sort(key=lambda one: one["purl"])
    body = {
        "metadata": {
            "timestamp": at.strftime("%Y-%m-%dT%H:%M:%SZ"),
            "component": root | {"type": "application"},
            "properties": [
                {"name": "prony:python", "value": platform.python_version()},
                {"name": "prony:platform", "value": f"{platform.system()} {platform.machine()}"},
            ],
        },
        "components": components,
        "dependencies": _dependencies(),
    }
    serial = uuid.uuid5(uuid.NAMESPACE_URL, json.dumps(body, sort_keys=True))
    head = {"bomFormat": "CycloneDX", "specVersion": "1.6", "serialNumber": f"urn:uuid:{serial}", "version": 1}
    return head | body


def installed_closure(name: str, extra: str) -> dict[str, tuple[Distribution, set[str]]]:
    """Return what a package requires, and what that requires, each with the names that it requires itself."""
    found: dict[str, tuple[Distribution, set[str]]] = {}
    waiting = [(name, frozenset({extra}))]
    seen = set()
    while waiting:
        asked = waiting.pop()
        if asked in seen:
            continue
        seen.add(asked)
        try:
            here = distribution(asked[0])
        except PackageNotFoundError:  # wanted on another system than this
            continue
        wanted = list(_requirements(here, asked[1]))
        _, names = found.setdefault(asked[0], (here, set()))
        names |= {one for one, _ in wanted} - {asked[0]}
        waiting += wanted
    return found


def _requirements(here: Distribution, extras: frozenset[str]) -> Iterator[tuple[str, frozenset[str]]]:
    for text in here.requires or ():
        one = Requirement(text)
        if one.marker is None or any(one.marker.evaluate({"extra": extra}) for extra in extras | {""}):
            yield canonicalize_name(one.name), frozenset(one.extras)


def _dependencies() -> list[Document]:
    found = installed_closure(ROOT_PACKAGE, ROOT_EXTRA)
    ref = {name: _python_purl(one) for name, (one, _) in found.items()}
    edges = [
        {"ref": ref[name], "dependsOn": sorted(ref[one] for one in names if one in ref)}
        for name, (_, names) in found.items()
    ]
    return sorted(edges, key=lambda one: str(one["ref"]))


def _python_purl(one: Distribution) -> str:
    return f"pkg:pypi/{canonicalize_name(one.name)}@{quote(one.version)}"


def _python_component(one: Distribution) -> Document:
    purl = _python_purl(one)
    made: Document = {"type": "library", "bom-ref": purl, "name": one.name, "version": one.version, "purl": purl}
    return made | _python_licence(one)


def _python_licence(one: Distribution) -> Document:
    """Return what the metadata says of the licence, in the most exact of its three ways."""
    expression = _first(one, "License-Expression")
    if expression:
        return {"licenses": [{"expression": expression}]}
    named = [text.removeprefix(_OSI) for text in one.metadata.get_all("Classifier") or () if text.startswith(_OSI)]
    text = _first(one, "License").strip()
    if not named and text and "\n" not in text:  # some have the whole licence there
        named = [text]
    return {"licenses": [{"license": {"name": name}} for name in named]} if named else {}


def _first(one: Distribution, field: str) -> str:
    return next(iter(one.metadata.get_all(field) or ()), "")


def _npm_components(lock: Document) -> Iterator[Document]:
    """Yield what is built into the pages; what only builds or tests them is marked as `dev` in the list."""
    for place, one in lock["packages"].items():
        if not place or one.get("dev") or one.get("devOptional"):
            continue
        name = place.rpartition("node_modules/")[2]
        purl = f"pkg:npm/{quote(name, safe='/')}@{one['version']}"
        made: Document = {"type": "library", "bom-ref": purl, "name": name, "version": one["version"], "purl": purl}
        kind, _, digest = one.get("integrity", "").partition("-")
        if kind == "sha512":
            made["hashes"] = [{"alg": "SHA-512", "content": base64.b64decode(digest).hex()}]
        yield made | ({"licenses": [{"expression": one["license"]}]} if "license" in one else {})


if __name__ == "__main__":
    sys.exit(main())
