"""Shared words: errors, units, clocks, canonical bytes, digests, verdicts; nothing else is imported."""

__all__: list[str] = []
