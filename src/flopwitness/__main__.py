"""Run `python -m flopwitness` as the `flopwitness` command."""

from flopwitness.cli.main import run

__all__: list[str] = []

if __name__ == "__main__":
    run()
