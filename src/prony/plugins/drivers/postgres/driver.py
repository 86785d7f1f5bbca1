"""Driver for PostgreSQL: run statements and transactions."""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, ClassVar, Literal, Self, get_args

import numpy as np
from pydantic import Field, model_validator

from prony.errors import InputError
from prony.model.base import Noun
from prony.plugins.drivers.postgres import messages, statements
from prony.plugins.drivers.postgres.session import PostgresSession
from prony.plugins.drivers.postgres.statements import SqlScript
from prony.plugins.drivers.request_mix import how_many, shared_out
from prony.plugins.drivers.sockets import clean_up_on_failure, with_password
from prony.ports.driver import Cause, Digest, Endpoint, Keeps, Prepared, Reply, Request, Wants

WIRE = "prony.plugins.drivers.postgres.wire:PostgresWire"
Single = Literal["insert", "point_lookup", "range_scan", "like_scan", "aggregation"]
Bench = Literal["tpcb", "simple_update", "select_only"]


class PostgresOptions(Noun):
    """What is asked of a PostgreSQL."""

    operation: Single | Literal["mixed"] | Bench | Literal["sql"] = Field(
        default="mixed", description="which statements are sent"
    )
    mix: dict[Single, float] = Field(
        default={"insert": 4, "point_lookup": 1, "range_scan": 1, "like_scan": 1, "aggregation": 1},
        description="for mixed: relative weight of each statement",
    )
    rows: int = Field(default=10_000, ge=1, le=100_000_000, description="rows in the table before the load")
    payload_size: int = Field(default=256, ge=0, le=1024**2, description="bytes of text in a row")
    scale: int = Field(
        default=1, ge=1, le=20_000, description="for pgbench's transactions: scale factor, 100,000 accounts each"
    )
    initialise: bool = Field(
        default=True,
        description="for pgbench's transactions: make the tables in a schema of their own; false: use the tables of"
        " an earlier `pgbench -i`",
    )
    pipelined: bool = Field(
        default=False,
        description="send all statements of a transaction at once; default: one after the other, as pgbench does",
    )
    sql: str | list[str] = Field(
        default=[], description="for sql: a statement, or the statements of one transaction in order"
    )
    values: dict[str, str] = Field(
        default={},
        description="for sql: rules for the names in braces: random_int:1:100, random_hex:16, seq",
    )
    must_match: bool = Field(default=False, description="for sql: a statement that finds no row counts as failed")
    user: str = Field(default="", description="database user; default: the endpoint's, or postgres")
    database: str = Field(default="", description="database name; default: the endpoint's, or the user's name")
    password_env: str = Field(default="", description="NAME of the environment variable with the password")
    distinct: int = Field(
        default=10_000,
        ge=1,
        le=1_000_000,
        description="number of different requests to prepare; they repeat after that",
    )

    @model_validator(mode="after")
    def _complete(self) -> Self:
        if (self.operation == "sql") != bool(self.sql):
            raise ValueError("set both `operation: sql` and `sql`, or neither")
        if self.operation == "mixed" and (min(self.mix.values(), default=-1) < 0 or not sum(self.mix.values())):
            raise ValueError("the weights in mix must be positive numbers")
        return self

    @property
    def script(self) -> Sequence[str]:
        """Its statements, where a request is a transaction or the person's own."""
        if self.operation == "sql":
            return [self.sql] if isinstance(self.sql, str) else self.sql
        return statements.SCRIPTS.get(self.operation, ())


