"""Bring images to this machine: pull each once, from a mirror where one is set, and run it by its digest."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from filelock import FileLock

from prony.errors import CapacityError, InputError, StoreError
from prony.model.container import ENGINES, POD
from prony.runner.checksum import sha256_of
from prony.runner.containers import ContainerEngine, image_uri, is_image_file

MIRRORS_VARIABLE = "PRONY_CONTAINER_MIRRORS"
_HUB = "docker.io"
_LOADED = re.compile(r"^Loaded image[^:]*:\s*(\S+)\s*$", re.MULTILINE)
_OWN_DIGEST = re.compile(r"sha256:([0-9a-f]{64})")


@dataclass(frozen=True)
class ReadyImage:
    """An image that is on this machine: what the engine is told to run, and which bytes these are, where it says."""

    reference: str
    digest: str | None


def prepare_image(
    engine: ContainerEngine,
    image: str,
    cache: Path,
    environment: Mapping[str, str] = os.environ,
    *,
    digest: str | None = None,
) -> ReadyImage:
    """Return an image that can be run here; one that is not here is pulled, while others that need it wait.

    With a `digest`, it is just that image which the name meant when the digest was written down, and no other.

    Raises:
        CapacityError: it is neither here nor can it be had.
        InputError: the map of mirrors is wrong.
    """
    if digest is None:
        return _bring(engine, image, cache, environment)
    if engine.name == POD or not _OWN_DIGEST.fullmatch(digest):  # a registry knows it by this
        return _bring(engine, digest, cache, environment)
    found = _find_kept(engine, digest, cache / "images") or _bring(engine, image, cache, environment)
    if found.digest != digest:
        raise CapacityError(
            f"image {image} is now {found.digest or 'another'} here, and the earlier run used {digest}",
            hint="bring that image here, or measure the new one: prony run RECIPE",
            code="no_image",
        )
    return found


def _find_kept(engine: ContainerEngine, digest: str, folder: Path) -> ReadyImage | None:
    """Return an image that this machine alone knows by a digest, if it has it."""
    if engine.name in ENGINES:
        return ReadyImage(digest, digest) if engine.digest_of_image(digest) is not None else None
    path = folder / f"{digest.removeprefix('sha256:')}.sif"
    return ReadyImage(str(path), digest) if path.exists() else None


def _bring(engine: ContainerEngine, image: str, cache: Path, environment: Mapping[str, str]) -> ReadyImage:
    if engine.name == POD:  # the cluster brought it before the pod began
        return ReadyImage(image, None)
    if engine.name in ENGINES and image.endswith(".tar") and Path(image).is_file():
        return _load_file(engine, Path(image), cache / "images")
    if is_image_file(image):
        return ReadyImage(image, engine.digest_of_image(image))
    if engine.name in ENGINES:
        return _bring_to_engine(engine, image, find_mirror(image, (".tar",), environment), cache / "images")
    return _bring_to_file(engine, image, find_mirror(image, (".sif", ".tar"), environment), cache / "images")


def _bring_to_engine(engine: ContainerEngine, image: str, source: str, folder: Path) -> ReadyImage:
    """Have podman or docker keep it. A file has the image's own name inside, a mirror's image the mirror's."""
    name = image if is_image_file(source) else source
    digest = engine.digest_of_image(name)
    if digest is None:
        with _hold_lock(folder, name):
            digest = engine.digest_of_image(name)  # another may have pulled it while this one waited
            if digest is None:
                words = ["load", "--input", source] if is_image_file(source) else ["pull", source]
                _run_engine(engine, words, image)
                digest = engine.digest_of_image(name)
    return ReadyImage(digest or name, digest)


def _load_file(engine: ContainerEngine, path: Path, folder: Path) -> ReadyImage:
    """Have podman or docker read a file, and run the image by its own digest: its name inside may come to mean another.
    A note says which image a file was, as long as nobody has written to it."""
    state = path.stat()
    note = folder / f"{image_file_name(str(path.resolve()))}-{state.st_size}-{state.st_mtime_ns}.{engine.name}"
    with _hold_lock(folder, str(path.resolve())):
        kept = note.read_text() if note.exists() else ""
        if not kept or engine.digest_of_image(kept) is None:
            said = _run_engine(engine, ["load", "--input", str(path)], str(path))
            names = _LOADED.findall(said)
            kept = engine.id_of_image(names[-1]) or "" if names else ""
            if not kept:
                raise CapacityError(
                    f"{engine.name} loaded no image from {path}: {said[:300]}", code="no_image",
                    hint=f"write the file with {engine.name} save --output {path.name} IMAGE",
                )  # fmt: skip
            note.write_text(kept)
    return ReadyImage(kept, kept)


