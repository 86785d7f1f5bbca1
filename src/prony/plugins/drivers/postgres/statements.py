"""Tables and statements of the PostgreSQL driver's operations, with placeholders and the values of each request.

`stress_test` has the operations of one service; the pgbench_ tables and their transactions are those of pgbench, so
that its figures and ours are of the same work.

A placeholder is one of the templates' (`{random_int:1:100}`, `{random_hex:16}`, `{seq}`, ...) or the name of a value
that the recipe gives one of these rules; a named value is the same in all statements of one request. Other braces are
left as they are.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from prony.errors import InputError
from prony.plugins.drivers.http.template import Template

STRESS = "stress_test"
_VALUES, _STRIDE = 100_000, 7_919  # values of the column, and a prime that spreads them
_RANGE = 100
ACCOUNTS, TELLERS, BRANCHES = 100_000, 10, 1  # pgbench's, for each unit of scale

STRESS_STATEMENTS = {
    "insert": f"INSERT INTO {STRESS} (data, value, payload) VALUES ($1, $2, $3)",
    "point_lookup": f"SELECT id, data, value, created_at, payload FROM {STRESS} WHERE id = $1",
    "range_scan": f"SELECT id, data, value FROM {STRESS} WHERE value BETWEEN $1 AND $2 ORDER BY value LIMIT 100",
    "like_scan": f"SELECT id, data, value FROM {STRESS} WHERE data LIKE $1 LIMIT 100",
    "aggregation": f"SELECT count(*), avg(value), min(value), max(value) FROM {STRESS} WHERE value >= $1",
}

_UPDATE_ACCOUNT = "UPDATE pgbench_accounts SET abalance = abalance + {delta} WHERE aid = {aid}"
_SELECT_ACCOUNT = "SELECT abalance FROM pgbench_accounts WHERE aid = {aid}"
_HISTORY = (
    "INSERT INTO pgbench_history (tid, bid, aid, delta, mtime) VALUES ({tid}, {bid}, {aid}, {delta}, CURRENT_TIMESTAMP)"
)
SCRIPTS = {
    "tpcb": (
        "BEGIN",
        _UPDATE_ACCOUNT,
        _SELECT_ACCOUNT,
        "UPDATE pgbench_tellers SET tbalance = tbalance + {delta} WHERE tid = {tid}",
        "UPDATE pgbench_branches SET bbalance = bbalance + {delta} WHERE bid = {bid}",
        _HISTORY,
        "END",
    ),
    "simple_update": ("BEGIN", _UPDATE_ACCOUNT, _SELECT_ACCOUNT, _HISTORY, "END"),
    "select_only": (_SELECT_ACCOUNT,),
}


@dataclass(frozen=True)
class Tables:
    """`making` are statements to run one by one in an empty schema; the last of them look after statistics."""

    making: tuple[str, ...]
    about: str


def stress_tables(rows: int, payload_size: int) -> Tables:
    """Return the table of the single operations, with so many rows in it."""
    payload = f"left(repeat(md5(n::text), {payload_size // 32 + 1}), {payload_size})"
    return Tables(
        making=(
            f"CREATE TABLE {STRESS} (id serial PRIMARY KEY, data varchar(255), value int,"
            " created_at timestamp DEFAULT current_timestamp, payload text)",
            f"INSERT INTO {STRESS} (data, value, payload) SELECT 'data_' || n, n * {_STRIDE}::bigint % {_VALUES},"
            f" {payload} FROM generate_series(1, {rows}) n",
            f"CREATE INDEX ON {STRESS} (value)",
            f"CREATE INDEX ON {STRESS} (created_at)",
            f"VACUUM ANALYZE {STRESS}",
        ),
        about=f"{rows} rows, payload of {payload_size} bytes",
    )


def stress_values(operation: str, number: int, row: int, payload: str) -> list[str]:
    """Return the values of one statement; `row` is one that is there, so that each statement finds something."""
    value = row * _STRIDE % _VALUES
    if operation == "insert":
        return [f"data_{number}", str(number * _STRIDE % _VALUES), payload]
    if operation == "range_scan":
        return [str(value), str(value + _RANGE)]
    if operation == "like_scan":
        return [f"data_{str(row)[:3]}%"]
    return [str(row if operation == "point_lookup" else value)]


def pgbench_tables(scale: int) -> Tables:
    """Return pgbench's four tables at a scale, as `pgbench -i -I dtGvp` makes them."""
    accounts, tellers = ACCOUNTS * scale, TELLERS * scale
    return Tables(
        making=(
            "CREATE TABLE pgbench_history (tid int, bid int, aid int, delta int, mtime timestamp, filler char(22))",
            "CREATE TABLE pgbench_tellers (tid int NOT NULL, bid int, tbalance int, filler char(84))"
            " WITH (fillfactor=100)",
            "CREATE TABLE pgbench_accounts (aid int NOT NULL, bid int, abalance int, filler char(84))"
            " WITH (fillfactor=100)",
            "CREATE TABLE pgbench_branches (bid int NOT NULL, bbalance int, filler char(88)) WITH (fillfactor=100)",
            f"INSERT INTO pgbench_branches (bid, bbalance) SELECT n, 0 FROM generate_series(1, {scale}) n",
            "INSERT INTO pgbench_tellers (tid, bid, tbalance)"
            f" SELECT n, (n - 1) / {TELLERS} + 1, 0 FROM generate_series(1, {tellers}) n",
            "INSERT INTO pgbench_accounts (aid, bid, abalance, filler)"
            f" SELECT n, (n - 1) / {ACCOUNTS} + 1, 0, '' FROM generate_series(1, {accounts}) n",
            "VACUUM ANALYZE pgbench_branches",
            "VACUUM ANALYZE pgbench_tellers",
            "VACUUM ANALYZE pgbench_accounts",
            "VACUUM ANALYZE pgbench_history",
            "ALTER TABLE pgbench_branches ADD PRIMARY KEY (bid)",
            "ALTER TABLE pgbench_tellers ADD PRIMARY KEY (tid)",
            "ALTER TABLE pgbench_accounts ADD PRIMARY KEY (aid)",
        ),
        about=f"pgbench's tables at scale {scale}",
    )