class PostgresDriver:
    """Tables are made in a schema of their own, which is dropped at the end; nothing else is touched."""

    name: ClassVar[str] = "postgres"
    schemes: ClassVar[tuple[str, ...]] = ("postgresql", "postgres", "unix")
    asks: ClassVar[bool] = False
    makes: ClassVar[bool] = True
    Options: ClassVar[type[Any]] = PostgresOptions

    def __init__(self) -> None:
        self._endpoint = Endpoint()
        self._settings: dict[str, str] = {}
        self._schema = ""

    def prepare(self, wants: Wants) -> Prepared:
        options: PostgresOptions = wants.options
        self._endpoint = with_password(wants.endpoint, options.password_env)
        self._settings = _settings(wants.endpoint, options)
        with clean_up_on_failure(self.finish), PostgresSession(self._endpoint, self._settings) as session:
            server = session.facts.get("server_version", "unknown")
            made = self._make_tables(session, options)
            built = _built(wants, options if made else _at_scale(session, options))
            if options.operation == "sql":
                session.check(built.wire_options["statements"])
        settings = self._settings | ({"search_path": self._schema} if made else {})
        login = {"settings": settings, "password": self._endpoint.password}
        notes = {
            "server": f"PostgreSQL {server}",
            "tables": made.about if made else "existing ones",
            "round trips": f"{built.wire_options['steps']} in one request",
        }
        return replace(built, wire_options={**built.wire_options, **login}, notes=notes)

    def digest(self, request: Request, reply: Reply) -> Digest:
        """Replies are not kept, so this is not asked; the wire has said all there is to say."""
        if not reply.status:
            return Digest(items=request.items)
        return Digest(cause=Cause.STATUS, detail=f"an error of class {reply.status}")

    def finish(self) -> None:
        if self._schema:
            with PostgresSession(self._endpoint, self._settings) as session:
                session.run(f"DROP SCHEMA IF EXISTS {self._schema} CASCADE")
            self._schema = ""

    def _make_tables(self, session: PostgresSession, options: PostgresOptions) -> statements.Tables | None:
        """Make a schema and the tables of the operation in it; nothing where the tables are there already."""
        is_bench = options.operation in get_args(Bench)
        if options.operation == "sql" or (is_bench and not options.initialise):
            return None
        wanted = (
            statements.pgbench_tables(options.scale)
            if is_bench
            else statements.stress_tables(options.rows, options.payload_size)
        )
        self.finish()
        schema = f"prony_{secrets.token_hex(6)}"
        session.run(f"CREATE SCHEMA {schema}")
        self._schema = schema
        session.run(f"SET search_path TO {schema}")
        for statement in wanted.making:
            session.run(statement)
        return wanted


def _settings(endpoint: Endpoint, options: PostgresOptions) -> dict[str, str]:
    user = options.user or endpoint.user or "postgres"
    database = options.database or endpoint.database or user
    return {"user": user, "database": database, "application_name": "prony", "client_encoding": "UTF8"}


def _at_scale(session: PostgresSession, options: PostgresOptions) -> PostgresOptions:
    """Return the options with the scale of pgbench's tables that are there."""
    if options.operation == "sql":
        return options
    ((count,),) = session.run("SELECT count(*) FROM pgbench_branches")
    if not int(count or 0):
        raise InputError("pgbench_branches is empty", hint="run `pgbench -i`, or remove initialise: false")
    return options.model_copy(update={"scale": int(count or 0)})


def _built(wants: Wants, options: PostgresOptions) -> Prepared:
    return _prepare_script(wants, options) if options.script else _single(wants, options)


def _prepare_script(wants: Wants, options: PostgresOptions) -> Prepared:
    """Make requests that are all the same statements with other values."""
    is_bench = options.operation != "sql"
    values = statements.pgbench_values(options.scale) if is_bench else options.values
    script = SqlScript(options.script, values, np.random.default_rng(wants.seed))
    steps = 1 if options.pipelined else len(script.statements)
    contents = (
        _content(script.drawn(number), steps)
        for number in range(how_many(wants, options.distinct, bytes_each=200 * len(script.statements)))
    )
    return Prepared(
        requests=[Request(content, operation=options.operation) for content in contents],
        wire=WIRE,
        wire_options={
            "statements": [statement.sql for statement in script.statements],
            "steps": steps,
            "must_match": is_bench or options.must_match,
        },
        keeps=Keeps.NOTHING,
    )


def _content(drawn: Sequence[Sequence[str]], steps: int) -> bytes:
    # Described too, because libpq asks for it: the server then does what it does for pgbench.
    parts = [
        messages.bind(f"s{number}", values) + messages.describe_portal() + messages.execute()
        for number, values in enumerate(drawn)
    ]
    if steps == 1:
        return b"".join(parts) + messages.SYNC
    return messages.join_round_trips([part + messages.SYNC for part in parts])


def _single(wants: Wants, options: PostgresOptions) -> Prepared:
    """Make requests that are one statement each, of one operation or of several."""
    count = how_many(wants, options.distinct, bytes_each=200 + options.payload_size)
    rng = np.random.default_rng(wants.seed)
    shares = {str(name): share for name, share in options.mix.items()}
    names = shared_out(rng, shares if options.operation == "mixed" else {options.operation: 1.0}, count)
    rows = rng.integers(1, options.rows, size=count, endpoint=True).tolist()
    payload = rng.bytes(options.payload_size // 2 + 1).hex()[: options.payload_size]
    known = list(statements.STRESS_STATEMENTS)
    requests = []
    for number, (operation, row) in enumerate(zip(names, rows, strict=True)):
        values = statements.stress_values(operation, number, row, payload)
        bound = messages.bind(f"s{known.index(operation)}", values)
        requests.append(Request(bound + messages.execute() + messages.SYNC, operation=operation))
    return Prepared(
        requests=requests,
        wire=WIRE,
        wire_options={"statements": list(statements.STRESS_STATEMENTS.values()), "steps": 1, "must_match": True},
        keeps=Keeps.NOTHING,
    )
