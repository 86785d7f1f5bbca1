"""Copy all rows of one database into another of the same schema, such as SQLite's into PostgreSQL."""

from __future__ import annotations

from sqlalchemy import Column, Connection, Engine, Table, func, insert, literal_column, select, text

from prony.store.create_schema import schema
from prony.store.database import reading, writing

_ROWS = 500


def copy_rows(source: Engine, target: Engine) -> None:
    """Copy every table in one transaction on each side; the target is empty and has the newest schema."""
    with reading(source) as rows, writing(target) as connection:
        for table in schema().sorted_tables:  # a row comes after those that it refers to
            found = rows.execute(select(table), execution_options={"stream_results": True})
            for part in found.mappings().partitions(_ROWS):
                connection.execute(insert(table), [dict(row) for row in part])
            if target.dialect.name == "postgresql":
                _continue_numbers(connection, table)


def is_filled(engine: Engine) -> bool:
    """Has any table a row?"""
    with reading(engine) as connection:
        return any(
            connection.execute(select(literal_column("1")).select_from(table).limit(1)).first() is not None
            for table in schema().sorted_tables
        )


def _continue_numbers(connection: Connection, table: Table) -> None:
    """Let PostgreSQL count on behind the rows that brought their own numbers; SQLite does so by itself."""
    column: Column[int] | None = table.autoincrement_column
    if column is None:
        return
    highest = connection.execute(select(func.max(column))).scalar()
    if highest is not None:
        sequence = text("SELECT setval(pg_get_serial_sequence(:table, :column), :highest)")
        connection.execute(sequence, {"table": table.name, "column": column.name, "highest": highest})
