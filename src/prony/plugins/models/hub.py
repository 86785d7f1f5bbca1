"""Model source for `hf:org/name@revision`: a repository of a Hugging Face hub, or a file in it.

The variables are those that the hub's own programs read: HF_TOKEN, HF_ENDPOINT for another hub than huggingface.co, and
HF_HUB_OFFLINE to use what lies in the cache without asking.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar
from urllib.parse import quote, unquote

from prony.errors import InputError, NotFoundError, PronyError, StoreError, TransportError
from prony.plugins.models.fetching import Fetching, NetworkSource
from prony.plugins.models.formats import check_ending, companion_names
from prony.plugins.models.lock import hold_lock
from prony.plugins.models.transfer import TransferLimits, check_size, download
from prony.ports.models import FOLDER, FOLDER_MARKS, FetchOptions, ModelFiles, Progress, find_folder_formats
from prony.runner.checksum import sha256_of, verify
from prony.runner.onnx_file import is_inside

_REFERENCE = re.compile(r"hf:([\w-][\w.-]*/[\w-][\w.-]*)(?:@([^/@\s]{1,200}))?(?:/([^\s].*))?", re.ASCII)
_COMMIT = re.compile("[0-9a-f]{40}")
_SPLIT = re.compile(r"-\d{5}-of-(\d{5})\.gguf$")
# Of the same weights in several formats, a folder takes the first that is there.
_WEIGHTS = (".safetensors", ".bin", ".pt", ".pth", ".h5", ".msgpack", ".ot", ".onnx", ".gguf", ".tflite")


@dataclass(frozen=True)
class HubReference:
    """`path` is a file or folder in the repository; empty: the repository itself."""

    repo: str
    revision: str
    path: str

    @classmethod
    def parse(cls, text: str) -> HubReference:
        match = _REFERENCE.fullmatch(text)
        path = unquote(match[3] or "").rstrip("/") if match else ""
        if match is None or (path and (not is_inside(path) or "\\" in path)):
            raise InputError(
                f"{text!r} is not a model on a hub",
                hint="write hf:ORG/NAME@REVISION or hf:ORG/NAME@REVISION/FILE; a / in a revision is written %2F",
            )
        return cls(match[1], unquote(match[2] or "main"), path)

    def at(self, revision: str) -> str:
        """Return the reference with another revision."""
        return f"hf:{self.repo}@{quote(revision, safe='')}{f'/{quote(self.path)}' if self.path else ''}"

    def __str__(self) -> str:
        return self.at(self.revision)


@dataclass(frozen=True)
class Hub:
    """Where repositories are, and who asks."""

    endpoint: str
    token: str = ""
    is_offline: bool = False

    @classmethod
    def of(cls, environment: Mapping[str, str]) -> Hub:
        return cls(
            endpoint=(environment.get("HF_ENDPOINT") or "https://huggingface.co").rstrip("/"),
            token=environment.get("HF_TOKEN", "").strip(),
            is_offline=environment.get("HF_HUB_OFFLINE", "").upper() in ("1", "ON", "YES", "TRUE"),
        )

    def listing_url(self, wanted: HubReference) -> str:
        return f"{self.endpoint}/api/models/{wanted.repo}/revision/{quote(wanted.revision, safe='')}?blobs=true"

    def file_url(self, repo: str, commit: str, name: str) -> str:
        return f"{self.endpoint}/{repo}/resolve/{commit}/{quote(name)}"

    def headers(self, url: str) -> Mapping[str, str]:
        """Return the token for an address of this hub; where it sends us for the bytes, nobody is told who asks."""
        is_own = url.startswith(f"{self.endpoint}/")
        return {"Authorization": f"Bearer {self.token}"} if self.token and is_own else {}


@dataclass(frozen=True)
class HubFile:
    """`blob_id` is git's own hash of a file that is stored in git; large files have a SHA-256 instead."""

    name: str
    size: int
    sha256: str
    blob_id: str

    def is_content(self, path: Path) -> bool:
        """Tell whether these are the bytes that the hub listed."""
        if path.stat().st_size != self.size:
            return False
        return sha256_of(path) == self.sha256 if self.sha256 else _hash_as_git(path) == self.blob_id


