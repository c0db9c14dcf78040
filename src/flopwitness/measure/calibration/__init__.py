"""What was learnt on one device from runs of known size, and where it may be used."""

__all__: list[str] = []
