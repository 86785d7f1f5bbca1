"""Model source port: turn a recipe's model reference into files on disk, within a policy."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, Protocol, runtime_checkable

from prony.errors import InputError

# Called with (bytes done, bytes in all or None) while something long happens.
Progress = Callable[[int, int | None], None]


# What an engine has among its formats that loads a folder with a configuration, weights and a tokenizer.
FOLDER, OPENVINO_FOLDER, GENAI_FOLDER = "folder", "openvino-folder", "genai-folder"
# The file that tells each from the others. Every folder may have the last one.
FOLDER_MARKS = {OPENVINO_FOLDER: "openvino_model.xml", GENAI_FOLDER: "genai_config.json", FOLDER: "config.json"}

# Whether a model may come out of a private network: never, by https alone, or by plain http as well.
PRIVATE_WORDS = ("refuse", "allow", "plain")


@dataclass(frozen=True)
class ModelFiles:
    """A model on disk. `files` holds every file it needs, the main one first. Never written to by a reader.

    `source` is the reference with what it was resolved to, where it may mean another version tomorrow.
    """

    path: Path
    files: tuple[Path, ...]
    source: str = ""


@dataclass(frozen=True)
class ModelPolicy:
    """What may be fetched here. By default everything: who sits at a machine may read its files and its network.

    `schemes` and `folders` are None where any will do. `private` says whether a URL may lead into a private network,
    this machine's own addresses among them, and `private_plain` whether it may do so by plain http.
    """

    schemes: tuple[str, ...] | None = None
    private: bool = True
    private_plain: bool = False
    max_bytes: int | None = None
    folders: tuple[Path, ...] | None = None
    # Local model files up to this size are copied, so that they can be run once more after they were replaced.
    keep_bytes: int = 0

    def variables(self) -> dict[str, str]:
        """Return the environment that hands this policy to `prony exec`; what is not restricted is not in it.

        Raises:
            InputError: A folder's name cannot be written in a list of folders.
        """
        folders = None if self.folders is None else [str(folder.absolute()) for folder in self.folders]
        if folders and any(os.pathsep in folder for folder in folders):
            raise InputError(f"a folder with {os.pathsep!r} in its name cannot be allowed", hint="rename it")
        given = {
            "PRONY_MODEL_SCHEMES": None if self.schemes is None else ",".join(self.schemes),
            "PRONY_MODEL_PRIVATE": _private_word(self),
            "PRONY_MODEL_MAX_BYTES": None if self.max_bytes is None else str(self.max_bytes),
            "PRONY_MODEL_FOLDERS": None if folders is None else os.pathsep.join(folders),
            "PRONY_MODEL_KEEP_BYTES": str(self.keep_bytes) if self.keep_bytes else None,
        }
        return {name: value for name, value in given.items() if value is not None}

    def check_scheme(self, reference: str) -> None:
        """Refuse a reference of a kind that is not allowed.

        Raises:
            InputError: It is refused, with the code `model_refused`.
        """
        scheme = scheme_of(reference)
        if self.schemes is not None and scheme not in self.schemes:
            shown = " and ".join(self.schemes) or "nothing"
            raise policy_error(
                f"{reference} is not fetched here: of all kinds of models, {shown} may be", "--model-schemes"
            )

    def check_path(self, path: Path, named: str) -> None:
        """Refuse a path that lies outside every allowed folder, links followed, in the same words whether it exists.

        Args:
            path: Where it leads from here.
            named: The path as the recipe has it, for the message.

        Raises:
            InputError: It is refused, with the code `path_refused`.
        """
        if self.folders is None:
            return
        try:
            place = path.expanduser().resolve()
            # From Python 3.13 on, links in a circle are no error: they are left in the path.
            is_circle = any(part.is_symlink() for part in (place, *place.parents))
            inside = not is_circle and any(place.is_relative_to(folder.resolve()) for folder in self.folders)
        except (OSError, RuntimeError, ValueError):  # too long, closed, links in a circle, a NUL, no such user
            inside = False
        if not inside:
            raise InputError(
                f"{named} may not be read here: it is outside the allowed folders",
                hint=_how_to_allow("--model-folders FOLDER"),
                code="path_refused",
            )


def _private_word(policy: ModelPolicy) -> str:
    if not policy.private:
        return "refuse"
    return "plain" if policy.private_plain else "allow"


# What an agent allows unless its owner says otherwise: its jobs come from others.
AGENT_POLICY = ModelPolicy(
    schemes=("zoo", "https"), private=False, max_bytes=20 * 2**30, folders=(), keep_bytes=256 * 2**20
)


def policy_of(environment: Mapping[str, str]) -> ModelPolicy:
    """Read the policy that `ModelPolicy.variables` wrote; what cannot be understood is refused, never passed over.

    Raises:
        InputError: A variable is not written as `ModelPolicy.variables` writes it.
    """
    schemes = environment.get("PRONY_MODEL_SCHEMES")
    private = environment.get("PRONY_MODEL_PRIVATE", "allow")
    most = environment.get("PRONY_MODEL_MAX_BYTES")
    folders = environment.get("PRONY_MODEL_FOLDERS")
    if private not in PRIVATE_WORDS:
        raise InputError(f"PRONY_MODEL_PRIVATE is {private!r}", hint="write refuse, allow or plain")
    for name in ("PRONY_MODEL_MAX_BYTES", "PRONY_MODEL_KEEP_BYTES"):
        if not re.fullmatch("[0-9]{1,18}", environment.get(name, "0")):
            raise InputError(f"{name} is {environment[name]!r}", hint="write a number of bytes")
    return ModelPolicy(
        schemes=None if schemes is None else tuple(filter(None, map(str.strip, schemes.split(",")))),
        private=private != "refuse",
        private_plain=private == "plain",
        max_bytes=None if most is None else int(most),
        folders=None if folders is None else tuple(map(Path, filter(None, folders.split(os.pathsep)))),
        keep_bytes=int(environment.get("PRONY_MODEL_KEEP_BYTES", "0")),
    )


def policy_error(what: str, option: str) -> InputError:
    """Return the error for what the policy does not allow; `option` is how an agent's owner would allow it."""
    return InputError(what, hint=_how_to_allow(option), code="model_refused")


