"""The version of a release: write it everywhere, compare it with a tag, and print what changed in it.

`python -m tools.release_version set 0.2.0 --date 2026-12-01` writes the version into every file that has it, and
gives the changes so far their heading. `check v0.2.0` fails where a file has another version than the tag. `notes
v0.2.0` prints the changes of that version.
"""

from __future__ import annotations

import argparse
import re
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
# Each file that has the version, and the pattern around it.
PLACES: dict[str, str] = {
    "pyproject.toml": r'(?m)^(version = ")([^"]+)(")$',
    "packages/prony-emit/pyproject.toml": r'(?m)^(version = ")([^"]+)(")$',
    "src/prony/__init__.py": r'(?m)^(__version__ = ")([^"]+)(")$',
    "CITATION.cff": r"(?m)^(version: )(\S+)()$",
    "deploy/kubernetes/kustomization.yaml": r"(newTag: )([^\s},]+)()",
    "deploy/helm/prony/Chart.yaml": r"(?m)^((?:version|appVersion): )(\S+)()$",
    "deploy/helm/prony/values.yaml": r"(?m)^( +image: \S+:)(\S+)()$",
}
_CHANGES = "CHANGELOG.md"
_UNRELEASED = "## Unreleased\n"
# A version of PEP 440 that is published: numbers, and perhaps a release candidate.
_VERSION = re.compile(r"\d+\.\d+\.\d+(rc\d+)?")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    actions = parser.add_subparsers(dest="action", required=True)
    setting = actions.add_parser("set", help="write a version into every file that has it")
    setting.add_argument("version")
    setting.add_argument("--date", required=True, help="day of the release, as 2026-12-01")
    for name, text in (("check", "compare every file with a tag"), ("notes", "print the changes of a tag")):
        actions.add_parser(name, help=text).add_argument("tag", help="as v0.2.0")
    options = parser.parse_args()
    try:
        if options.action == "set":
            write_version(ROOT, options.version, options.date)
        elif options.action == "check":
            check_version(ROOT, version_of(options.tag))
        else:
            print(read_notes((ROOT / _CHANGES).read_text(), version_of(options.tag)), end="")
    except ValueError as exc:
        print(f"error: {exc}", file=sys.stderr)
        return 2
    return 0


def version_of(tag: str) -> str:
    """Return the version that a tag names."""
    version = tag.removeprefix("refs/tags/").removeprefix("v")
    if not _VERSION.fullmatch(version):
        raise ValueError(f"{tag} is not a version; write v1.2.3 or v1.2.3rc1")
    return version


def write_version(root: Path, version: str, date: str) -> None:
    """Write a version into every place, and give the changes so far its heading."""
    version_of(version)
    changes = (root / _CHANGES).read_text()
    if _UNRELEASED not in changes:
        raise ValueError(f"{_CHANGES} has no heading {_UNRELEASED.strip()}")
    for name, pattern in PLACES.items():
        text, count = re.subn(pattern, rf"\g<1>{version}\g<3>", (root / name).read_text())
        if not count:
            raise ValueError(f"{name} has no version")
        (root / name).write_text(text)
    (root / _CHANGES).write_text(changes.replace(_UNRELEASED, f"{_UNRELEASED}\n## {version} ({date})\n", 1))


def check_version(root: Path, version: str) -> None:
    """Raise where a file has another version, or the changes none."""
    for name, pattern in PLACES.items():
        found = {match[1] for match in re.findall(pattern, (root / name).read_text())}
        if found != {version}:
            raise ValueError(f"{name} has the version {', '.join(sorted(found)) or 'none'}, and the tag {version}")
    read_notes((root / _CHANGES).read_text(), version)


def read_notes(changes: str, version: str) -> str:
    """Return the changes of a version, without its heading."""
    found = re.search(rf"(?ms)^## {re.escape(version)}(?: \([^)\n]*\))?\n(.*?)(?=^## |\Z)", changes)
    if found is None or not found[1].strip():
        raise ValueError(
            f"{_CHANGES} says nothing of {version}; python -m tools.release_version set writes its heading"
        )
    return found[1].strip() + "\n"


if __name__ == "__main__":
    sys.exit(main())
