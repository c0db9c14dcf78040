"""Pictures of an evaluation: how estimates are made, how far they miss, and how often intervals hold."""

__all__: list[str] = []
