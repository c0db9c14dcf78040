"""GPUs as nvidia-smi's logs tell them apart, and what only a whole log shows of them.

`power.draw` repeats `power.draw.average` or `power.draw.instant` where it stands beside one, and is used only
where these are empty. A figure that most GPUs do not have is left out where it is empty throughout; that a
GPU has no power reading at all is shown, and told where it was busy.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Final

import numpy as np

from flopwitness.foundation.errors import DecodeError
from flopwitness.foundation.verdict import Finding, Severity
from flopwitness.measure.samples import Channel, Device, Scope, Series, Trace
from flopwitness.measure.sources.nvidia_columns import (
    POWER_DRAW,
    QUANTITIES,
    Quantity,
    choose_fields,
    is_averaging,
    parse_whole_cell,
)
from flopwitness.measure.sources.recording import MOST_SERIES, Column, Recording, Times
from flopwitness.measure.sources.skips import excerpt
from flopwitness.measure.sources.source import Source
from flopwitness.measure.sources.values import Unreadable, is_missing

__all__ = ["GpuIdentity", "GpuRecording", "GpuSnapshots"]

_SNAPSHOT_EXPECTED: Final = "a snapshot of a GPU with its time, such as `nvidia-smi -q` prints"
_MOST_IDENTITIES: Final = 100_000
_BUSY_PCT: Final = 50.0
_MOST: Final = 0.5
_LONGEST_HOST: Final = 100
_LONGEST_WORD: Final = 80
_ROWS_LOOKED_AT: Final = 4_096
_MOST_TOGETHER: Final = 16
_LEAST_BURSTS: Final = 4
_PAUSE: Final = 5  # how many times as long as the rows before it took
_NEARLY_ALL: Final = 0.95
_VIRTUAL: Final = re.compile(r"-\d{1,3}[ABCQ]\b")  # the profile in a virtual GPU's name, as in `A40-8Q`


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuIdentity:
    """What a file says of the GPU that a row is of, each as it stands; b"" where it does not.

    Attributes:
        uuid: The GPU's UUID.
        bus_id: Its PCI bus address.
        index: Its number in its host.
        chip_name: Its product's name.
        host: The host's name.
        driver: The driver's version.
        mig_mode: `Enabled` where it is partitioned.
        virtualization: `VGPU` or `Host VGPU` where it is lent to virtual machines.
    """

    uuid: bytes = b""
    bus_id: bytes = b""
    index: bytes = b""
    chip_name: bytes = b""
    host: bytes = b""
    driver: bytes = b""
    mig_mode: bytes = b""
    virtualization: bytes = b""

    @property
    def is_shared(self) -> bool:
        """Whether the GPU is partitioned or lent to virtual machines."""
        return (
            _word(self.mig_mode).lower() == "enabled"
            or "vgpu" in _word(self.virtualization).lower()
            or bool(_VIRTUAL.search(_word(self.chip_name)))
        )


def _word(text: bytes) -> str:
    """What stands there, for a person; "" where the tool has nothing to say."""
    return "" if is_missing(text) else excerpt(text.strip())[:_LONGEST_WORD]


@dataclass(slots=True)
class _Known:
    """One GPU as it becomes known."""

    name: str
    is_averaging: bool | None
    columns: dict[str, Column] = field(default_factory=dict)


class GpuRecording:
    """A recording of GPUs that are told apart by what rows say of them."""

    def __init__(self, source: Source, *, times: Times) -> None:
        """Begin with nothing read."""
        self.recording = Recording(source, times=times)
        self._host = source.device[:_LONGEST_HOST]
        self._where = source.where
        self._names: dict[GpuIdentity, str] = {}
        self._known: dict[str, _Known] = {}
        self._aliases: dict[tuple[str, str], str] = {}
        self._unnamed = ""

    def device(self, identity: GpuIdentity) -> str:
        """The name of a GPU in this recording, which is described in it from now on.

        The UUID names it; else, in the host that the file stands for, its bus address or its number, and the
        UUID that these had before where one did. GPUs without any of these are of one device unless their
        products' names differ.
        """
        if identity in self._names:
            return self._names[identity]
        if len(self._names) >= _MOST_IDENTITIES:
            self._names.clear()
        name = self._names[identity] = self._name(identity)
        chip_name = _word(identity.chip_name)
        if name not in self._known:
            self._known[name] = _Known(name=name, is_averaging=is_averaging(chip_name))
        self.recording.describe(
            Device(
                name=name,
                chip_name=chip_name,
                host=_word(identity.host),
                driver=_word(identity.driver),
                is_shared=identity.is_shared,
            )
        )
        return name

    def column(self, device: str, name: str) -> Column:
        """The column of one quantity of one GPU.

        Raises:
            DecodeError: More series than any machine has.
        """
        known = self._known[device]
        column = known.columns.get(name)
        if column is None:
            kind = _as_on(known, QUANTITIES[name])
            column = known.columns[name] = self.recording.column(
                device, kind.channel, kind.scope, part=kind.part, averaged_s=kind.averaged_s
            )
        return column

    def trace(self, *, expected: str, found: bytes) -> Trace:
        """Everything as one trace, without figures that repeat others, and what only the whole shows.

        Args:
            expected: What a file with readings has, for the error.
            found: How the file begins, for the error.

        Raises:
            DecodeError: No reading is in it, or a time that no clock shows.
        """
        if not self.recording.n_readings:
            raise DecodeError("no reading", where=f"{self._where}:1", expected=expected, found=excerpt(found))
        trace = self.recording.trace()
        settled = {device: _settle(series) for device, series in _by_device(trace.series).items()}
        findings = [*trace.findings, *self._tell_unread(settled), *self._tell_together(settled)]
        series = tuple(item for items in settled.values() for item in items)
        return replace(trace, series=series, findings=tuple(findings))

    def _name(self, identity: GpuIdentity) -> str:
        host = _word(identity.host) or self._host
        bus_id, index = _word(identity.bus_id), _word(identity.index)
        keys = [key for key, word in ((bus_id, bus_id), (f"gpu{index}", index)) if word]
        uuid = _word(identity.uuid)
        if uuid.strip("GPU-0"):  # a masked one is all zeros and names nothing
            if len(self._aliases) < MOST_SERIES:
                self._aliases.update({(host, key): uuid for key in keys})
            return uuid
        if keys:
            return self._aliases.get((host, keys[0])) or f"{host}/{keys[0]}"
        chip_name = _word(identity.chip_name)
        self._unnamed = self._unnamed or chip_name
        return f"{host}/{chip_name}" if chip_name not in ("", self._unnamed) else host

    def _tell_unread(self, settled: Mapping[str, list[Series]]) -> list[Finding]:
        """The GPUs that worked and of which no power was read."""
        findings = []
        for device, series in settled.items():
            power = [item for item in series if _is_gpu_power(item)]
            if power and all(map(_is_empty, power)) and any(map(_is_busy, series)):
                findings.append(
                    Finding(
                        code="power-not-read",
                        severity=Severity.WARNING,
                        message=(
                            f"{device} was busy and none of its power was read: what was read of the others "
                            "is less than all"
                        ),
                        where=self._where,
                        expected="readings of its power",
                        found=f"{power[0].value.size} markers for a missing one",
                    )
                )
        return findings

    def _tell_together(self, settled: Mapping[str, list[Series]]) -> list[Finding]:
        """Rows that come in groups, as of several GPUs, where nothing tells these apart."""
        for item in settled.get(self._host, [])[:1]:
            n_together = _count_together(item)
            if n_together > 1:
                return [
                    Finding(
                        code="gpus-not-told-apart",
                        severity=Severity.WARNING,
                        message=(
                            f"rows come {n_together} at a time, as those of {n_together} GPUs do, and no "
                            "column tells these apart: they are taken as one device, which draws what one "
                            "of them does on average"
                        ),
                        where=self._where,
                        expected="a column such as uuid or index",
                        found=f"{n_together} rows at a time",
                    )
                ]
        return []


class GpuSnapshots:
    """What snapshots say, GPU by GPU, in whichever form they are written."""

    def __init__(self, source: Source) -> None:
        """Begin with nothing read."""
        self._gpus = GpuRecording(source, times=Times.LOCAL)
        self.recording = self._gpus.recording

    def add(self, line: int, time: int, fields: dict[str, bytes], *, bus_id: bytes, driver: bytes) -> None:
        """One GPU at one time.

        Args:
            line: Where it ends in the file.
            time: The snapshot's time [ns].
            fields: What is said of it, by the names of `QUANTITIES` and of `GpuIdentity`.
            bus_id: Its PCI bus address.
            driver: The driver's version.
        """
        chosen = choose_fields(fields)
        if not chosen:
            return
        said = {name: text for name, text in fields.items() if name not in QUANTITIES}
        device = self._gpus.device(GpuIdentity(**said, bus_id=bus_id, driver=driver))
        for name in chosen:
            value = np.nan
            try:
                value = parse_whole_cell(fields[name], QUANTITIES[name])
            except Unreadable:
                self.recording.skip(line, expected=f"a reading of {name}", found=fields[name])
            self._gpus.column(device, name).add(time, value)

    def trace(self, found: bytes) -> Trace:
        """Everything as one trace; `found` is how the file begins.

        Raises:
            DecodeError: No reading is in it.
        """
        return self._gpus.trace(expected=_SNAPSHOT_EXPECTED, found=found)


def _as_on(known: _Known, quantity: Quantity) -> Quantity:
    """The quantity as it is on one chip."""
    if quantity.part != POWER_DRAW or known.is_averaging is None:
        return quantity
    if known.is_averaging:
        return replace(quantity, channel=Channel.POWER_AVERAGE_W)
    return replace(quantity, averaged_s=0.0)


def _by_device(series: Iterable[Series]) -> dict[str, list[Series]]:
    found: dict[str, list[Series]] = {}
    for item in series:
        found.setdefault(item.device, []).append(item)
    return found


def _is_gpu_power(item: Series) -> bool:
    return item.scope is Scope.GPU and item.channel in (Channel.POWER_W, Channel.POWER_AVERAGE_W)


def _settle(series: list[Series]) -> list[Series]:
    """One GPU's series: `power.draw` only where nothing else has its power, and no empty ones beside others.

    A GPU without any power reading keeps one series that shows it.
    """
    power = [item for item in series if _is_gpu_power(item)]
    stated = [item for item in power if item.part != POWER_DRAW and not _is_empty(item)]
    drawn = [replace(item, part="") for item in power if item.part == POWER_DRAW and not _is_empty(item)]
    kept = stated or drawn or [replace(item, part="") for item in power[:1]]
    rest = [item for item in series if not _is_gpu_power(item)]
    return kept + [item for item in rest if not (_is_empty(item) and _is_special(item))]


def _is_empty(item: Series) -> bool:
    return not np.isfinite(item.value).any()


def _is_busy(item: Series) -> bool:
    """Whether the GPU worked in most readings of its utilisation."""
    if item.channel is not Channel.UTILISATION_PCT or _is_empty(item):
        return False
    return bool(np.mean(item.value[np.isfinite(item.value)] > _BUSY_PCT) > _MOST)


def _is_special(item: Series) -> bool:
    """Whether few GPUs have such a reading, so that its absence says nothing."""
    return item.scope is not Scope.GPU or bool(item.part)


def _count_together(item: Series) -> int:
    """How many rows come at a time: so many that the pause behind them is far longer than they took."""
    time_ns = item.utc_ns[:_ROWS_LOOKED_AT]
    step_ns = np.diff(time_ns)
    for n_together in range(2, _MOST_TOGETHER + 1):
        n_bursts = step_ns.size // n_together
        if n_bursts < _LEAST_BURSTS:
            break
        bursts = step_ns[: n_bursts * n_together].reshape(n_bursts, n_together)
        took_ns, pause_ns = bursts[:, :-1].sum(axis=1), bursts[:, -1]
        if np.mean((took_ns >= 0) & (took_ns * _PAUSE < pause_ns)) > _NEARLY_ALL:
            return n_together
    return 1
