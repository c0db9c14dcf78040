"""How many operations is one call of an operator?"""

__all__: list[str] = []
