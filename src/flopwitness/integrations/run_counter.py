"""Count a run of many steps at next to no cost: one step of each kind, checked again now and then.

Counting makes a step several times as slow, so the first step of each kind is counted and the others are
taken to be like it. Equal shapes need not mean equal work (a mixture of experts, an early exit), so the 2nd,
the 32nd, the 500th, the 1,000th and every further 1,000th step of a kind are counted too; once two differ,
five times as many are. What differed is told, with bounds.
"""

from collections.abc import Hashable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from threading import Lock
from typing import TYPE_CHECKING, Final

from flopwitness.foundation.errors import InputError
from flopwitness.integrations.formulas.formula import Formula
from flopwitness.integrations.operation_count import CountNote, NoteKind, OperationCount, Work
from flopwitness.integrations.operation_counter import OperationCounter
from flopwitness.integrations.requirement import checked_formulas, checked_model, require_torch
from flopwitness.integrations.run_count import RunCount, Span, StepKind

if TYPE_CHECKING:
    from torch import nn

    from flopwitness.integrations.step_signature import ModelState

__all__ = ["MOST_KINDS", "MOST_VARIANTS", "RECOUNT_EVERY", "RunCounter"]

RECOUNT_EVERY: Final = 1000
MOST_VARIANTS: Final = 16
"""Kinds that differ in nothing but numbers and texts, before those are no longer looked at."""
MOST_KINDS: Final = 10_000
"""Kinds that are kept apart; every step of a further one is counted."""
_EARLY: Final = frozenset({2, 32})
_OFTENER: Final = 5
_NOTHING: Final = OperationCount(work=Work())
_VARIES: Final = (
    "steps of these shapes differ in their work; {} were counted, from {} to {} FLOP, and the others stand "
    "for the last one counted before them"
)
_SELDOM: Final = (
    "{} are taken to be like the {} counted at the start; that shapes alone decide the work was hardly "
    "checked"
)
_INDISTINCT: Final = (
    "{} had neither batch nor key: nothing tells them apart but the model's state, whatever their work was"
)
_CHANGED: Final = (
    "the model's modules or parameters were found to be others than before; the multiplied steps since the "
    "last one counted may have had either"
)
_VALUES: Final = (
    f"more than {MOST_VARIANTS} kinds of steps differed in nothing but numbers and texts; the values of "
    "these were not looked at from then on"
)
_BOUNDED: Final = (
    f"more than {MOST_KINDS} kinds of steps; every step of a further one was counted, and they stand as one"
)
_OTHERS: Final = "steps of all other kinds"
_FAILED: Final = (
    "{} ended in an exception; what ran before it is counted, but for {} of which only the upper bound knows"
)
_FEW: Final = 2
_NO_WORK: Final = Span(low_flop=0, high_flop=0)