def _how_to_allow(option: str) -> str:
    """Name the setting, which holds for every command, and the option of an agent that stands for it."""
    variable = f"PRONY_{option.split(maxsplit=1)[0].removeprefix('--').replace('-', '_').upper()}"
    return f"change {variable} if it is set; an agent's owner may allow it: `prony agent start {option}`"


@dataclass(frozen=True)
class FetchOptions:
    """`formats` are the endings that the chosen engine loads, most wanted first."""

    cache: Path
    formats: tuple[str, ...]
    checksum: str | None = None
    max_bytes: int = 20 * 2**30
    timeout_s: float = 60.0
    # The recipe's own folder: a relative path in a recipe is relative to it.
    base: Path = Path()
    # The interpreter of the chosen engine: a source that builds a model in that engine's format runs it there.
    python: str = ""
    # The scheme is checked before a source is asked; the rest is for the source to honour.
    policy: ModelPolicy = ModelPolicy()
    # It may come by plain http or ftp, where anybody on the way could change it.
    may_be_plain: bool = False


def scheme_of(reference: str) -> str:
    """Return the source that a reference names; a plain path is a `file`. One letter is a Windows drive."""
    match = re.match(r"^([a-z][a-z0-9+]+):", reference)
    scheme = match[1] if match else "file"
    return "https" if scheme == "http" else scheme


class ModelSource(Protocol):
    """Turns one kind of reference into files."""

    scheme: ClassVar[str]

    def fetch(self, reference: str, options: FetchOptions, progress: Progress) -> ModelFiles:
        """Return the files, from the cache where possible. A damaged or wrong file is never returned.

        Args:
            reference: The model as the recipe names it, with its scheme.
            options: Where the cache is, which endings the engine loads, and what may be fetched.
            progress: Called while something long happens.

        Raises:
            InputError: The reference is wrong, or the policy refuses it.
            NotFoundError: There is no such model.
        """


@runtime_checkable
class LooksUpModels(Protocol):
    """A source that can tell whether it has a model without fetching or building it."""

    def look_up(self, reference: str, options: FetchOptions) -> None:
        """Refuse what `fetch` would refuse before it fetches anything.

        Raises:
            InputError: The reference is wrong.
            NotFoundError: There is no such model.
            CapacityError: It is not there in a format that the engine loads.
        """


def find_folder_formats(names: Collection[str]) -> list[str]:
    """Return of which formats a folder with these files is, the most particular first."""
    return [kind for kind, mark in FOLDER_MARKS.items() if mark in names]