@dataclass(frozen=True)
class RepoSnapshot:
    """A repository at one commit."""

    commit: str
    files: tuple[HubFile, ...]

    @classmethod
    def parse(cls, answer: bytes, wanted: HubReference) -> RepoSnapshot:
        try:
            document = json.loads(answer)
            files = tuple(map(_read_sibling, document["siblings"]))
            commit = str(document["sha"])
        except (ValueError, KeyError, TypeError) as exc:
            raise TransportError(
                f"the file list of {wanted} is not valid: {exc!r}", hint="check HF_ENDPOINT", code="bad_status"
            ) from exc
        if not _COMMIT.fullmatch(commit) or not all(is_inside(one.name) and "\\" not in one.name for one in files):
            raise InputError(f"the file list of {wanted} has an invalid commit or file name", hint="check HF_ENDPOINT")
        return cls(commit, files)

    def find(self, name: str) -> HubFile:
        for one in self.files:
            if one.name == name:
                return one
        raise NotFoundError(
            f"the model has its weights in {name}, which is not in the repository",
            hint="choose another file of it", code="missing_weights",
        )  # fmt: skip

    def choose(self, wanted: HubReference, formats: tuple[str, ...]) -> tuple[str, list[HubFile]]:
        """Return where the model is below the repository, empty for all of it, and the files that it needs."""
        if not wanted.path:
            top = [one for one in self.files if "/" not in one.name and not one.name.startswith(".")]
            kinds = [kind for kind in find_folder_formats({one.name for one in top}) if kind in formats]
            if kinds:
                return "", _drop_other_weights(top) if kinds[0] == FOLDER else top
            name = self._only_model(wanted, formats)
            return name, self._parts(name)
        if any(one.name == wanted.path for one in self.files):
            check_ending(wanted.path, tuple(one for one in formats if one not in FOLDER_MARKS))
            return wanted.path, self._parts(wanted.path)
        below = [one for one in self.files if one.name.startswith(f"{wanted.path}/")]
        if not below:
            raise NotFoundError(f"{wanted} does not exist", hint=self._describe(formats), code="unknown_model")
        if formats and not set(FOLDER_MARKS) & set(formats):
            check_ending(wanted.path, formats)
        return wanted.path, below

    def _parts(self, name: str) -> list[HubFile]:
        """Return a file, or all parts of a GGUF that was split."""
        match = _SPLIT.search(name)
        stem = name[: match.start()] if match else ""
        others = [one for one in self.files if match and _is_part(one.name, stem, match[1]) and one.name != name]
        return [self.find(name), *others]

    def _only_model(self, wanted: HubReference, formats: tuple[str, ...]) -> str:
        fitting = self._fitting(formats)
        if len(fitting) != 1:
            what = "several models" if fitting else "no model that the chosen engine loads"
            raise InputError(f"{wanted} has {what}", hint=self._describe(formats), code="format_unavailable")
        return fitting[0]

    def _fitting(self, formats: tuple[str, ...]) -> list[str]:
        endings = tuple(one for one in formats if one not in FOLDER_MARKS) or _WEIGHTS
        return [one.name for one in self.files if one.name.lower().endswith(endings)]

    def _describe(self, formats: tuple[str, ...]) -> str:
        names = self._fitting(formats)
        more = f" and {len(names) - 6} more" if len(names) > 6 else ""
        return (
            f"choose one of its files: {', '.join(names[:6])}{more}" if names else "choose another repository or engine"
        )


