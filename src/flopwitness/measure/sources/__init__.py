"""Readers: bytes of a known format in, traces and run marks out."""

__all__: list[str] = []
