"""Alembic's scripts: one file a step, never changed after a release that carries it."""
