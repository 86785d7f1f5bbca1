"""Write one archive that installs Prony without a network: wheels, documentation, recipes, images and checksums."""

from __future__ import annotations

import hashlib
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path

from prony import __version__
from prony.app.documentation import FOLDER as DOCUMENTATION
from prony.app.documentation import is_built
from prony.errors import CapacityError, ConflictError, InputError
from prony.runner.images import image_file_name

# The tags of the wheels that each platform takes. A newer glibc takes the wheels of every older one.
_GLIBC = ("manylinux2014_{0}", *(f"manylinux_2_{minor}_{{0}}" for minor in range(28, 16, -1)))
PLATFORMS: dict[str, tuple[str, ...]] = {
    "linux-x86_64": tuple(tag.format("x86_64") for tag in _GLIBC),
    "linux-aarch64": tuple(tag.format("aarch64") for tag in _GLIBC),
    "macos-arm64": tuple(f"macosx_{major}_0_{kind}" for major in range(15, 10, -1) for kind in ("arm64", "universal2")),
}
_INSTALLER = "install.sh"
_CHECKSUMS = "SHA256SUMS"
_PYTHONS = "pythons"  # the versions that the wheels are for, one a line: the installer looks for one of them


@dataclass(frozen=True)
class OfflinePlan:
    """What a bundle is for. Without a wheel, Prony itself comes from pip's index too."""

    platforms: tuple[str, ...]
    pythons: tuple[str, ...]
    extras: tuple[str, ...] = ()
    wheel: Path | None = None
    images: tuple[str, ...] = ()

    @property
    def requirement(self) -> str:
        extras = f"[{','.join(self.extras)}]" if self.extras else ""
        return f"{self.wheel.absolute()}{extras}" if self.wheel else f"prony{extras}=={__version__}"


def write_offline_bundle(plan: OfflinePlan, to: Path, say: Callable[[str], None]) -> Path:
    """Write the archive; it appears in one step, whole. Its one folder is named as the file."""
    _check_plan(plan, to)
    with tempfile.TemporaryDirectory(prefix=".prony-bundle-", dir=to.absolute().parent) as scratch:
        folder = Path(scratch, to.name.removesuffix(".tar"))
        (folder / "wheels").mkdir(parents=True)
        for platform in plan.platforms:
            for python in plan.pythons:
                say(f"fetching wheels for Python {python} on {platform}")
                _fetch_wheels(plan.requirement, platform, python, folder / "wheels")
        (folder / _PYTHONS).write_text("".join(f"{python}\n" for python in plan.pythons))
        _copy_texts(folder, say)
        _save_images(plan.images, folder, say)
        _write_sums(folder)
        packed = Path(scratch, "bundle.tar")
        with tarfile.open(packed, "w") as tar:  # wheels are compressed already
            tar.add(folder, arcname=folder.name, filter=_plain_member)
        packed.replace(to)
    return to


def _check_plan(plan: OfflinePlan, to: Path) -> None:
    unknown = [name for name in plan.platforms if name not in PLATFORMS]
    if unknown:
        raise InputError(f"unknown platform: {unknown[0]}", hint=f"known: {', '.join(PLATFORMS)}")
    if not plan.platforms or not plan.pythons:
        raise InputError("a bundle needs a platform and a version of Python", hint="as --platform linux-x86_64")
    odd = next((one for one in plan.pythons if not re.fullmatch(r"3\.\d+", one)), None)
    if odd is not None:
        raise InputError(f"{odd!r} is not a version of Python as a bundle names it", hint="as --python 3.12")
    if plan.wheel is not None and not plan.wheel.is_file():
        raise InputError(f"there is no file {plan.wheel}", hint="make wheel builds one into dist/")
    if to.suffix != ".tar":
        raise InputError(f"{to} does not end in .tar", hint="name it prony-bundle.tar, for example")
    if to.exists():
        raise ConflictError(f"{to} exists already", hint="name another file")
    if not to.absolute().parent.is_dir():
        raise InputError(f"there is no folder {to.absolute().parent}", hint="make it first")


def _fetch_wheels(requirement: str, platform: str, python: str, into: Path) -> None:
    """Let pip choose and fetch; it takes the markers of requirements from the Python that runs it."""
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check"]
    command += ["--only-binary=:all:", "--dest", str(into), "--python-version", python, "--implementation", "cp"]
    command += [word for tag in PLATFORMS[platform] for word in ("--platform", tag)]
    done = subprocess.run(
        [*command, requirement], stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise CapacityError(
            f"pip found no packages for Python {python} on {platform}: {done.stderr.strip()[-300:]}",
            hint="check the network and pip's index; for a Prony that is in no index, name its file: --wheel FILE",
            code="no_packages",
        )


def _copy_texts(folder: Path, say: Callable[[str], None]) -> None:
    package = Path(str(files("prony")))
    installer = folder / _INSTALLER
    shutil.copyfile(package / "app" / _INSTALLER, installer)
    installer.chmod(0o755)
    shutil.copytree(package / "recipe" / "examples", folder / "recipes")
    if is_built():
        shutil.copytree(DOCUMENTATION, folder / "docs")
    else:
        say("the documentation is not in this installation, and so not in the bundle")


def _save_images(images: Sequence[str], folder: Path, say: Callable[[str], None]) -> None:
    if not images:
        return
    engine = shutil.which("podman") or shutil.which("docker")
    if engine is None:
        raise CapacityError(
            "saving images needs a container engine", hint="install podman or docker, or leave out --image",
            code="no_container",
        )  # fmt: skip
    (folder / "images").mkdir()
    for image in images:
        say(f"saving image {image}")
        to = folder / "images" / f"{image_file_name(image)}.tar"
        done = subprocess.run([engine, "save", "--output", str(to), image], capture_output=True, text=True, check=False)
        if done.returncode:
            raise CapacityError(
                f"{engine} could not save {image}: {done.stderr.strip()[-300:]}",
                hint="build or pull the image first", code="no_container",
            )  # fmt: skip


def _write_sums(folder: Path) -> None:
    """Write a list that `sha256sum -c` reads."""
    paths = sorted(path for path in folder.rglob("*") if path.is_file())
    lines = [f"{_hash_file(path)}  {path.relative_to(folder).as_posix()}\n" for path in paths]
    (folder / _CHECKSUMS).write_text("".join(lines), encoding="utf-8")


def _hash_file(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _plain_member(member: tarfile.TarInfo) -> tarfile.TarInfo:
    member.uid = member.gid = 0
    member.uname = member.gname = ""
    return member
