"""Public contract kits: write a reader or a backend, run the kit over it."""

__all__: list[str] = []
