"""The errors of the whole house: few classes, one root, and structured fields.

    FlopwitnessError
    ├── InputError                your call or file is wrong            exit 2
    │   ├── DecodeError           bytes that are not what they should be
    │   ├── UnknownChipError      the catalogue does not know this chip
    │   ├── UnknownRuleError      the catalogue does not know this rule
    │   ├── NotCalibratedError    no calibration fits this device
    │   └── OutOfRangeError       a number lies outside what can be judged
    ├── EvidenceError             the evidence contradicts itself       exit 1
    │   ├── SignatureError
    │   ├── ProofError
    │   ├── RollbackError
    │   └── CommitmentError
    ├── SourceError               a sensor or driver failed             exit 4
    │   ├── SourceUnavailableError
    │   └── GapError
    └── BackendError              a database or cluster failed          exit 4

Free text rots, so what matters travels in fields: `where`, `expected`, `found`.
"""

from typing import ClassVar

__all__ = [
    "BackendError",
    "CommitmentError",
    "DecodeError",
    "EvidenceError",
    "FlopwitnessError",
    "GapError",
    "InputError",
    "NotCalibratedError",
    "OutOfRangeError",
    "ProofError",
    "RollbackError",
    "SignatureError",
    "SourceError",
    "SourceUnavailableError",
    "UnknownChipError",
    "UnknownRuleError",
]


def _one_line(text: str) -> str:
    """Show control characters, line breaks included, as escapes: an error is one line, whatever it quotes."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in text)


class FlopwitnessError(Exception):
    """Anything that this package refuses or fails at, told in one line.

    Attributes:
        message: What went wrong, as a statement.
        where: The place: a file, line, field or device; "" where there is none.
        expected: What should have stood there; "" where it goes without saying.
        found: What stood there; "" where nothing did.
        exit_status: The status with which the command ends, as the README lists them.
    """

    exit_status: ClassVar[int] = 4

    def __init__(self, message: str, *, where: str = "", expected: str = "", found: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.where = where
        self.expected = expected
        self.found = found

    def __str__(self) -> str:
        """One line: where, what, expected and found, with unprintable characters escaped."""
        head = f"{self.where}: {self.message}" if self.where else self.message
        details = [
            f"{name} {text}" for name, text in (("expected", self.expected), ("found", self.found)) if text
        ]
        return _one_line(f"{head} ({'; '.join(details)})" if details else head)


class InputError(FlopwitnessError):
    """The call or the input is wrong, and nobody is accused."""

    exit_status = 2


class DecodeError(InputError):
    """Bytes are not what they claim to be; the only error that a decoder raises."""


class UnknownChipError(InputError):
    """The catalogue holds no chip of this name."""


class UnknownRuleError(InputError):
    """The catalogue holds no rule of this name."""


class NotCalibratedError(InputError):
    """No calibration fits the device, or one that is offered must be refused."""


class OutOfRangeError(InputError):
    """A number lies outside the range in which it can be judged."""


class EvidenceError(FlopwitnessError):
    """The evidence contradicts itself or a commitment."""

    exit_status = 1


class SignatureError(EvidenceError):
    """A signature does not verify under the key that it names."""


class ProofError(EvidenceError):
    """An inclusion or consistency proof does not hold."""


class RollbackError(EvidenceError):
    """A counter, log or tree went backwards."""


class CommitmentError(EvidenceError):
    """What was opened is not what was committed to."""


class SourceError(FlopwitnessError):
    """A sensor or driver failed."""


class SourceUnavailableError(SourceError):
    """A sensor or driver is not there, or may not be read."""


class GapError(SourceError):
    """Two readings lie further apart than the caller allows."""


class BackendError(FlopwitnessError):
    """A database or a cluster failed."""
