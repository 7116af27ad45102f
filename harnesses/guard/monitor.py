"""A test of a guard's promise over a stream of labelled sends, valid at every moment: theorem T10; imports region.

Each item multiplies a wealth by 1 + l (bad - doubt), with bad = 1 - y, doubt = 1 - p and a bet 0 <= l <= 1 / doubt
that is fixed before the label is seen. If E[bad | past, p] <= doubt the wealth is a supermartingale with mean at
most 1, so it ever reaches 1 / delta with probability at most delta (Ville): one may look after every item and stop
at will. Calibration on average is not enough: labels that are all equal to the first, 0 or 1 with probability 1/2,
agree with p = 1/2 on average and still make the wealth large half of the time.

The wealth is a sum of parts, one for each bet and each time at which money enters (`wealth`), all of which are
supermartingales, and so is their sum. Bet kappa - 1 is the one that grows fastest, at small doubt, where doubts are
kappa times too small; half of the largest bet is its limit, so that no allowed item takes more than half. Bets
depend on the present report alone and money enters by the clock: neither can peek at labels. Not knowing kappa
costs a factor of at most the number of bets, and not knowing that the guard breaks at item t one of (t+1)(t+2).
Source: I. Waudby-Smith and A. Ramdas, Estimating means of bounded random variables by betting (2024).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from harnesses.guard.region import GuardError, probability
from harnesses.guard.scores import Scores
from harnesses.guard.tail import level, log

KAPPAS = (1.25, 1.5, 2.0, 4.0, 8.0, 16.0, 64.0)
RECENT = 10
"""Items kept as evidence."""
REPORT = "report"

_CHUNK = 1 << 16
_LOG_UNIT = 512 * math.log(2)  # of `wealth.UNIT`, which is not imported before it is needed

Item = tuple[int, float, int]
"""Time, counted from 1, report and label."""


@dataclass(frozen=True)
class Alarm:
    """The first time at which the evidence reached 1 / delta.

    `time` counts items from 1; `log_e` the natural logarithm of the evidence then, None where an item that was
    promised never to be bad was; `bad` items so far against the `promised` sum of doubts; the `last` items.
    """

    time: int
    log_e: float | None
    bad: int
    promised: float
    last: tuple[Item, ...]

    def json(self) -> dict[str, Any]:
        """The record; `e_value` None where it is infinite or beyond a float."""
        return {**vars(self), "e_value": _e_value(self.log_e), "last": [list(item) for item in self.last]}


@dataclass(frozen=True)
class State:
    """What a monitor remembers after `time` items; `json` and `from_json` keep it to the last bit.

    `money` of each bet and `evidence`, the whole of it, are in units of 2^(512 shift). `impossible`: time of the first
    bad item that was promised with certainty not to be: from then on the evidence is infinite. `peak`: the largest
    natural logarithm of the evidence so far, impossible items left out.
    """

    monitor: str
    time: int
    bad: int
    promised: float
    money: tuple[float, ...]
    shift: int
    evidence: float
    peak: float
    impossible: int | None
    recent: tuple[Item, ...]
    alarm: Alarm | None

    @property
    def log_e(self) -> float:
        """Natural logarithm of the evidence against the promise; infinite after an impossible item."""
        return math.inf if self.impossible is not None else _log(self.evidence, self.shift)

    def json(self) -> dict[str, Any]:
        """Plain numbers, lists and None, no infinities: json.dumps writes them so that from_json reads the same."""
        log_e = None if self.impossible is not None else self.log_e
        return {
            **vars(self),
            "money": list(self.money),
            "recent": [list(item) for item in self.recent],
            "alarm": None if self.alarm is None else self.alarm.json(),
            "log_e": log_e,
            "e_value": _e_value(log_e),
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> State:
        """The state that `json` gave. Raises GuardError where the data are none."""
        try:
            alarm = data["alarm"]
            if alarm is not None:
                kept = {name: alarm[name] for name in ("time", "log_e", "bad", "promised")}
                alarm = Alarm(**kept, last=_items(alarm["last"]))
            return cls(
                str(data["monitor"]),
                int(data["time"]),
                int(data["bad"]),
                float(data["promised"]),
                tuple(map(float, data["money"])),
                int(data["shift"]),
                float(data["evidence"]),
                float(data["peak"]),
                None if data["impossible"] is None else int(data["impossible"]),
                _items(data["recent"]),
                alarm,
            )
        except (KeyError, TypeError, ValueError) as error:
            raise GuardError(
                f"no state of a monitor ({type(error).__name__}: {error}); give what State.json wrote"
            ) from error


@dataclass(frozen=True)
class Monitor:
    """An alarm on broken promises with P(ever a false alarm) <= delta.

    `against`: "report" tests E[bad | past, p] <= 1 - p item by item; a number tests E[bad | past] <= that number,
    such as the promise 1 - tau_act = 1/32 of M14 Eq. 5. `kappas`: the mixture's bets plus one, above 1. The
    arithmetic is in floats, so the alarm level is exact up to rounding. Raises GuardError for what is none of it.
    """

    delta: Any
    against: Any = REPORT
    kappas: tuple[float, ...] = KAPPAS

    def __post_init__(self) -> None:
        object.__setattr__(self, "delta", level(self.delta, "delta"))
        if self.against != REPORT:
            object.__setattr__(self, "against", probability(self.against, "against"))
        if not self.kappas or not all(1 < kappa < math.inf for kappa in self.kappas):
            raise GuardError(f"kappas are {self.kappas}; give finite numbers above 1, such as (2.0, 8.0)")

    @property
    def name(self) -> str:
        """What its states are kept for."""
        return f"delta {self.delta}, against {self.against}, kappas {' '.join(map(repr, self.kappas))}"

    def start(self) -> State:
        """The state before the first item."""
        return State(self.name, 0, 0, 0.0, (0.0,) * len(self.kappas), 0, 1.0, 0.0, None, (), None)

    def observe(self, state: State, p: Any, y: Any) -> State:
        """The state after one more item that was sent with report p and turned out y, 1 = allowed."""
        return self.run([p], [y], state)[0]

    def run(self, p: Any, y: Any, state: State | None = None) -> tuple[State, np.ndarray]:
        """The state after items `[N]` and the log evidence `[N]` after each, infinite after an impossible item.

        Equal to the last bit to observing the items one by one. Goes on after an alarm, which it keeps.
        """
        state = self.start() if state is None else state
        if state.monitor != self.name:
            raise GuardError(f"the state is of a monitor with {state.monitor}; this one has {self.name}")
        data = Scores.of(p, y, source="stream")
        out = np.empty(data.size)
        for start in range(0, data.size, _CHUNK):
            part = slice(start, start + _CHUNK)
            state, out[part] = self._advance(state, data.p[part], data.y[part])
        return state, out

    def stream(self, items: Any, state: State | None = None) -> Iterator[State]:
        """The state after each pair (p, y) of an iterable, as it comes."""
        state = self.start() if state is None else state
        for p, y in items:
            state = self.observe(state, p, y)
            yield state

    def _advance(self, state: State, p: np.ndarray, y: np.ndarray) -> tuple[State, np.ndarray]:
        from harnesses.guard.wealth import grow  # loads a compiler, which the other parts do not need

        doubt = 1 - p if self.against == REPORT else np.full(p.size, float(self.against))
        wrong = y == 0
        money, total, shifts = np.array(state.money), np.empty(p.size), np.empty(p.size, dtype=np.int64)
        shift = grow(np.array(self.kappas), money, state.shift, state.time, doubt, wrong, total, shifts)
        log_e = _log(total, shifts)
        promised = np.cumsum(np.concatenate([[state.promised], doubt]))[1:]  # in order, as one by one
        bad = state.bad + np.cumsum(wrong)
        peak = max(state.peak, float(log_e.max()))
        never = np.flatnonzero(wrong & (doubt == 0))
        impossible = state.impossible
        if impossible is None and never.size:
            impossible = state.time + 1 + int(never[0])
        if impossible is not None:
            log_e[max(0, impossible - 1 - state.time) :] = math.inf
        alarm = state.alarm
        over = np.flatnonzero(log_e >= -log(self.delta))
        if alarm is None and over.size:
            i = int(over[0])
            found = float(log_e[i])
            alarm = Alarm(
                state.time + i + 1,
                found if math.isfinite(found) else None,
                int(bad[i]),
                float(promised[i]),
                _recent(state, p, y, i + 1),
            )
        after = replace(
            state,
            time=state.time + p.size,
            bad=int(bad[-1]),
            promised=float(promised[-1]),
            money=tuple(map(float, money)),
            shift=int(shift),
            evidence=float(total[-1]),
            peak=peak,
            impossible=impossible,
            recent=_recent(state, p, y, p.size),
            alarm=alarm,
        )
        return after, log_e


def _log(evidence: Any, shift: Any) -> Any:
    """Natural logarithm of evidence `[N]` kept in units of 2^(512 shift)."""
    found = np.log(evidence) + np.asarray(shift) * _LOG_UNIT
    return float(found) if found.ndim == 0 else found


def _recent(state: State, p: np.ndarray, y: np.ndarray, count: int) -> tuple[Item, ...]:
    """The last items after the first `count` of these."""
    first = max(0, count - RECENT)
    new = [(state.time + i + 1, float(p[i]), int(y[i])) for i in range(first, count)]
    return (*state.recent, *new)[-RECENT:]


def _items(values: Any) -> tuple[Item, ...]:
    return tuple((int(time), float(p), int(y)) for time, p, y in values)


def _e_value(log_e: float | None) -> float | None:
    return math.exp(log_e) if log_e is not None and log_e < 709 else None
