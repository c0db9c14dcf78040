"""What a person sees: short, in whole words, worst news first, every number with its unit and its doubt."""

__all__: list[str] = []
