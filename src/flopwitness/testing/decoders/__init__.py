"""Decoders by family, each with good inputs of our own making."""

__all__: list[str] = []
