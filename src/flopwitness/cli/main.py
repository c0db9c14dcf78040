"""The entry point: verbs, exit status, and no traceback for a user."""

__all__ = ["run"]


def run() -> None:
    """Run the command line."""
    raise NotImplementedError
