"""What may stand after the question mark of a path, and in headers: typed, limited, described for OpenAPI."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Literal
from urllib.parse import parse_qsl

from fastapi import Path
from pydantic import ConfigDict, Field, ValidationError
from starlette.requests import Request

from prony.model.agent import AgentState
from prony.model.base import Noun
from prony.model.comparison import OWN_RULE, Terms
from prony.model.estimate import Grade
from prony.model.experiment import ExperimentState
from prony.model.gate import GateState
from prony.model.git import LONGEST_BRANCH
from prony.model.history import ChangeKind, ChangeState, SeriesState
from prony.model.listing import Filters, Sort
from prony.model.matrix import Against, MatrixTerms
from prony.model.quantity import Share
from prony.model.queue import JobState
from prony.ports.plugins import COMPARISON_RULES, find_plugins
from prony.server.body import header
from prony.server.problems import RequestError, invalid

ID_PATTERN = r"^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$"
Id = Annotated[str, Path(pattern=ID_PATTERN)]
Plain = Annotated[str, Field(max_length=200, pattern=r"^[^\x00-\x1f\x7f]*$")]
Branch = Annotated[str, Field(max_length=LONGEST_BRANCH, pattern=r"^[^\x00-\x1f\x7f]*$")]
Reference = Annotated[str, Field(max_length=128, pattern=ID_PATTERN)]
WaitS = Annotated[float, Field(ge=0, le=60, allow_inf_nan=False)]
Offset = Annotated[int, Field(ge=0, le=2**53)]
_MOST_FIELDS = 50
_LONGEST_KEY = 255


class QueryParams(Noun):
    """The root of all that is asked: a name that an operation does not know is refused, not passed over."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class PageAsked(QueryParams):
    limit: int = Field(default=50, ge=1, le=500, description="how many at most")
    cursor: str | None = Field(
        default=None, max_length=500, pattern=r"^[\x21-\x7e]+$", description="`next` of the previous page"
    )


class ExperimentsAsked(PageAsked):
    state: ExperimentState | None = None
    name: Plain | None = Field(default=None, description="full name of the recipe")
    schedule: Reference | None = Field(default=None, description="only experiments of this schedule: its id or name")


class ListingAsked(PageAsked):
    search: Plain = Field(default="", description="words that the id, name, labels or submitter must contain")
    state: ExperimentState | None = None
    kind: Plain | None = Field(
        default=None, description="kind of workload, as in `model`; separate several with commas"
    )
    label: Plain | None = Field(default=None, description="`key=value`")
    grade: Grade | None = Field(default=None, description="the worst verdict")
    gates: GateState | None = None
    schedule: Reference | None = Field(default=None, description="only experiments of this schedule: its id or name")
    sort: Sort = Field(default="newest", description="`lowest` and `highest` sort by the headline metric")

    @property
    def filters(self) -> Filters:
        return Filters.model_construct(**{name: getattr(self, name) for name in Filters.model_fields})


class JobsAsked(PageAsked):
    state: JobState | None = None
    experiment: Reference | None = None
    agent: Reference | None = None
    label: str | None = Field(
        default=None, max_length=201, pattern=r"^[A-Za-z0-9._:/@+-]{1,100}=[A-Za-z0-9._:/@+-]{0,100}$",
        description="`key=value`",
    )  # fmt: skip

    @property
    def label_pair(self) -> tuple[str, str] | None:
        if self.label is None:
            return None
        key, _, value = self.label.partition("=")
        return key, value


class SeriesAsked(PageAsked):
    name: Plain | None = Field(default=None, description="full name of the recipe")
    state: SeriesState | None = None
    branch: Branch | None = Field(default=None, description="empty: the default branch; not given: all")


class HistoryAsked(QueryParams):
    metric: Plain | None = Field(default=None, description="such as `inference_ms.p99`; default: the headline")


class ChangesAsked(PageAsked):
    state: ChangeState | None = Field(default=None, description="default: open changes")
    kind: ChangeKind | None = None
    branch: Branch | None = Field(default=None, description="empty: the default branch; not given: all")


class AgentsAsked(PageAsked):
    state: AgentState | None = None


class DeleteAsked(QueryParams):
    force: bool = Field(default=False, description="also if it is running")


class ResultsAsked(QueryParams):
    verify: bool = Field(default=False, description="check every file of samples and report damaged results")


class ReportAsked(QueryParams):
    format: Literal["html", "pdf", "md", "json", "csv", "junit", "github"] = "html"
    strict: bool = Field(default=False, description="undecided gates fail too")


class ExportAsked(QueryParams):
    format: Literal["folder", "requests-jsonl", "csv", "hdr", "mlperf"] = Field(
        default="folder", description="folder: everything; others: the requests of a load in another format"
    )


class GatesAsked(QueryParams):
    strict: bool = Field(default=False, description="undecided gates fail too")
    gate: str | None = Field(
        default=None, max_length=2000, description="more gates, separated by `;`, as in `e2e_ms.p99 <= 20`"
    )

    @property
    def more(self) -> tuple[str, ...]:
        return tuple(text.strip() for text in (self.gate or "").split(";") if text.strip())


class ExperimentsNamed(QueryParams):
    ids: str = Field(
        max_length=5000, pattern=r"^[A-Za-z0-9][A-Za-z0-9._,-]*$", description="experiments, separated by commas"
    )

    @property
    def experiment_ids(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(one for one in self.ids.split(",") if one))


class SweepAsked(ExperimentsNamed):
    slo: str | None = Field(
        default=None, max_length=2000,
        description="limits instead of the recipe's, separated by commas, as in `ttft_ms.p99=200`",
    )  # fmt: skip

    @property
    def limits(self) -> tuple[str, ...]:
        return tuple(text.strip() for text in (self.slo or "").split(",") if text.strip())