def _bring_to_file(engine: ContainerEngine, image: str, source: str, folder: Path) -> ReadyImage:
    """Have Apptainer write it as a file, named by its checksum; a note says which one a name means."""
    if own := _OWN_DIGEST.fullmatch(image):
        return _find_file(folder, own[1], image)
    if source.endswith(".sif"):
        return ReadyImage(source, engine.digest_of_image(source))
    note = folder / f"{image_file_name(source)}.digest"
    with _hold_lock(folder, source):
        if not note.exists():
            part = folder / f".{note.stem}.part.sif"
            part.unlink(missing_ok=True)
            is_archive = is_image_file(source)
            words = ["build", str(part), f"docker-archive://{source}"] if is_archive else [
                "pull", str(part), image_uri(source)]  # fmt: skip
            _run_engine(engine, words, image)
            digest = sha256_of(part)
            part.replace(folder / f"{digest}.sif")
            note.write_text(digest)
        return _find_file(folder, note.read_text(), image)


def _find_file(folder: Path, digest: str, image: str) -> ReadyImage:
    path = folder / f"{digest}.sif"
    if not path.exists():
        raise CapacityError(
            f"image {image} is not in {folder}", hint="name it as in a registry, so that it is pulled", code="no_image"
        )
    return ReadyImage(str(path), f"sha256:{digest}")


def find_mirror(image: str, endings: Sequence[str], environment: Mapping[str, str]) -> str:
    """Return what is pulled for an image: itself, its name at the mirror of its registry, or a file of a folder with
    one of these endings.

    Raises:
        InputError: the map is not written as pairs.
        CapacityError: the folder has no file of this image.
    """
    registry, path = split_image(image)
    mirror = _read_mirrors(environment.get(MIRRORS_VARIABLE, "")).get(registry)
    if mirror is None or _OWN_DIGEST.fullmatch(image):
        return image
    if not mirror.startswith(("/", "~")):
        return f"{mirror.rstrip('/')}/{path}"
    names = [image_file_name(one) for one in (image, f"{registry}/{path}", path)]
    tried = [Path(mirror).expanduser() / f"{name}{ending}" for name in names for ending in endings]
    for file in tried:
        if file.exists():
            return str(file)
    raise CapacityError(
        f"image {image} is not in the folder {mirror}, the mirror of {registry} in {MIRRORS_VARIABLE}",
        hint=f"put it there as {tried[0].name}",
        code="no_image",
    )


def split_image(image: str) -> tuple[str, str]:
    """Return the registry of an image and its name there, as docker reads them."""
    first, slash, rest = image.partition("/")
    if slash and (first == "localhost" or "." in first or ":" in first):
        return first, rest
    return _HUB, image if slash else f"library/{image}"


def image_file_name(image: str) -> str:
    """Return how a file of an image is called, without its ending."""
    return "".join(letter if letter.isalnum() else "-" for letter in image)


def _read_mirrors(text: str) -> dict[str, str]:
    pairs = [pair.strip().partition("=") for pair in text.split(",") if pair.strip()]
    if wrong := [name for name, equals, mirror in pairs if not (name and equals and mirror)]:
        raise InputError(
            f"{MIRRORS_VARIABLE}: {wrong[0]!r} has no mirror", hint="write docker.io=mirror.example:5000, or a folder"
        )
    return {name.strip(): mirror.strip() for name, _, mirror in pairs}


def _run_engine(engine: ContainerEngine, words: Sequence[str], image: str) -> str:
    """Return what the engine says, where it does as it is told."""
    done = subprocess.run(
        [engine.path, *words], stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace", check=False
    )
    if done.returncode:
        said = (done.stderr.strip() or done.stdout.strip() or f"exit code {done.returncode}").splitlines()[-1]
        raise CapacityError(
            f"{engine.name} could not get image {image}: {said[:300]}",
            hint=f"try: {engine.name} {' '.join(words)}; without a network, set containers.mirrors",
            code="no_image",
        )
    return done.stdout


@contextmanager
def _hold_lock(folder: Path, name: str) -> Iterator[None]:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        lock = FileLock(folder / f"{image_file_name(name)}.lock", thread_local=False, fallback_to_soft=False)
        lock.acquire()
    except OSError as exc:
        raise StoreError(
            f"cannot write to {folder}: {exc.strerror}", hint="set PRONY_HOME to a writable folder"
        ) from exc
    try:
        yield
    finally:
        lock.release()
