"""How could it be cheated, and how well does it work?"""

__all__: list[str] = []
