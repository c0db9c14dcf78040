"""What if? Everything here is made up, seeded, and says so in its own output."""

__all__: list[str] = []
