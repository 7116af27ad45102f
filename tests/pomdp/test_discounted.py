"""The verified linear solve: each method alone reaches the dense solution, nothing unverified returns."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.sparse import csr_array, diags_array, random_array

from pomdp import discounted
from pomdp.discounted import solve
from pomdp.model import ModelError


def random_chain(n: int, seed: int) -> csr_array:
    """Row-stochastic, about six successors a state."""
    rng = np.random.default_rng(seed)
    P = random_array((n, n), density=6 / n, rng=rng, format="csr") + diags_array(np.full(n, 0.1))
    return csr_array(diags_array(1 / P.sum(axis=1)) @ P)


def ring_chain(n: int, advance: float) -> csr_array:
    """Moves on along a ring: its modes hardly decay, which is hard for Krylov methods."""
    shift = csr_array((np.ones(n), (np.arange(n), (np.arange(n) + 1) % n)), shape=(n, n))
    return csr_array(advance * shift + (1 - advance) * diags_array(np.ones(n)))


def rewards(n: int) -> np.ndarray:
    return np.random.default_rng(7).normal(size=n)


def reference(P: csr_array, r: np.ndarray, discount: float) -> np.ndarray:
    return np.linalg.solve(np.eye(len(r)) - discount * P.toarray(), r)


def only(method: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Disable all methods but one."""
    for other in {"_dense", "_bicgstab", "_gmres", "_factored", "_sweeps"} - {method}:
        if not (method == "_factored" and other in ("_bicgstab", "_gmres")):
            monkeypatch.setattr(discounted, other, lambda equation, *rest: None)


@pytest.mark.parametrize("method", ["_dense", "_bicgstab", "_gmres", "_sweeps"])
def test_each_method_alone_solves_a_mixing_chain(method, monkeypatch):
    only(method, monkeypatch)
    P, r = random_chain(300, 1), rewards(300)
    solved = solve(lambda V: P @ V, r, 0.95, lambda: P)
    exact = reference(P, r, 0.95)
    assert np.max(np.abs(solved.values - exact)) <= solved.error + 1e-13 * np.max(np.abs(exact))
    assert solved.error <= discounted.RTOL * np.max(np.abs(solved.values))


def test_incomplete_factors_solve_the_ring_on_which_krylov_methods_stall(monkeypatch):
    P, r = ring_chain(1200, 0.999999), rewards(1200)
    exact = reference(P, r, 0.9999)
    monkeypatch.setattr(discounted, "_sweeps", lambda equation: None)
    with pytest.raises(ModelError, match="only within"):
        solve(lambda V: P @ V, r, 0.9999, None)
    solved = solve(lambda V: P @ V, r, 0.9999, lambda: P)
    assert solved.method == "incomplete LU"
    np.testing.assert_allclose(solved.values, exact, atol=1e-9 * np.max(np.abs(exact)))


def test_sweeps_are_the_last_resort_without_a_matrix():
    P, r = ring_chain(1000, 1.0), rewards(1000)
    solved = solve(lambda V: P @ V, r, 0.99, None)
    np.testing.assert_allclose(solved.values, reference(P, r, 0.99), atol=1e-9)


def test_the_error_bound_holds_for_any_vector():
    P, r = random_chain(50, 2), rewards(50)
    exact = reference(P, r, 0.9)
    equation = discounted._Equation(lambda V: P @ V, r, 0.9)
    for scale in (1e-8, 1e-3, 1.0, 100.0):
        equation.accept(exact + scale * rewards(50))
        assert np.max(np.abs(equation.values - exact)) <= equation.error * (1 + 1e-6)


def test_a_correction_that_makes_things_worse_is_not_taken():
    P, r = random_chain(50, 3), rewards(50)
    equation = discounted._Equation(lambda V: P @ V, r, 0.9)
    before = equation.values.copy(), equation.error
    for bad in (np.full(50, np.nan), np.full(50, 1e6)):
        assert not equation.improve(bad)
        assert np.array_equal(equation.values, before[0]) and equation.error == before[1]
        np.testing.assert_array_equal(equation.residual, r - equation.operator(before[0]))


def test_what_cannot_be_verified_is_refused(monkeypatch):
    monkeypatch.setattr(discounted, "RTOL", 1e-18)
    monkeypatch.setattr(discounted, "SWEEP_BUDGET", 0)
    P, r = random_chain(500, 4), rewards(500)
    with pytest.raises(ModelError, match=r"only within \S+e-\d+, not \S+, at discount 0.999;"):
        solve(lambda V: P @ V, r, 0.999, lambda: P)


@pytest.mark.parametrize("discount", [0.0, 0.5, 1 - 1e-5])
def test_constant_rewards_need_no_iteration(discount):
    P = random_chain(500, 5)
    solved = solve(lambda V: P @ V, np.full(500, 3.0), discount, None)
    np.testing.assert_allclose(solved.values, 3 / (1 - discount), rtol=1e-9)


def test_without_a_future_v_is_the_reward():
    P, r = random_chain(500, 6), rewards(500)
    np.testing.assert_allclose(solve(lambda V: P @ V, r, 0.0, None).values, r, atol=1e-14)
