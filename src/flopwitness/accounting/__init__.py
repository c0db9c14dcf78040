"""How much has a model, and an operator, used in all, and what does a rule say to that?"""

__all__: list[str] = []
