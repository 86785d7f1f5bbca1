"""The `script` workload as a person writes it: any command, how its numbers are found, and how it is launched."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, Self

from pydantic import AfterValidator, Field, model_validator

from prony.model.base import Noun
from prony.model.container import check_image_name
from prony.model.metric import publish_name
from prony.model.quantity import DurationNs, duration_text
from prony.model.workload import Workload

if TYPE_CHECKING:
    from prony.model.load import Load

Reduce = Literal["last", "mean", "min", "max", "median"]
Port = Annotated[int, Field(ge=1, le=65535)]
_SCHEMES = ("http", "https", "s3", "ftp", "file")
_ENVIRONMENT_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def _words(value: str | list[str]) -> str | list[str]:
    try:
        words = words_of(value)
    except ValueError as exc:
        raise ValueError(f"cannot be split into words: {str(exc).lower()}") from exc
    if any("\0" in word for word in words):
        raise ValueError("a command must not contain a NUL character")
    return value


def _command(value: str | list[str]) -> str | list[str]:
    """Refuse at once what no program could be started from."""
    words = words_of(_words(value))
    if not words or not words[0].strip():
        raise ValueError("a command must start with the program to run")
    return value


def _environment(value: dict[str, str]) -> dict[str, str]:
    for name, text in value.items():
        if _ENVIRONMENT_NAME.fullmatch(name) is None:
            raise ValueError(f"{name!r} is not a valid variable name: use letters, digits and '_', and no digit first")
        if "\0" in text:
            raise ValueError(f"{name}: a variable must not contain a NUL character")
    return value


def _plain_name(value: str) -> str:
    if not value or value in (".", "..") or any(one in value for one in "/\\\0") or len(value) > 255:
        raise ValueError("must be a plain folder name, such as src")
    return value


def _pattern(value: str) -> str:
    try:
        groups = re.compile(value).groups
    except re.error as exc:
        raise ValueError(f"is not a valid regular expression: {exc}") from exc
    if groups > 1:
        raise ValueError(f"has {groups} groups, but a metric has one value: write the others as (?:...)")
    return value


def _source(value: str) -> str:
    scheme, colon, _ = value.partition("://")
    if colon and scheme not in _SCHEMES:
        raise ValueError(f"{scheme}:// is not supported; use {', '.join(_SCHEMES)} or a path")
    return value


def _lasting(default_ns: int, description: str) -> Any:
    return Field(default=default_ns, description=description, json_schema_extra={"default": duration_text(default_ns)})


Command = Annotated[
    str | Annotated[list[str], Field(min_length=1)],
    AfterValidator(_command),
]
Words = Annotated[str | list[str], AfterValidator(_words)]
ImageName = Annotated[str, Field(min_length=1), AfterValidator(check_image_name)]
Variables = Annotated[dict[str, str], AfterValidator(_environment)]


class ScriptMetric(Noun):
    """A metric of a script: one that it emits or prints as JSON, or one that a pattern finds."""

    name: str = Field(
        min_length=1, max_length=200, description="name of the metric, as emitted or printed", examples=["accuracy"]
    )
    pattern: Annotated[str, AfterValidator(_pattern)] | None = Field(
        default=None,
        min_length=1,
        description="regular expression for output lines; the value is its group, or the number in the match",
        examples=["accuracy=([0-9.]+)"],
    )
    stream: Literal["stdout", "stderr"] | None = Field(
        default=None, description="which output to search; default: both"
    )
    unit: str | None = Field(
        default=None, max_length=40, description="unit of the metric; default: as emitted", examples=["ms"]
    )
    better: Literal["higher", "lower"] | None = Field(
        default=None, description="which direction is better; default: not judged"
    )
    reduce: Reduce | None = Field(
        default=None, description="how its values become one number per run; default: as the workload"
    )

    @model_validator(mode="after")
    def _looks_somewhere(self) -> Self:
        if self.stream is not None and self.pattern is None:
            raise ValueError("`stream` needs a pattern")
        return self


class ScriptSource(Noun):
    """A file or folder that the script needs before it starts."""

    source: Annotated[str, AfterValidator(_source)] = Field(
        min_length=1,
        description="http(s)://, s3://, ftp://, file:// or a path",
        examples=["https://example.org/mnist.npz"],
        json_schema_extra={"path": "reference"},
    )
    path: str = Field(
        min_length=1,
        description="where the script finds it: relative to its folder, or absolute (exact in a container only)",
    )
    checksum: str | None = Field(
        default=None,
        pattern=r"^(sha256:[0-9a-f]{64}|md5:[0-9a-f]{32})$",
        description="sha256: or md5: and the hexadecimal digits",
    )
    name: str | None = Field(default=None, min_length=1, description="a name for people")


class Launch(Noun):
    """How to start the processes of a script."""

    kind: Literal["process", "torchrun", "mpirun"] = Field(
        default="process",
        description="what starts the processes; process: Prony itself, with RANK and similar variables",
    )
    processes: int = Field(default=1, ge=1, le=4096, description="processes per node")
    nodes: int = Field(default=1, ge=1, le=4096, description="machines that run it together, each an agent")
    spread: bool = Field(
        default=True,
        description="nodes must be different machines; false: without a server or Slurm, all run on this one",
    )
    fallback: Literal["process"] | None = Field(
        default=None, description="launcher to use if this one is missing; default: an error"
    )

    @property
    def on_one_machine(self) -> Launch:
        """The same processes, all on one machine."""
        return self.model_copy(update={"processes": self.nodes * self.processes, "nodes": 1})


class Readiness(Noun):
    """When the server counts as ready: its page answers with a status below 400."""

    path: str = Field(default="/", pattern="^/", description="page to request")
    port: Port | None = Field(default=None, description="port to request; default: the first of `ports`")
    scheme: Literal["http", "https"] = Field(default="http", description="protocol of the request")
    initial_delay: DurationNs | None = Field(default=None, description="wait before the first request")
    period: DurationNs = _lasting(10**9, "time between two requests")
    timeout: DurationNs = _lasting(10**9, "timeout of one request")
    success_threshold: int = Field(default=1, ge=1, description="good answers in a row until the server is ready")
    failure_threshold: int | None = Field(
        default=None, ge=1, description="bad answers in a row that end the run; default: the time limit ends it"
    )


class ScriptServer(Noun):
    """A server that the script uses; Prony starts it before the script and stops it afterwards."""

    command: Command | None = Field(default=None, description="program and arguments; default: the image's own")
    arguments: Words = Field(default=[], description="extra arguments for the command, or for the image's own command")
    ports: Annotated[tuple[Port, ...], Field(min_length=1, max_length=64)] = Field(
        description="ports it listens on; the script finds them in INFERENCE_SERVER_PORT, INFERENCE_SERVER_PORT_1, ..."
    )
    environment: Variables = Field(default={}, description="environment variables, added to Prony's")
    readiness: Readiness | None = Field(default=None, description="when it is ready; default: when it listens")
    image: ImageName | None = Field(
        default=None,
        description="container image",
        json_schema_extra={"path": "name"},
    )
    metrics: Annotated[tuple[ScriptMetric, ...], Field(max_length=1000)] = Field(
        default=(), description="metrics that it reports"
    )
    sources: Annotated[tuple[ScriptSource, ...], Field(max_length=1000)] = Field(
        default=(), description="files needed before it starts"
    )


class ScriptWorkload(Workload):
    """Any command that reports numbers (`prony.emit`, JSON lines, patterns); each run is a fresh execution."""

    measure_keys: ClassVar[tuple[str, ...] | None] = ("repeats", "warmup", "until")
    wrong_section: ClassVar[str] = "`load` is for services; for a script, use `measure`"
    wrong_measure_key: ClassVar[str] = (
        "measure.{} is for models; for a script, set measure.repeats and measure.warmup (whole executions)"
    )
    runs_commands: ClassVar[bool] = True
    runs_in_place: ClassVar[bool] = True  # another process starts it and takes its time
    is_rankable: ClassVar[bool] = False  # what its numbers mean, nobody knows but its writer
    sample_noun: ClassVar[str] = "request"
    unit_noun: ClassVar[str] = "requests"
    sample_columns: ClassVar[tuple[str, ...]] = ("at_ns", "name", "value")
    agents_path: ClassVar[str] = "workload.launch.nodes"
    processes_path: ClassVar[str] = "workload.launch.processes"

    kind: Literal["script"] = Field(description="which kind of workload this is")
    command: Command | None = Field(
        description="program and arguments, as a list or as text, which is split into words (no shell); `$(NAME)` is a "
        "variable; null: the image's own",
        examples=["python train.py --epochs 3"],
    )
    arguments: Words = Field(default=[], description="extra arguments for the command, or for the image's own command")
    directory: str | None = Field(
        default=None,
        min_length=1,
        description="the script's folder, a .tar of it, or one file, relative to the recipe; each run gets a copy; "
        "default: an empty folder",
        examples=["scripts"],
        json_schema_extra={"path": "scripts"},
    )
    directory_name: Annotated[str, AfterValidator(_plain_name)] | None = Field(
        default=None,
        description="put the files into a subfolder of this name",
        examples=["src"],
    )
    copy_files: bool = Field(
        default=True,
        description="false: run in `directory` itself, on this machine; not with an image, a server or sources",
    )
    environment: Variables = Field(default={}, description="environment variables, added to Prony's")
    image: ImageName | None = Field(
        default=None,
        description="container image; refused without a container engine",
        json_schema_extra={"path": "name"},
    )
    container: bool = Field(
        default=True, description="false: ignore the image and run on the machine; the report says so"
    )
    metrics: Annotated[tuple[ScriptMetric, ...], Field(max_length=1000)] = Field(
        default=(), description="units, directions and patterns of its metrics; the first is the headline"
    )
    reduce: Reduce = Field(default="last", description="how the values of a metric become one number per run")
    sources: Annotated[tuple[ScriptSource, ...], Field(max_length=1000)] = Field(
        default=(), description="files needed before it starts"
    )
    launch: Launch = Field(default=Launch(), description="how to start its processes")
    server: ScriptServer | None = Field(default=None, description="a server that the script uses")

    @property
    def subject(self) -> str:
        """What is measured, in one word."""
        return " ".join(self.words) or self.image or ""

    @property
    def words(self) -> list[str]:
        """The command with its arguments; empty where the image says what runs."""
        return [*words_of(self.command), *words_of(self.arguments)] if self.command is not None else []

    @property
    def tool(self) -> str:
        """By what."""
        return self.launch.kind

    @property
    def folder(self) -> str | None:
        return self.directory

    @property
    def metric_units(self) -> Mapping[str, str] | None:
        return {publish_name(metric.name): metric.unit or "" for metric in self.all_metrics}

    def count_agents(self, load: Load) -> int:  # noqa: ARG002 - a script has no load
        return self.launch.nodes

    @property
    def needs_its_agents(self) -> bool:
        return self.launch.spread

    @property
    def used_images(self) -> tuple[str, ...]:
        """The images that containers are made of, its own and its server's; none where it does without."""
        found = [self.image, self.server.image if self.server is not None else None]
        return tuple(dict.fromkeys(one for one in found if one is not None)) if self.container else ()

    @property
    def all_metrics(self) -> tuple[ScriptMetric, ...]:
        """Those of the script, then those of its server."""
        return (*self.metrics, *(self.server.metrics if self.server is not None else ()))

    @model_validator(mode="after")
    def _runs_something(self) -> Self:
        for whose, one in (("", self), ("server: ", self.server)):
            if one is not None and one.command is None and one.image is None:
                raise ValueError(f"{whose}needs a command or an image")
            if one is not None and one.command is None and not self.container:
                raise ValueError(f"{whose}needs a command: with container: false, the image is not used")
        return self

    @model_validator(mode="after")
    def _runs_in_place(self) -> Self:
        if self.copy_files:
            return self
        if self.directory is None:
            raise ValueError("`copy_files: false` needs a `directory` to run in")
        others = {"image": self.image, "server": self.server, "sources": self.sources, "name": self.directory_name}
        for name, given in others.items():
            if given:
                raise ValueError(
                    f"`copy_files: false` cannot be combined with {'directory_name' if name == 'name' else name}"
                )
        return self

    @model_validator(mode="after")
    def _one_of_each(self) -> Self:
        for what, names in (
            ("metric is called", [one.name for one in self.all_metrics]),
            (
                "source has the path",
                [one.path for one in (*self.sources, *(self.server.sources if self.server else ()))],
            ),
        ):
            twice = next((name for name in names if names.count(name) > 1), None)
            if twice is not None:
                raise ValueError(f"more than one {what} {twice!r}")
        return self


def words_of(command: str | list[str]) -> list[str]:
    """Return the words of a command; text is split as a shell would."""
    return shlex.split(command) if isinstance(command, str) else list(command)


SCHEMA = ScriptWorkload
