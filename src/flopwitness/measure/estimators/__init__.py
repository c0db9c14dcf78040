"""From energy, time and traffic to operations; hyperparameters and names never reach a prediction."""

__all__: list[str] = []
