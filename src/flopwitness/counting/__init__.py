"""What counts as an operation? Counts from shapes alone, exact and without any framework."""

__all__: list[str] = []
