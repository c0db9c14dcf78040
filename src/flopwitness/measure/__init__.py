"""How much compute was used, seen from outside?"""

__all__: list[str] = []
