"""The POMDP: a validated tuple with names, sparse floats and an exact copy; imports pomdp.rational alone.

`POMDP.build` is the one door through which every model comes: readers, library tasks and constructors call it.
What passed it is consistent, so nothing else in the project checks a model again.
"""

from __future__ import annotations

import difflib
import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
from scipy.sparse import csr_array, issparse

from pomdp.rational import RationalMatrix, read_rational

# A row whose sum is this close to 1 is taken for a rounded one and divided by its exact sum.
ROW_TOLERANCE = Fraction(1, 100_000)


class ModelError(ValueError):
    """A model, or what is asked of one, is wrong; the message is one line that names the entry and a remedy."""


@dataclass(frozen=True, eq=False)
class ExactModel:
    """The numbers of a POMDP as exact rationals: T, Z one matrix an action, R `[A, S]`, start, discount."""

    T: tuple[RationalMatrix, ...]
    Z: tuple[RationalMatrix, ...]
    R: RationalMatrix
    start: dict[int, Fraction]
    discount: Fraction | None


@dataclass(frozen=True, eq=False)
class POMDP:
    """M = (S, A, T, O, Z, R, gamma, b0), all sets finite. Source: design of the formal core, section 1; M1 §1.4.

    `T[a]` is `[S, S']`, `Z[a]` is `[S', O]` (the observation depends on the state reached), both float64 CSR and
    row-stochastic; `R` `[A, S]` is the expected immediate reward, already negated where a file gave costs
    (`cost`); `start` `[S]`; `discount` None where whoever uses the model must give one. `exact` holds the same
    numbers as rationals, `normalised_rows` counts the rows that were divided by a sum near 1.
    """

    states: tuple[str, ...]
    actions: tuple[str, ...]
    observations: tuple[str, ...]
    T: tuple[csr_array, ...]
    Z: tuple[csr_array, ...]
    R: np.ndarray
    start: np.ndarray
    discount: float | None
    exact: ExactModel
    cost: bool = False
    normalised_rows: int = 0
    name: str = ""

    @classmethod
    def build(
        cls,
        *,
        states: int | Iterable[str],
        actions: int | Iterable[str],
        observations: int | Iterable[str],
        T: Sequence[Any],
        Z: Sequence[Any],
        R: Any,
        start: Any = None,
        discount: Any = None,
        name: str = "",
        cost: bool = False,
    ) -> POMDP:
        """Validate and store. Names may be counts; numbers are anything `read_rational` accepts.

        `T[a]` and `Z[a]`: a dense array, a scipy sparse matrix, a RationalMatrix or a sequence of rows
        {column: probability}. `R`: `[A, S]`, `[A, S, S']` or `[A, S, S', O]` (reduced by expectation) or a
        RationalMatrix `[A, S]`, in rewards. `start`: None for uniform, a vector `[S]`, a state's name, or
        {state index: probability}. Raises ModelError naming the offending entry.
        """
        state_names, action_names = _names(states, "state"), _names(actions, "action")
        observation_names = _names(observations, "observation")
        S, A, O = len(state_names), len(action_names), len(observation_names)
        for label, given in (("T", T), ("Z", Z)):
            if len(given) != A:
                raise ModelError(f"{label} has {len(given)} matrices for {A} actions; give one an action")
        count = 0
        kernels: dict[str, list[RationalMatrix]] = {"T": [], "Z": []}
        for label, given, columns, kind in (("T", T, S, "transition"), ("Z", Z, O, "observation")):
            for a, matrix in enumerate(given):
                where = f"{kind} row [{action_names[a]}, "
                exact, fixed = _stochastic(matrix, (S, columns), where, state_names)
                kernels[label].append(exact)
                count += fixed
        rewards = _rewards(R, kernels["T"], kernels["Z"], (A, S, O))
        first = _start(start, state_names)
        fraction = None if discount is None else _number(discount, "discount")
        if fraction is not None and not 0 <= fraction <= 1:
            raise ModelError(f"discount {discount} is outside [0, 1]; give one such as 0.95")
        exact_model = ExactModel(tuple(kernels["T"]), tuple(kernels["Z"]), rewards, first, fraction)
        return _from_exact(
            exact_model,
            state_names,
            action_names,
            observation_names,
            cost=cost,
            normalised_rows=count,
            name=name,
        )

    @property
    def num_states(self) -> int:
        """S."""
        return len(self.states)

    @property
    def num_actions(self) -> int:
        """A."""
        return len(self.actions)

    @property
    def num_observations(self) -> int:
        """O."""
        return len(self.observations)

    def state_index(self, name: str) -> int:
        """Index of a state; ModelError listing near names."""
        return _index(self.states, name, "state")

    def action_index(self, name: str) -> int:
        """Index of an action; ModelError listing near names."""
        return _index(self.actions, name, "action")

    def observation_index(self, name: str) -> int:
        """Index of an observation; ModelError listing near names."""
        return _index(self.observations, name, "observation")

    @cached_property
    def digest(self) -> str:
        """SHA-256 of all exact numbers: equal for models that differ in names alone."""
        e = self.exact
        sha = hashlib.sha256()
        for matrix in (*e.T, *e.Z, e.R):
            sha.update(matrix.text().encode())
        sha.update(f"{sorted(e.start.items())}{e.discount}".encode())
        return sha.hexdigest()

    @cached_property
    def terminal(self) -> np.ndarray:
        """Mask `[S]` of the states that every action leaves unchanged with reward 0: the run is over there."""
        stays = np.ones(self.num_states, dtype=bool)
        for a in range(self.num_actions):
            stays &= (self.T[a].diagonal() == 1.0) & (self.R[a] == 0.0)
        return stays

    def blinded(self) -> POMDP:
        """The same task with one observation `-`: its best value is W, that of the best open-loop sequence."""
        ones = RationalMatrix.from_rows([{0: Fraction(1)}] * self.num_states, 1)
        exact = replace(self.exact, Z=(ones,) * self.num_actions)
        return _from_exact(exact, self.states, self.actions, ("-",), cost=self.cost, name=self.name)

    def with_discount(self, discount: Any) -> POMDP:
        """The same model with another discount in [0, 1], or None."""
        fraction = None if discount is None else _number(discount, "discount")
        if fraction is not None and not 0 <= fraction <= 1:
            raise ModelError(f"discount {discount} is outside [0, 1]; give one such as 0.95")
        value = None if fraction is None else float(fraction)
        return replace(self, discount=value, exact=replace(self.exact, discount=fraction))

    def with_start(self, start: Any) -> POMDP:
        """The same model with another start, given as `build` takes it."""
        first = _start(start, self.states)
        return replace(self, start=_dense(first, self.num_states), exact=replace(self.exact, start=first))

    def __repr__(self) -> str:
        """One line: name, sizes and discount."""
        size = f"{self.num_states} states, {self.num_actions} actions, {self.num_observations} observations"
        return f"POMDP({self.name or 'unnamed'}: {size}, discount {self.discount})"


