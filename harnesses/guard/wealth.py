"""The money of the monitor's bets, item by item; imports pomdp.compiled and numpy.

One unit of money waits. Before item t (from 0) the part 1 / ((t+1)(t+2)) of it enters, split evenly over the bets,
and 1 / (t+2) goes on waiting: whenever a guard goes wrong, some money has not yet been lost to its good days. Each
bet multiplies what it holds by 1 + l (bad - doubt). Compiled, because each step needs the one before it, and made
of sums, products and quotients alone, so that all machines agree to the last bit.
"""

from __future__ import annotations

import numpy as np

from pomdp.compiled import compiled

UNIT = 512
"""Money is kept as a number times 2^(512 shift), shift >= 0."""

_BIG = 2.0**UNIT
_SMALL = 2.0**-UNIT


@compiled
def grow(
    kappas: np.ndarray,
    money: np.ndarray,
    shift: int,
    time: int,
    doubt: np.ndarray,
    bad: np.ndarray,
    total: np.ndarray,
    shifts: np.ndarray,
) -> int:
    """Carry `money` float64 `[bets]`, in place, over items `[N]`; returns the last shift.

    Writes the whole evidence after each item, waiting money included, as `total[i] * 2^(512 shifts[i])`. An item
    without doubt changes nothing. The bet of kappa is kappa - 1, or half of the largest, 1 / (2 doubt), if less.
    """
    bets = kappas.size
    for i in range(doubt.size):
        q = doubt[i]
        scale = 1.0
        for _ in range(shift):
            scale *= _SMALL
        t = float(time + i)
        new = scale / ((t + 1.0) * (t + 2.0)) / bets
        whole = 0.0
        largest = 0.0
        for k in range(bets):
            stake = min((kappas[k] - 1.0) * q, 0.5)
            factor = 1.0
            if q > 0.0:
                factor = 1.0 - stake
                if bad[i]:
                    factor += stake / q
            held = (money[k] + new) * factor
            money[k] = held
            whole += held
            largest = max(largest, held)
        whole += scale / (t + 2.0)
        if largest > _BIG:
            money *= _SMALL
            whole *= _SMALL
            shift += 1
        elif shift > 0 and largest < 1.0:
            money *= _BIG
            whole *= _BIG
            shift -= 1
        total[i] = whole
        shifts[i] = shift
    return shift
