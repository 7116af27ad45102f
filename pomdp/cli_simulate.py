"""The command `simulate`: a policy's return by Monte Carlo, beside its exact J where there is one.

`add_simulate(subparsers)` adds it; what it needs beyond the standard library is imported inside the handler.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pomdp.criterion import Criterion
    from pomdp.model import POMDP
    from pomdp.policy import Policy
    from pomdp.simulate import Simulation

DONE, INTERRUPTED = 0, 130
RANDOM, GREEDY = "random", "greedy"

# Products of nodes, states and steps beyond which the exact J would take longer than people wait.
EXACT_WORK = 200_000_000
SWEEPS = 200


def add_simulate(subparsers: Any) -> None:
    """Add the command to what `ArgumentParser.add_subparsers` returned."""
    parser = subparsers.add_parser(
        "simulate",
        help="estimate a policy's return by Monte Carlo",
        description="Estimate a policy's return by Monte Carlo. An episode depends on its number, the seed, "
        "the model and the policy alone, so results are the same on any machine. Ctrl-C ends the run with "
        "what is finished.",
    )
    add = parser.add_argument
    add("model", metavar="SPEC|MODEL", help="a SPEC.toml, a .pomdp file or library:NAME")
    add(
        "--policy",
        metavar="random|greedy|FILE",
        help="for a MODEL. random: all actions alike; greedy: the controller behind the solver's lower bound; FILE: a "
        "policy in JSON (./random for a file of that name)",
    )
    add("--episodes", metavar="N", type=_count, default=100_000, help="how many (100000)")
    add("--seed", metavar="S", type=_count, default=0, help="0 to 4294967295 (0)")
    add("--steps", metavar="N", type=_count, help="cut episodes here; else where 1e-4 of a return is left")
    add("--discount", metavar="G", help="discount from 0 to 1; the model's own by default")
    add("--horizon", metavar="N", type=_count, help="count N steps only; keeps the discount")
    add("--time", metavar="S", type=_seconds, default=10.0, help="limit of the search for greedy, in s (10)")
    add("--json", action="store_true", help="print one JSON object")
    parser.set_defaults(handler=run)


def run(args: argparse.Namespace) -> int:
    """Simulate and print; refuse bad input before anything runs. 130 where Ctrl-C ended the run."""
    from pomdp.cli import load_model, natural_horizon
    from pomdp.model import ModelError
    from pomdp.policy import check_fits
    from pomdp.simulate import check_counts, cut

    if args.policy is None:
        raise ModelError("give --policy random, greedy or a policy file in JSON")
    model = load_model(args.model)
    if args.horizon is None and args.discount is None and args.steps is None:
        args.horizon = natural_horizon(args.model, model)
    criterion = _criterion(model, args)
    check_counts(args.episodes, args.seed)
    cut(model, criterion, args.steps)
    policy = _policy(model, criterion, args)
    check_fits(policy, model)
    return run_policy(args, model, policy, criterion, lambda: _exact(model, policy, criterion))


def run_policy(
    args: argparse.Namespace,
    model: POMDP,
    policy: Policy,
    criterion: Criterion,
    exact: Callable[[], float | None],
) -> int:
    """Simulate a policy that fits the model with the options of `args`, and print it beside `exact()`, its J."""
    from pomdp.simulate import simulate

    began = time.perf_counter()
    with _progress(args) as report:
        found = simulate(
            model,
            policy,
            criterion,
            episodes=args.episodes,
            seed=args.seed,
            steps=args.steps,
            progress=report,
        )
    seconds = time.perf_counter() - began
    _print(args, criterion, found, exact(), seconds)
    return INTERRUPTED if found.interrupted else DONE


def _criterion(model: POMDP, args: argparse.Namespace) -> Criterion:
    """What counts: steps are the horizon where there is neither a horizon nor a discount below 1."""
    from pomdp.criterion import Criterion
    from pomdp.model import ModelError

    try:
        return Criterion.of(model, args.discount, args.horizon)
    except ModelError:
        if args.horizon is None and args.steps is not None:
            return Criterion.of(model, args.discount, args.steps)
        if args.horizon is None and (args.discount is None or _is_one(args.discount)):
            raise ModelError(
                "without a discount below 1 an episode has no end; give --horizon N or --steps N (such as "
                "100), or --discount G (such as 0.95)"
            ) from None
        raise


def _is_one(discount: str) -> bool:
    from pomdp.rational import read_rational

    try:
        return read_rational(discount) == 1
    except ValueError:
        return False


def _policy(model: POMDP, criterion: Criterion, args: argparse.Namespace) -> Policy:
    """The policy that --policy names; KeyboardInterrupt where Ctrl-C ended its search."""
    import numpy as np

    from pomdp.model import ModelError
    from pomdp.policy import Controller, policy_from_json

    if args.policy == RANDOM:
        A, O = model.num_actions, model.num_observations
        return Controller(np.full((1, A), 1 / A), np.zeros((1, A, O), dtype=np.int64), 0)
    if args.policy == GREEDY:
        from pomdp.bounds import solve

        # Kept on disk, so that a second run simulates the same controller.
        found = solve(model, criterion, time_limit=args.time, cache=True)
        if found.ended == "interrupt":
            raise KeyboardInterrupt
        return found.controller
    try:
        return policy_from_json(_text(Path(args.policy)), model)
    except ModelError as error:
        raise ModelError(f"{args.policy}: {error}") from None


def _text(path: Path) -> str:
    from pomdp.model import ModelError

    try:
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        raise ModelError(f"{path}: not a text file; a policy is JSON") from None


def _exact(model: POMDP, policy: Policy, criterion: Criterion) -> float | None:
    """J where it can be computed in a few seconds, else None."""
    from pomdp.model import ModelError
    from pomdp.policy import Controller
    from pomdp.value import evaluate

    nodes = policy.num_nodes if isinstance(policy, Controller) else model.num_observations + 1
    if nodes * model.num_states * (criterion.horizon or SWEEPS) > EXACT_WORK:
        return None
    try:
        return evaluate(model, policy, criterion)
    except (ModelError, KeyboardInterrupt):
        return None


def _print(
    args: argparse.Namespace, criterion: Criterion, found: Simulation, exact: float | None, seconds: float
) -> None:
    """One JSON object, or a table."""
    if args.json:
        result = {
            "model": args.model,
            "policy": args.policy,
            "discount": criterion.gamma,
            "horizon": criterion.horizon,
            "mean": found.mean,
            "standard_error": found.standard_error,
            "truncation": found.truncation,
            "exact": exact,
            "episodes": found.episodes,
            "steps": found.steps,
            "seed": found.seed,
            "interrupted": found.interrupted,
            "seconds": seconds,
        }
        print(json.dumps(result, allow_nan=False))
        return
    error = found.standard_error
    print(f"{args.model}, policy {args.policy}, {criterion.text()}")
    spread = "one episode has no standard error" if error is None else f"standard error {error:.3g}"
    print(f"  mean     {found.mean:.8g}   {spread}")
    if found.truncation:
        print(f"  cut off  at most {found.truncation:.3g} by ending after {found.steps} steps")
    if exact is not None:
        # Where cutting off may move the mean by more than chance does, the distance would say nothing.
        distance = ""
        if error and (found.truncation or 0.0) <= error:
            distance = f"   mean is {(found.mean - exact) / error:+.2f} standard errors away"
        print(f"  exact J  {exact:.8g}{distance}")
    rate = found.episodes * found.steps / seconds
    ended = " (interrupted)" if found.interrupted else ""
    print(
        f"  {found.episodes} episodes of {found.steps} steps, seed {found.seed}{ended}; "
        f"{seconds:.2f} s, {rate:.2g} steps/s"
    )


@contextmanager
def _progress(args: argparse.Namespace) -> Iterator[Callable[[int], None] | None]:
    """A bar of episodes on standard error, on a terminal alone."""
    if args.json or not sys.stderr.isatty():
        yield None
        return
    from tqdm import tqdm

    with tqdm(total=args.episodes, unit=" episodes", unit_scale=True, leave=False, file=sys.stderr) as bar:
        yield lambda done: bar.update(done - bar.n) and None


def _count(text: str) -> int:
    """A whole number, also written as 1e6."""
    number = float(text)
    if not (number.is_integer() and abs(number) < 2**53):
        raise argparse.ArgumentTypeError(f"{text} is not a whole number; give one such as 1000")
    return int(number)


def _seconds(text: str) -> float:
    value = float(text)
    if not 0 < value < float("inf"):
        raise argparse.ArgumentTypeError(f"{text} is not a positive number")
    return value
