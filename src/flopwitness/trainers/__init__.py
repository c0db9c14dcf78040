"""What can be trained again? A declarative, deterministic trainer of an allow-listed kind of model.

A run is one TOML file; nothing of it is code. What was trained from it once can be trained again from any
checkpoint, in whole or in single steps, by somebody who trusts nobody.
"""

__all__: list[str] = []
