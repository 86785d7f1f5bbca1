"""An open connection in, the migrations run on it: `prony.store.schema` is the only caller."""

from __future__ import annotations

from alembic import context

from prony.store.create_schema import schema

context.configure(connection=context.config.attributes["connection"], target_metadata=schema())
with context.begin_transaction():
    context.run_migrations()
