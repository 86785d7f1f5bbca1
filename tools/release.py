"""Build every file of a release twice from the last commit, compare them byte for byte, and write their checksums.

`python -m tools.release --builder PYTHON OUT`: PYTHON has build, setuptools and mkdocs (`make release` sees to it).
Each time the commit is cloned into another folder and built under another umask, time zone, locale and hash seed:
web pages, documentation, completions and man pages, source archives, wheels of those, and the bill of materials.
A commit with a tag v* is refused while deploy/ names an image without its digest.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from tools.image_bases import describe_unpinned
from tools.normalise_archives import normalise_archive

ROOT = Path(__file__).parents[1]
PACKAGES = (".", "packages/prony-emit")
CHECKSUMS = "SHA256SUMS"


@dataclass(frozen=True)
class Surroundings:
    """What may differ between two builds, and must not show in what they make."""

    folder: str
    umask: int
    variables: Mapping[str, str]


TWICE = (
    Surroundings("a", 0o022, {"TZ": "UTC", "LC_ALL": "C", "PYTHONHASHSEED": "1"}),
    Surroundings("another/place", 0o077, {"TZ": "Asia/Tokyo", "LC_ALL": "C.UTF-8", "PYTHONHASHSEED": "2"}),
)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--builder", type=Path, required=True, help="Python with build, setuptools and mkdocs")
    parser.add_argument("out", type=Path)
    options = parser.parse_args()
    if _git("status", "--porcelain", "--untracked-files=no"):
        print("error: there are changes that are not committed; a release is built from a commit", file=sys.stderr)
        return 2
    unpinned = describe_unpinned(ROOT)
    if unpinned and (tags := _git("tag", "--points-at", "HEAD", "v*")):
        print(f"error: {tags} is a release, and images are named {unpinned}", file=sys.stderr)
        return 2
    commit = _git("rev-parse", "HEAD")  # asked once: somebody may commit during the minutes that a build takes
    with tempfile.TemporaryDirectory(prefix="prony-release-") as scratch:
        made = [build_release(commit, Path(scratch, one.folder), options.builder.absolute(), one) for one in TWICE]
        differing = compare_folders(*made)
        if differing:
            print(f"error: two builds differ in {', '.join(differing)}", file=sys.stderr)
            return 1
        shutil.rmtree(options.out, ignore_errors=True)
        shutil.copytree(made[0], options.out)
    print((options.out / CHECKSUMS).read_text(), end="")
    for path in sorted(options.out.iterdir()):
        print(f"{path.stat().st_size:>10,} bytes  {path.name}")
    print(f"built twice from {commit[:12]}: the same, byte for byte")
    if unpinned:
        print(f"warning: no tag is on this commit, so images may be {unpinned}")
    return 0


def build_release(commit: str, place: Path, builder: Path, around: Surroundings) -> Path:
    """Clone a commit into a folder, build everything there, and return the folder of what was made."""
    source, made = place / "source", place / "made"
    epoch = _git("log", "-1", "--format=%ct", commit)
    own = {"SOURCE_DATE_EPOCH": epoch, "PYTHONPATH": f"{source}{os.pathsep}{source / 'src'}"}
    environment = {**os.environ, **own, **around.variables}

    def run(*words: str | Path, cwd: Path = source) -> None:
        subprocess.run([str(word) for word in words], cwd=cwd, env=environment, umask=around.umask, check=True)

    place.mkdir(parents=True)
    made.mkdir()
    run("git", "clone", "--quiet", "--no-hardlinks", "--no-checkout", ROOT, source, cwd=place)
    run("git", "checkout", "--quiet", "--detach", commit)
    (source / "ui" / "node_modules").symlink_to(ROOT / "ui" / "node_modules")
    run("npm", "run", "--silent", "build", "--", "--logLevel", "error", cwd=source / "ui")
    run(sys.executable, "-m", "tools.shell_files", "share")
    for package in PACKAGES:
        run(builder, "-m", "build", "--quiet", "--no-isolation", "--outdir", made, package)
    for path in made.iterdir():
        normalise_archive(path, int(epoch))
    version = next(made.glob("prony-*.tar.gz")).name.removeprefix("prony-").removesuffix(".tar.gz")
    run(sys.executable, "-m", "tools.sbom", made / f"prony-{version}.cdx.json")
    _write_checksums(made)
    return made


def compare_folders(one: Path, other: Path) -> list[str]:
    """Return the names of the files that are not the same in both."""
    names = {path.name for folder in (one, other) for path in folder.iterdir()}
    return sorted(name for name in names if _bytes_of(one / name) != _bytes_of(other / name))


def _bytes_of(path: Path) -> bytes | None:
    return path.read_bytes() if path.is_file() else None


def _write_checksums(folder: Path) -> None:
    """Write a list that `sha256sum --check` reads."""
    files = sorted(path for path in folder.iterdir() if path.name != CHECKSUMS)
    lines = [f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.name}\n" for path in files]
    (folder / CHECKSUMS).write_text("".join(lines))


def _git(*words: str) -> str:
    return subprocess.run(["git", *words], cwd=ROOT, capture_output=True, text=True, check=True).stdout.strip()


if __name__ == "__main__":
    sys.exit(main())