@dataclass(slots=True, kw_only=True)
class _Kind:
    """The running sums of one kind of steps."""

    description: str
    is_indistinct: bool = False
    is_mixed: bool = False
    counted: int = 0
    multiplied: int = 0
    failed: int = 0
    total: OperationCount = _NOTHING
    seen: Work = _NOTHING.work
    last: OperationCount = _NOTHING
    since_last: int = 0
    spans: tuple[Span, Span] | None = None
    unseen_failures: int = 0

    @property
    def varies(self) -> bool:
        return self.spans is not None and any(span.low_flop != span.high_flop for span in self.spans)

    def is_due(self, every: int) -> bool:
        """Whether the next step is to be counted."""
        occurrence = self.counted + self.multiplied + 1
        if self.spans is None or self.is_mixed or (occurrence in _EARLY and occurrence < every):
            return True
        if self.varies:
            return occurrence % max(1, every // _OFTENER) == 0
        return occurrence % every == 0 or occurrence * 2 == every

    def add_counted(self, count: OperationCount) -> None:
        """A step that was counted to its end."""
        self.total = self.total + self.last * self.since_last + count
        self.last, self.since_last = count, 0
        self.seen += count.work
        self.counted += 1
        values = (count.model_flop, count.executed_flop)
        spans = self.spans or tuple(Span(low_flop=flop, high_flop=flop) for flop in values)
        self.spans = (spans[0].widened(values[0]), spans[1].widened(values[1]))

    def add_multiplied(self) -> None:
        """A step that is taken to be like the last one counted."""
        self.multiplied += 1
        self.since_last += 1

    def add_failed(self, partial: OperationCount | None) -> None:
        """A step that ended in an exception; what ran of it where it was being counted."""
        self.failed += 1
        if partial is None:
            self.unseen_failures += 1
        else:
            self.total = self.total + partial
            self.seen += partial.work

    def sum(self) -> OperationCount:
        """All steps of this kind."""
        return self.total + self.last * self.since_last

    def bounds(self) -> tuple[Span, Span]:
        """Bounds of the work without and with recomputation."""
        model, executed = self.spans or (_NO_WORK, _NO_WORK)
        return (
            self._bound(self.seen.model_flop, model),
            self._bound(self.seen.executed_flop, executed),
        )

    def _bound(self, seen_flop: int, span: Span) -> Span:
        return Span(
            low_flop=seen_flop + self.multiplied * span.low_flop,
            high_flop=seen_flop + (self.multiplied + self.unseen_failures) * span.high_flop,
        )

    def record(self) -> StepKind:
        """What a reader gets of it."""
        return StepKind(
            description=self.description,
            counted=self.counted,
            multiplied=self.multiplied,
            failed=self.failed,
            executed=self.spans[1] if self.spans else None,
        )

    def notes(self) -> list[CountNote]:
        """What the multiplication rests on, where it does not go without saying."""
        told = []
        if self.spans and self.varies:
            span = self.spans[1]
            told.append((NoteKind.WORK_VARIES, _VARIES.format(self.counted, span.low_flop, span.high_flop)))
        elif self.multiplied and self.counted <= _FEW:
            told.append((NoteKind.COUNTED_SELDOM, _SELDOM.format(self.multiplied, self.counted)))
        if self.is_indistinct and self.counted + self.multiplied > 1:
            told.append((NoteKind.STEPS_INDISTINCT, _INDISTINCT.format(self.counted + self.multiplied)))
        if self.failed:
            told.append((NoteKind.STEP_FAILED, _FAILED.format(self.failed, self.unseen_failures)))
        return [CountNote(kind=kind, message=f"{self.description}: {text}") for kind, text in told]


@dataclass(slots=True, kw_only=True)
class _Kinds:
    """Every kind of steps met so far, by what its steps have in common."""

    state: "ModelState"
    by_signature: dict[Hashable, _Kind] = field(default_factory=dict)
    variants: dict[Hashable, int] = field(default_factory=dict)
    has_values: bool = True
    notes: dict[CountNote, None] = field(default_factory=dict)

    def of(self, batch: object, key: Hashable) -> _Kind:
        """The kind of a step, which may be the first of its kind.

        Raises:
            InputError: The batch hides its size, or the key cannot be compared.
        """
        from flopwitness.integrations.step_signature import signature_of  # noqa: PLC0415 (loads PyTorch)

        inputs = signature_of(batch, has_values=self.has_values)
        try:
            kind = self.by_signature.get((inputs, key, self.state.signature()))
        except TypeError as error:
            raise InputError(
                "a key is compared with others", expected="a hashable value", found=repr(key)
            ) from error
        return self._added(batch, key) if kind is None else kind

    def refresh(self) -> None:
        """List the model's parts again, and tell where they are others than before."""
        if self.state.refresh() and self.by_signature:
            self._tell(NoteKind.MODEL_CHANGED, _CHANGED)

    def _added(self, batch: object, key: Hashable) -> _Kind:
        """A kind that was not met, unless the model's parts or too many values only make it seem so."""
        from flopwitness.integrations.step_signature import (  # noqa: PLC0415 (loads PyTorch)
            describe_signature,
            signature_of,
        )

        self.refresh()
        state = self.state.signature()
        is_full = len(self.by_signature) >= MOST_KINDS
        if self.has_values and not is_full:
            by_type = (signature_of(batch, has_values=False), key, state)
            self.variants[by_type] = self.variants.get(by_type, 0) + 1
            if self.variants[by_type] > MOST_VARIANTS:
                self.has_values = False
                self.variants.clear()
                self._tell(NoteKind.VALUES_IGNORED, _VALUES)
        signature = (signature_of(batch, has_values=self.has_values), key, state)
        if is_full and signature not in self.by_signature:
            self._tell(NoteKind.KINDS_BOUNDED, _BOUNDED)
            return self.by_signature.setdefault(_OTHERS, _Kind(description=_OTHERS, is_mixed=True))
        kind = _Kind(
            description=f"steps of {describe_signature(batch, key)}",
            is_indistinct=batch is None and key is None,
        )
        return self.by_signature.setdefault(signature, kind)

    def _tell(self, kind: NoteKind, message: str) -> None:
        self.notes[CountNote(kind=kind, message=message)] = None


class RunCounter:
    """Counts the steps of a run, one after the other.

    Args:
        model: The model that is trained; its names stand in the rows by module, and its flags (training or
            not, which parameters get a gradient) tell kinds of steps apart.
        formulas: As of `OperationCounter`.
        recount_every: Of one kind of steps, how many to multiply before one is counted again. With one,
            every step is counted; less than the default costs more than a percent.

    Raises:
        InputError: PyTorch is not installed, `model` is no module, a formula is none, or `recount_every` is
            no positive whole number.
    """

    def __init__(
        self,
        model: "nn.Module | None" = None,
        *,
        formulas: Mapping[str, Formula] | None = None,
        recount_every: int = RECOUNT_EVERY,
    ) -> None:
        require_torch()
        if type(recount_every) is not int or recount_every < 1:
            raise InputError(
                "steps cannot be counted so often",
                expected="a whole number of at least 1",
                found=repr(recount_every),
            )
        self._model = checked_model(model)
        self._formulas = checked_formulas(formulas)
        self._every = recount_every
        from flopwitness.integrations.step_signature import ModelState  # noqa: PLC0415 (loads PyTorch)

        self._kinds = _Kinds(state=ModelState(model))
        self._step_lock = Lock()

    @contextmanager
    def step(self, batch: object = None, *, key: Hashable = None) -> Iterator[None]:
        """One step of the run, forward and backward and whatever belongs to it.

        An exception goes through: what had run of a counted step stays in the total, a step that was not
        counted may add up to one whole step to the upper bound; neither makes a later step count less.

        Args:
            batch: What the step works on, tensors in any nest of containers; only shapes and types are read.
            key: Whatever else decides how much work the step is, such as the phase of a schedule.

        Raises:
            InputError: Another step of this run is under way, the batch hides its size, or the key cannot be
                compared.
        """
        if not self._step_lock.acquire(blocking=False):
            raise InputError("a step of this run is under way; steps follow one another, in any one thread")
        try:
            kind = self._kinds.of(batch, key)
            if kind.is_due(self._every):
                self._kinds.refresh()
                with self._counted(kind):
                    yield
            else:
                with _multiplied(kind):
                    yield
        finally:
            self._step_lock.release()

    def count(self) -> RunCount:
        """Every step that has ended.

        Raises:
            InputError: No step was begun, so there is nothing that could be zero.
        """
        kinds = list(self._kinds.by_signature.values())
        if not kinds:
            raise InputError("nothing was counted: run each step inside `with run.step(batch):`")
        count = sum((kind.sum() for kind in kinds), _NOTHING)
        bounds = [kind.bounds() for kind in kinds]
        notes = [note for kind in kinds for note in kind.notes()]
        return RunCount(
            count=count,
            model=sum((model for model, _ in bounds), _NO_WORK),
            executed=sum((executed for _, executed in bounds), _NO_WORK),
            kinds=tuple(kind.record() for kind in kinds),
            notes=(*self._kinds.notes, *notes, *count.notes),
        )

    @contextmanager
    def _counted(self, kind: _Kind) -> Iterator[None]:
        counter = OperationCounter(self._model, formulas=self._formulas)
        with counter:
            try:
                yield
            except BaseException:
                kind.add_failed(counter.count())
                raise
        kind.add_counted(counter.count())


@contextmanager
def _multiplied(kind: _Kind) -> Iterator[None]:
    try:
        yield
    except BaseException:
        kind.add_failed(None)
        raise
    kind.add_multiplied()