@dataclass(frozen=True)
class HubFetch:
    """One reference on its way: `hub/REPOSITORY/COMMIT/` of the cache holds checked files, `revisions/` the lists."""

    wanted: HubReference
    hub: Hub
    fetching: Fetching

    @property
    def root(self) -> Path:
        """The repository's folder in the cache; another hub has another one."""
        mark = hashlib.sha256(self.hub.endpoint.encode()).hexdigest()[:8]
        return self.fetching.options.cache / "hub" / f"{self.wanted.repo.replace('/', '--')}-{mark}"

    def files(self) -> ModelFiles:
        options, wanted, root = self.fetching.options, self.wanted, self.root
        with hold_lock(root.with_name(f"{root.name}.lock")):
            try:
                snapshot = self._resolve()
                place, chosen = snapshot.choose(wanted, options.formats)
                files = tuple(self._bring_all(root / snapshot.commit, snapshot, chosen))
            except OSError as exc:
                raise self._cannot_store(exc) from exc
        verify(files, options.checksum, source=str(wanted))
        resolved = replace(wanted, path=place).at(snapshot.commit)
        return ModelFiles(path=root / snapshot.commit / place, files=files, source=resolved)

    def look_up(self) -> None:
        """Ask the hub for the list of files, and choose among them."""
        with hold_lock(self.root.with_name(f"{self.root.name}.lock")):
            try:
                self._resolve().choose(self.wanted, self.fetching.options.formats)
            except OSError as exc:
                raise self._cannot_store(exc) from exc

    def _cannot_store(self, exc: OSError) -> StoreError:
        return StoreError(f"cannot store {self.wanted} in {self.root}: {exc}", hint="check the free disk space")

    def _resolve(self) -> RepoSnapshot:
        """Return the commit that the revision means now; a commit that is known already is not asked for again."""
        note = _note_of(self.root, self.wanted.revision)
        if note.is_file() and (self.hub.is_offline or _COMMIT.fullmatch(self.wanted.revision)):
            return RepoSnapshot.parse(note.read_bytes(), self.wanted)
        if self.hub.is_offline:
            raise NotFoundError(
                f"{self.wanted} is not in the cache, and HF_HUB_OFFLINE is set",
                hint="fetch it once without HF_HUB_OFFLINE", code="unknown_model",
            )  # fmt: skip
        note.parent.mkdir(parents=True, exist_ok=True)
        answer = self.root / "answer.json"
        answer.unlink(missing_ok=True)
        limits = replace(self.fetching.limits(), headers=self.hub.headers, done=lambda *_: None)
        self._ask(self.hub.listing_url(self.wanted), answer, limits)
        snapshot = RepoSnapshot.parse(answer.read_bytes(), self.wanted)
        _note_of(self.root, snapshot.commit).write_bytes(answer.read_bytes())
        answer.replace(note)
        return snapshot

    def _ask(self, url: str, path: Path, limits: TransferLimits) -> None:
        """Bring what the hub answers, and say in the reference's own words what it refuses."""
        try:
            download(url, path, limits)
        except NotFoundError as exc:
            raise NotFoundError(
                f"{self.hub.endpoint} has no {self.wanted}", hint="check its name and revision", code="unknown_model"
            ) from exc
        except InputError as exc:
            if exc.code != "no_access":
                raise
            raise InputError(
                f"{self.wanted} does not exist, or needs an account: {exc.message}",
                hint="set HF_TOKEN to the token of an account that may read it, and accept its terms on the hub",
                code="no_access",
            ) from exc
        except TransportError as exc:
            raise TransportError(exc.message, hint=self._offline_hint() or exc.hint, code=exc.code) from exc

    def _offline_hint(self) -> str:
        note = _note_of(self.root, self.wanted.revision)
        if not note.is_file():
            return ""
        try:
            snapshot = RepoSnapshot.parse(note.read_bytes(), self.wanted)
            is_whole = self._is_whole(snapshot)
        except (PronyError, OSError):  # it names no model that is here
            return ""
        return f"HF_HUB_OFFLINE=1 uses the cached version: commit {snapshot.commit}" if is_whole else ""

    def _is_whole(self, snapshot: RepoSnapshot) -> bool:
        """Tell whether every file that the model needs was fetched."""
        folder = self.root / snapshot.commit
        _, chosen = snapshot.choose(self.wanted, self.fetching.options.formats)
        return all(_is_here(folder, one) for one in chosen) and all(
            _is_here(folder, one) for one in _named_beside(folder, snapshot, chosen)
        )

    def _bring_all(self, folder: Path, snapshot: RepoSnapshot, chosen: Sequence[HubFile]) -> Iterator[Path]:
        """Bring the chosen files, and then what the only one of them names; sizes are told and checked before."""
        total = sum(one.size for one in chosen)
        check_size(str(self.wanted), total, self.fetching.limits())
        if any(not _is_here(folder, one) for one in chosen):
            self.fetching.progress(0, total)
        for one in chosen:
            yield self._bring(folder, snapshot.commit, one, total)
        beside = _named_beside(folder, snapshot, chosen)
        total += sum(one.size for one in beside)
        for one in beside:
            yield self._bring(folder, snapshot.commit, one, total)

    def _bring(self, folder: Path, commit: str, one: HubFile, total: int) -> Path:
        path, spent = folder / one.name, self.fetching.spent
        if not _is_here(folder, one):
            path.parent.mkdir(parents=True, exist_ok=True)
            part = path.with_name(f".{path.name}.part")
            self._download(commit, one, part, lambda size, _: self.fetching.progress(spent + size, total))
            part.replace(path)
        self.fetching.spent += one.size
        self.fetching.progress(self.fetching.spent, total)
        return path

    def _download(self, commit: str, one: HubFile, part: Path, done: Callable[[int, int | None], None]) -> None:
        if self.hub.is_offline:
            raise NotFoundError(
                f"{one.name} of {self.wanted} is not in the cache, and HF_HUB_OFFLINE is set",
                hint="fetch it once without HF_HUB_OFFLINE", code="unknown_model",
            )  # fmt: skip
        limits = replace(self.fetching.limits(), headers=self.hub.headers, done=done, is_checked=True)
        self._ask(self.hub.file_url(self.wanted.repo, commit, one.name), part, limits)
        if not one.is_content(part):
            part.unlink()
            raise TransportError(
                f"{one.name} of {self.wanted} differs from what the hub lists",
                hint="try again, and check whether HF_ENDPOINT is an outdated mirror", code="checksum_mismatch",
            )  # fmt: skip


