"""flopwitness: was a training run within a compute rule? An answer from evidence, not from trust.

The package is a house of folders, each of which answers a question an inspector would ask:

* `flopwitness.measure`: how much compute was used, seen from outside?
* `flopwitness.accounting`: how much has a model used in all, and what does a rule say to that?
* `flopwitness.catalogue`: which chips and rules are known, from which source?
* `flopwitness.foundation`: the words that all of them share.

Importing this package loads none of them: a command that only prints its help stays quick.
"""

__all__ = ["__version__"]

__version__ = "0.1.0"
