"""Linear equations `V = r + g P V` of a Markov chain P, solved with a verified error; imports pomdp.model.

The error of any V in the largest norm is at most its residual's divided by 1 - g, because P is an average. So
whatever method found V, one more product with P says how good it is, and nothing worse is returned.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.sparse import csc_array, csr_array, eye_array
from scipy.sparse.linalg import LinearOperator, bicgstab, gmres, spilu

from pomdp.model import ModelError

# Largest error, relative to the largest |V|, that `solve` returns.
RTOL = 1e-10
# Up to this many unknowns a dense factorisation takes milliseconds.
DENSE_UNKNOWNS = 400
# Incomplete factors are tried up to this many entries of P, and hold at most FILL times as many.
FACTOR_ENTRIES = 3_000_000
FILL = 20
# A last resort of plain sweeps is refused beyond this many element updates (about a minute).
SWEEP_BUDGET = 2e10

Apply = Callable[[np.ndarray], np.ndarray]


@dataclass(frozen=True, eq=False)
class Solved:
    """V, a bound on its error in the largest norm, the products with P it took, and the last method used."""

    values: np.ndarray
    error: float
    products: int
    method: str


class _Equation:
    """The equation, its best V so far and the count of products; every method improves it by a correction."""

    def __init__(self, apply: Apply, rewards: np.ndarray, discount: float) -> None:
        self.shape = rewards.shape
        self.rewards = rewards.ravel()
        self.discount = discount
        self._apply = apply
        self.products = 0
        # The largest |V| is at least this, whatever P is.
        self._least = float(np.max(np.abs(self.rewards))) / (1.0 + discount)
        # Exact for constant rewards; elsewhere right in the mode that decays slowest.
        self.accept(self.rewards / (1.0 - discount))

    def product(self, values: np.ndarray) -> np.ndarray:
        """P V, flat."""
        self.products += 1
        return self._apply(values.reshape(self.shape)).ravel()

    def operator(self, values: np.ndarray) -> np.ndarray:
        """(1 - g P) V, flat."""
        return values - self.discount * self.product(values)

    def accept(self, values: np.ndarray) -> None:
        """Make `values` the current V and compute its residual."""
        self.values = values
        self.residual = self.rewards - self.operator(values)
        self.error = float(np.max(np.abs(self.residual))) / (1.0 - self.discount)

    def improve(self, correction: np.ndarray) -> bool:
        """Add a correction where that lowers the error; say whether it at least halved it."""
        if not np.all(np.isfinite(correction)):
            return False
        values, residual, error = self.values, self.residual, self.error
        self.accept(self.values + correction)
        if self.error >= error:
            self.values, self.residual, self.error = values, residual, error
            return False
        return self.error <= error / 2

    @property
    def target(self) -> float:
        """The error at which V is good enough."""
        return RTOL * max(self._least, float(np.max(np.abs(self.values))))

    @property
    def done(self) -> bool:
        """Whether V is good enough."""
        return self.error <= self.target


def solve(
    apply: Apply, rewards: np.ndarray, discount: float, assemble: Callable[[], csr_array] | None = None
) -> Solved:
    """V with `V = rewards + discount P V` and a verified error of at most RTOL times the largest |V|.

    `apply` is V -> P V for arrays of the shape of `rewards`, rows of P summing to at most 1; discount is in
    [0, 1). `assemble` gives P as a matrix over the flat unknowns, None where that is not affordable. Dense
    elimination for few unknowns, then BiCGSTAB, the same with incomplete factors, GMRES, and sweeps, until
    one is good enough. Raises ModelError where none is.
    """
    equation = _Equation(apply, rewards, discount)
    methods: list[tuple[str, Callable[[_Equation], None]]] = [("BiCGSTAB", _bicgstab)]
    if assemble is not None:
        if rewards.size <= DENSE_UNKNOWNS:
            methods.insert(0, ("dense", lambda e: _dense(e, assemble())))
        methods.append(("incomplete LU", lambda e: _factored(e, assemble())))
    methods += [("GMRES", _gmres), ("sweeps", _sweeps)]
    used = "constant"
    while methods and not equation.done:
        used, method = methods.pop(0)
        method(equation)
    if not equation.done:
        raise ModelError(
            f"J could be computed only within {equation.error:.2g}, not {equation.target:.2g}, at discount "
            f"{discount:.12g}; give a smaller discount or a horizon"
        )
    return Solved(equation.values.reshape(rewards.shape), equation.error, equation.products, used)


def _bicgstab(equation: _Equation, preconditioner: LinearOperator | None = None, rounds: int = 4) -> None:
    """Corrections by BiCGSTAB, each to what is still missing: its own residual drifts from the true one."""
    _refine(equation, rounds, lambda A, r, tol: bicgstab(A, r, rtol=tol, maxiter=150, M=preconditioner)[0])


def _gmres(equation: _Equation, preconditioner: LinearOperator | None = None, rounds: int = 4) -> None:
    """Corrections by GMRES, which never breaks down and stalls more slowly."""
    _refine(
        equation, rounds, lambda A, r, tol: gmres(A, r, rtol=tol, restart=60, maxiter=5, M=preconditioner)[0]
    )


def _refine(
    equation: _Equation, rounds: int, method: Callable[[LinearOperator, np.ndarray, float], np.ndarray]
) -> None:
    """Repeat `method` on the residual until V is good enough or a round no longer halves the error."""
    n = equation.rewards.size
    operator = LinearOperator((n, n), matvec=equation.operator, dtype=np.float64)
    for _ in range(rounds):
        if equation.done:
            return
        # Methods measure the Euclidean norm, which is at least the largest one.
        wanted = 0.3 * equation.target * (1.0 - equation.discount)
        tolerance = min(0.1, max(1e-11, wanted / float(np.linalg.norm(equation.residual))))
        with np.errstate(all="ignore"):
            correction = method(operator, equation.residual, tolerance)
        if not equation.improve(correction):
            return


def _dense(equation: _Equation, matrix: csr_array) -> None:
    """Gaussian elimination, refined once."""
    system = np.eye(equation.rewards.size) - equation.discount * matrix.toarray()
    for _ in range(2):
        equation.improve(np.linalg.solve(system, equation.residual))
        if equation.done:
            return


def _factored(equation: _Equation, matrix: csr_array) -> None:
    """BiCGSTAB and GMRES preconditioned by incomplete factors, for chains that mix slowly along few paths."""
    n = equation.rewards.size
    if matrix.nnz > FACTOR_ENTRIES:
        return
    system = csc_array(eye_array(n, format="csc") - equation.discount * matrix)
    try:
        factors = spilu(system, drop_tol=1e-5, fill_factor=FILL)
    except (RuntimeError, MemoryError):  # a zero pivot after dropping, or no room
        return
    preconditioner = LinearOperator((n, n), matvec=factors.solve, dtype=np.float64)
    _bicgstab(equation, preconditioner)
    _gmres(equation, preconditioner)


def _sweeps(equation: _Equation) -> None:
    """Plain sweeps `V <- r + g P V`, whose error shrinks by g each: sure, and slow for g near 1."""
    if equation.discount == 0.0:
        equation.accept(equation.rewards)
        return
    needed = math.log(max(equation.target, 1e-300) / max(equation.error, 1e-300)) / math.log(
        equation.discount
    )
    if not needed * equation.rewards.size <= SWEEP_BUDGET:
        return
    for _ in range(10 * int(needed / 10 + 2)):
        equation.accept(equation.values + equation.residual)
        if equation.done:
            return