class HubSource(NetworkSource):
    """A folder in Hugging Face's layout, or one file, at a revision that is resolved to a commit."""

    scheme: ClassVar[str] = "hf"

    def fetch(self, reference: str, options: FetchOptions, progress: Progress) -> ModelFiles:
        fetching = self.begin(download, options, progress)
        return HubFetch(HubReference.parse(reference), Hub.of(os.environ), fetching).files()

    def look_up(self, reference: str, options: FetchOptions) -> None:
        fetching = self.begin(download, options, lambda *_: None)
        HubFetch(HubReference.parse(reference), Hub.of(os.environ), fetching).look_up()


def _read_sibling(entry: Mapping[str, Any]) -> HubFile:
    large = entry.get("lfs") or {}
    sha256, blob_id = str(large.get("sha256", "")), str(entry.get("blobId") or "")
    if not sha256 and not blob_id:
        raise KeyError("blobId")
    return HubFile(str(entry["rfilename"]), int(entry["size"]), sha256, blob_id)


def _drop_other_weights(files: Sequence[HubFile]) -> list[HubFile]:
    """Leave out the same weights in other formats, and Mistral's copy of them in one file."""
    found = next((ending for ending in _WEIGHTS if any(one.name.endswith(ending) for one in files)), "")
    others = tuple(ending for ending in _WEIGHTS if ending != found)
    kept = [one for one in files if not one.name.endswith(others)]
    has_sharded = any(one.name.startswith("model") and one.name.endswith(found) for one in kept)
    return [one for one in kept if not (has_sharded and one.name.startswith("consolidated"))]


def _named_beside(folder: Path, snapshot: RepoSnapshot, chosen: Sequence[HubFile]) -> list[HubFile]:
    """Return the files that the only chosen one, which is here, names beside itself."""
    named = companion_names(folder / chosen[0].name) if len(chosen) == 1 else ()
    return [snapshot.find((Path(chosen[0].name).parent / name).as_posix()) for name in named]


def _is_here(folder: Path, one: HubFile) -> bool:
    """Tell whether a file was fetched; its content was checked before it got its name."""
    path = folder / one.name
    return path.is_file() and path.stat().st_size == one.size


def _is_part(name: str, stem: str, count: str) -> bool:
    match = _SPLIT.search(name)
    return match is not None and name[: match.start()] == stem and match[1] == count


def _note_of(root: Path, revision: str) -> Path:
    return root / "revisions" / f"{quote(revision, safe='')}.json"


def _hash_as_git(path: Path) -> str:
    digest = hashlib.sha1(f"blob {path.stat().st_size}\0".encode(), usedforsecurity=False)
    with path.open("rb") as stream:
        while block := stream.read(2**20):
            digest.update(block)
    return digest.hexdigest()