def _from_exact(
    exact: ExactModel,
    states: tuple[str, ...],
    actions: tuple[str, ...],
    observations: tuple[str, ...],
    **rest: Any,
) -> POMDP:
    """The model whose floats are the nearest to validated exact numbers; equal matrices are stored once."""
    floats: dict[int, csr_array] = {}
    for matrix in (*exact.T, *exact.Z):
        if id(matrix) not in floats:
            floats[id(matrix)] = matrix.to_csr()
    return POMDP(
        states,
        actions,
        observations,
        T=tuple(floats[id(m)] for m in exact.T),
        Z=tuple(floats[id(m)] for m in exact.Z),
        R=exact.R.to_csr().toarray(),
        start=_dense(exact.start, len(states)),
        discount=None if exact.discount is None else float(exact.discount),
        exact=exact,
        **rest,
    )


def _names(given: int | Iterable[str], kind: str) -> tuple[str, ...]:
    """Names, or '0', '1', ... for a count; distinct and at least one."""
    if isinstance(given, (int, np.integer)):
        names = tuple(str(i) for i in range(int(given)))
    else:
        names = tuple(str(n) for n in given)
    if not names:
        raise ModelError(f"a model needs at least one {kind}")
    if len(set(names)) != len(names):
        twice = next(n for i, n in enumerate(names) if n in names[:i])
        raise ModelError(f"{kind} {twice!r} is named twice; every {kind} needs a name of its own")
    return names


def _index(names: tuple[str, ...], name: str, kind: str) -> int:
    """Position of a name, or ModelError with near ones."""
    try:
        return names.index(name)
    except ValueError:
        near = difflib.get_close_matches(name, names, 3) or list(names[:8])
        raise ModelError(
            f"no {kind} {name!r}; known: {', '.join(near)}{' ...' if len(names) > 8 else ''}"
        ) from None


def _number(value: Any, where: str) -> Fraction:
    """`read_rational` with the place in the error."""
    try:
        return read_rational(value)
    except ValueError as error:
        raise ModelError(f"{where}: {error}") from None


def _rows(matrix: Any, shape: tuple[int, int], where: str) -> list[dict[int, Fraction]]:
    """Any accepted form of a matrix as exact sparse rows."""
    seen: dict[Any, Fraction] = {}  # models repeat few distinct numbers

    def number(value: Any) -> Fraction:
        if value not in seen:
            seen[value] = _number(value, where.rstrip(", ["))
        return seen[value]

    if issparse(matrix):
        sparse = csr_array(matrix)
        sparse.sum_duplicates()
        rows: list[dict[int, Fraction]] = []
        for i in range(sparse.shape[0]):
            span = slice(sparse.indptr[i], sparse.indptr[i + 1])
            entries = zip(sparse.indices[span].tolist(), sparse.data[span].tolist(), strict=True)
            rows.append({j: number(v) for j, v in entries})
        actual = sparse.shape
    elif len(matrix) and all(isinstance(row, Mapping) for row in matrix):
        rows = [{int(j): number(v) for j, v in row.items()} for row in matrix]
        outside = next((j for row in rows for j in row if not 0 <= j < shape[1]), None)
        if outside is not None:
            raise ModelError(f"{where.rstrip(', [')}: column {outside} is outside 0..{shape[1] - 1}")
        actual = (len(rows), shape[1])
    else:
        dense = matrix.tolist() if isinstance(matrix, np.ndarray) else [list(row) for row in matrix]
        rows = [{j: number(v) for j, v in enumerate(row) if v != 0} for row in dense]
        widths = {len(row) for row in dense} or {0}
        actual = (len(dense), widths.pop() if len(widths) == 1 else -1)
    if actual != shape:
        raise ModelError(f"{where.rstrip(', [')}: matrix has shape {actual}, not {shape}")
    return rows


