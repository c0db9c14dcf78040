"""What is known: chips and rules as data, each value with its source, date and how it was checked."""

__all__: list[str] = []
