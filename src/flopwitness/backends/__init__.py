"""Replaceable machinery: sensors, storage, execution. Only `cli` and `testing` choose from it."""

__all__: list[str] = []