class MatrixAsked(ExperimentsNamed):
    rows: Plain = Field(default="device", description="device, engine or another word, or the path of a setting")
    columns: Plain = Field(default="engine", description="the same for the columns")
    metric: Plain | None = Field(default=None, description="as in `inference_ms.p50`; default: the workload's headline")
    against: Against | None = Field(
        default=None, description="second axis of the Pareto front (default: cost, else power)"
    )

    @property
    def terms(self) -> MatrixTerms:
        return MatrixTerms(rows=self.rows, columns=self.columns, metric=self.metric, against=self.against)


if TYPE_CHECKING:
    Rule = str
else:
    Rule = Literal[(OWN_RULE, *find_plugins(COMPARISON_RULES))]


class ComparisonAsked(QueryParams):
    of: str = Field(
        max_length=2000, pattern=r"^[A-Za-z0-9][A-Za-z0-9._,-]*$",
        description="experiments or jobs, separated by commas; the first is the baseline",
    )  # fmt: skip
    threshold: Share = Field(default=0.03, description="the smallest change that matters; a percent sign is `%25`")
    metric: Plain = Field(default="", description="metrics that decide, separated by commas; default: the headlines")
    across: Plain = Field(default="", description="settings that may differ, separated by commas")
    anyway: bool = Field(
        default=False, description="compare even if the results are not comparable, and list the differences"
    )
    rule: Rule = Field(default=OWN_RULE, description="rule that decides: prony, or that of another program")

    @property
    def names(self) -> tuple[str, ...]:
        return _split_list(self.of)

    @property
    def terms(self) -> Terms:
        return Terms.model_construct(
            threshold=self.threshold, metrics=_split_list(self.metric), across=_split_list(self.across),
            anyway=self.anyway, rule=self.rule,
        )  # fmt: skip


class LogsAsked(QueryParams):
    attempt: int | None = Field(default=None, ge=1, le=10_000, description="default: the last")
    offset: Offset = Field(default=0, description="where to begin, in bytes")
    wait_s: WaitS = Field(default=0, description="how long to wait if there is nothing yet")
    search: Plain = Field(default="", description="only lines that hold this, in small letters or capitals")
    source: Plain = Field(default="", description="only lines of this source, as in `run-0000.err`")


class FailuresAsked(QueryParams):
    days: float = Field(default=7, gt=0, le=36_500, description="how far to look back")


class DistributionAsked(QueryParams):
    metric: Plain | None = Field(default=None, description="as in `ttft_ms`; default: the workload's headline")
    bins: int = Field(default=60, ge=1, le=500, description="number of bins")


class LoadSeriesAsked(QueryParams):
    points: int = Field(default=600, ge=2, le=2000, description="how many at most, of each run")


class FileAsked(QueryParams):
    name: str = Field(min_length=1, max_length=1000, description="as `files` lists it")


class FileTextAsked(FileAsked):
    offset: Offset = Field(default=0, description="where to begin, in bytes")


class TimelineAsked(QueryParams):
    buckets: int = Field(default=200, ge=1, le=2000, description="most buckets, for the longest run")


class CountersAsked(QueryParams):
    most: int = Field(default=12, ge=1, le=200, description="most counters; the most informative come first")
    points: int = Field(default=400, ge=2, le=5000, description="most points of each counter, without gaps")


class HandBackAsked(QueryParams):
    reason: Plain = ""


class UploadAsked(QueryParams):
    offset: Offset = Field(description="where these bytes begin in the result's tar")


class FinishAsked(QueryParams):
    next: bool = Field(default=False, description="lease the next job with the same request")
    wait_s: WaitS = Field(default=0, description="how long to wait for it")


def _split_list(text: str) -> tuple[str, ...]:
    return tuple(part for part in text.split(",") if part)


def read_query(request: Request, noun: type[QueryParams]) -> QueryParams:
    """Return what stands after the question mark."""
    text = request.scope["query_string"].decode("latin-1")
    if not text:
        return _read(noun, {})
    try:
        pairs = parse_qsl(text, keep_blank_values=True, max_num_fields=_MOST_FIELDS)
    except ValueError:
        message = f"the query has more than {_MOST_FIELDS} parameters"
        raise RequestError(message, status=400, code="malformed") from None
    return _read(noun, dict(pairs))


def _read(noun: type[QueryParams], pairs: dict[str, str]) -> QueryParams:
    try:
        return noun.model_validate(pairs)
    except ValidationError as exc:
        raise invalid(exc, whole="the query") from None


def idempotency_key(request: Request) -> str | None:
    """Return the name under which a creation may be repeated, where it has one."""
    said = header(request.scope, b"idempotency-key").decode("latin-1")
    if not said:
        return None
    if len(said) > _LONGEST_KEY or not (said.isascii() and said.isprintable()):
        raise RequestError(
            f"an Idempotency-Key has at most {_LONGEST_KEY} characters, all of them printable ASCII",
            field="Idempotency-Key",
            hint="a random UUID will do",
        )
    return said


def parameter(name: str, description: str, schema: dict[str, Any], *, required: bool = False) -> dict[str, Any]:
    """Return how OpenAPI tells of a header that a request may bring."""
    return {"parameters": [{"name": name, "in": "header", "required": required, "description": description,
                            "schema": schema}]}  # fmt: skip


LAST_EVENT_ID = parameter(
    "Last-Event-ID",
    "id of the last event that you received: the later ones follow",
    {"type": "string", "maxLength": 100},
)
KEY_PARAMETER = parameter(
    "Idempotency-Key",
    "a key of your choice: the same request with the same key is done once",
    {"type": "string", "maxLength": _LONGEST_KEY, "pattern": r"^[\x20-\x7e]+$"},
)
