"""Settings of every test: strict JAX, quiet cores, Hypothesis profiles, and the benchmark files.

All settings of JAX are environment variables, so that a test without JAX does not pay for importing it
and a process started by a test inherits them.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

ROOT = Path(__file__).resolve().parents[1]
DEEP = "deep"
PROFILE = os.environ.get("HYPOTHESIS_PROFILE", "ci")

# A sum over axes that were never meant to meet is an error here, not a silent broadcast.
os.environ["JAX_NUMPY_RANK_PROMOTION"] = "raise"
if not os.environ.get("HPOMDP_TEST_GPU"):
    os.environ.setdefault("JAX_PLATFORMS", "cpu")
# pytest-xdist already uses every core; threads inside a worker would only fight over them.
os.environ["XLA_FLAGS"] = (
    os.environ.get("XLA_FLAGS", "") + " --xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"
).strip()
for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS"):
    os.environ.setdefault(variable, "1")
# Compiled code is kept between runs of the suite, inside the tree: nothing is written to the user's folders.
os.environ.setdefault("XDG_CACHE_HOME", str(ROOT / ".cache"))

settings.register_profile(
    "ci", derandomize=True, deadline=None, max_examples=50, suppress_health_check=[HealthCheck.too_slow]
)
settings.register_profile(
    DEEP, deadline=None, max_examples=2000, suppress_health_check=[HealthCheck.too_slow], print_blob=True
)
settings.load_profile(PROFILE)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Skip, with the reason, what this run was not asked for."""
    for item in items:
        if item.get_closest_marker("gpu") and not os.environ.get("HPOMDP_TEST_GPU"):
            item.add_marker(pytest.mark.skip(reason="set HPOMDP_TEST_GPU=1 where there is an accelerator"))
        if item.get_closest_marker("deep") and PROFILE != DEEP:
            item.add_marker(pytest.mark.skip(reason="runs under make deep"))


@pytest.fixture(scope="session")
def benchmarks() -> Path:
    """The folder of .pomdp files by other authors; the test is skipped where the files are not at hand."""
    folder = Path(os.environ.get("HPOMDP_BENCHMARKS", ROOT.parent / "shared" / "benchmarks")) / "pomdp"
    if not folder.is_dir():
        pytest.skip(f"no benchmark files at {folder}; name their parent folder in HPOMDP_BENCHMARKS")
    return folder