def pgbench_values(scale: int) -> dict[str, str]:
    return {
        "aid": f"random_int:1:{ACCOUNTS * scale}",
        "bid": f"random_int:1:{BRANCHES * scale}",
        "tid": f"random_int:1:{TELLERS * scale}",
        "delta": "random_int:-5000:5000",
    }


_PLACE = re.compile(r"\{([A-Za-z_]\w*(?::[^{}]*)?)\}")


@dataclass(frozen=True)
class Statement:
    """`sql` has $1, $2, ... where `places` (keys of the rules) stand."""

    sql: str
    places: tuple[str, ...]


class SqlScript:
    """Statements that make one request, and the rules of all their values."""

    def __init__(self, statements: Sequence[str], values: Mapping[str, str], rng: np.random.Generator) -> None:
        self._rng = rng
        self._rules = {name: _rule(name, text) for name, text in values.items()}
        self._named = frozenset(values)
        self.statements = tuple(self._read(sql) for sql in statements)

    def drawn(self, number: int) -> list[list[str]]:
        """Return the values of each statement of one request."""
        found = {name: rule.fill(number, self._rng) for name, rule in self._rules.items()}
        return [[found[place] for place in statement.places] for statement in self.statements]

    def _read(self, sql: str) -> Statement:
        places: list[str] = []

        def number_place(match: re.Match[str]) -> str:
            word = match.group(1)
            if word not in self._named:
                rule = Template(match.group())
                if not rule.varies:
                    return match.group()
                # Without a name of its own a place is drawn for itself.
                word = f"{word}#{len(self._rules)}"
                self._rules[word] = rule
            if word not in places:
                places.append(word)
            return f"${places.index(word) + 1}"

        return Statement(_PLACE.sub(number_place, sql), tuple(places))


def _rule(name: str, text: str) -> Template:
    found = Template(f"{{{text}}}")
    if not found.varies:
        raise InputError(
            f"{text!r} is not a rule for the value {name}", hint="write random_int:1:100, random_hex:16 or seq"
        )
    return found
