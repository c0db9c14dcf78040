"""The command line: one file a verb, each a thin shell around the folders below."""

__all__: list[str] = []
