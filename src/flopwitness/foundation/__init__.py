"""Shared words: errors, units, clocks, canonical bytes, digests, verdicts. It imports nothing of the house."""

__all__: list[str] = []
