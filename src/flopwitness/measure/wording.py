"""Numbers in sentences: one thing, two things, and the verb that goes with them."""

__all__ = ["agree", "plural"]


def agree(count: int, one: str, more: str) -> str:
    """The form of a verb that goes with so many: `one` for 1, else `more`."""
    return one if count == 1 else more


def plural(count: int, noun: str) -> str:
    """So many of a thing, such as `1 reading` or `1,702 readings`."""
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"