def _stochastic(
    matrix: Any, shape: tuple[int, int], where: str, states: tuple[str, ...]
) -> tuple[RationalMatrix, int]:
    """The exact row-stochastic matrix and how many rows were divided by a sum near but not equal to 1."""
    if isinstance(matrix, RationalMatrix):
        if matrix.shape != shape:
            raise ModelError(f"{where.rstrip(', [')}: matrix has shape {matrix.shape}, not {shape}")
        if matrix.rows_sum_to_one() and min(matrix.numerators.tolist()) >= 0:
            return matrix, 0
        rows = list(matrix.rows())
    else:
        rows = _rows(matrix, shape, where)
    fixed = 0
    for s, row in enumerate(rows):
        fixed += _normalise(row, f"{where}{states[s]}]")
    return RationalMatrix.from_rows(rows, shape[1]), fixed


def _normalise(row: dict[int, Fraction], where: str) -> bool:
    """Divide a distribution by its exact sum where that is near 1, in place; say whether it was not 1 already."""
    for j, value in row.items():
        if value < 0:
            raise ModelError(f"{where} has the negative probability {float(value):g} in column {j}")
    total = sum(row.values(), Fraction(0))
    if total == 1:
        return False
    if abs(total - 1) > ROW_TOLERANCE:
        raise ModelError(
            f"{where} sums to {float(total):.10g}, not 1; a right one is {_right_row(row, total)}"
        )
    for j in row:
        row[j] /= total
    return True


def _right_row(row: dict[int, Fraction], total: Fraction) -> str:
    """An example of the row that was probably meant: the same entries scaled to sum to 1."""
    if total == 0:
        return "one with 1.0 in one column"
    entries = sorted(row.items())
    shown = ", ".join(f"{j}: {float(v / total):.6g}" for j, v in entries[:4])
    return "{" + shown + (", ..." if len(entries) > 4 else "") + "}"


def _start(given: Any, states: tuple[str, ...]) -> dict[int, Fraction]:
    """The start distribution as exact {state index: probability}, zeros left out."""
    if given is None:
        return {s: Fraction(1, len(states)) for s in range(len(states))}
    if isinstance(given, str):
        return {_index(states, given, "state"): Fraction(1)}
    pairs = given.items() if isinstance(given, Mapping) else enumerate(given)
    row = {int(s): _number(v, "start") for s, v in pairs}
    outside = next((s for s in row if not 0 <= s < len(states)), None)
    if outside is not None or (not isinstance(given, Mapping) and len(row) != len(states)):
        raise ModelError(
            f"start has {len(row)} entries for {len(states)} states; give one probability a state"
        )
    _normalise(row, "start")
    return {s: v for s, v in sorted(row.items()) if v}


def _rewards(
    given: Any, T: list[RationalMatrix], Z: list[RationalMatrix], sizes: tuple[int, int, int]
) -> RationalMatrix:
    """`[A, S]` expected rewards, from R(a,s), R(a,s,s') or R(a,s,s',o)."""
    A, S, O = sizes
    if isinstance(given, RationalMatrix):
        if given.shape != (A, S):
            raise ModelError(f"R has shape {given.shape}, not {(A, S)}")
        return given
    table = np.asarray(given, dtype=object)
    shapes = {(A, S), (A, S, S), (A, S, S, O)}
    if table.shape not in shapes:
        raise ModelError(f"R has shape {table.shape}; give [A, S] = {(A, S)}, [A, S, S'] or [A, S, S', O]")
    rows: list[dict[int, Fraction]] = []
    for a in range(A):
        if table.ndim == 2:
            rows.append({s: _number(table[a, s], f"R[{a}, {s}]") for s in range(S)})
            continue
        row: dict[int, Fraction] = {}
        for s in range(S):
            total = Fraction(0)
            for following, p in T[a].row(s).items():
                if table.ndim == 3:
                    total += p * _number(table[a, s, following], f"R[{a}, {s}, {following}]")
                else:
                    for o, q in Z[a].row(following).items():
                        total += p * q * _number(table[a, s, following, o], f"R[{a}, {s}, {following}, {o}]")
            row[s] = total
        rows.append(row)
    return RationalMatrix.from_rows(rows, S)


def _dense(row: dict[int, Fraction], length: int) -> np.ndarray:
    """A float vector from exact sparse entries."""
    out = np.zeros(length)
    for i, v in row.items():
        out[i] = float(v)
    return out
