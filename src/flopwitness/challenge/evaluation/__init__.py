"""How well the estimators work, judged on data that did not tune them."""

__all__: list[str] = []
