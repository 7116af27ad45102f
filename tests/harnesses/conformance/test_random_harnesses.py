"""Random harnesses around random models: whatever is not refused takes the same steps in the runtime."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from harnesses.conformance.compare import Conformance
from harnesses.context import Sizes
from harnesses.models import StatelessModel
from harnesses.runtime.records import AgentError
from harnesses.spec import Spec
from harnesses.testing import harnesses
from pomdp.criterion import Criterion
from pomdp.testing import pomdps

# An example compiles a simulator of its own, which takes about a second.
EXAMPLES = settings().max_examples // 4


@settings(max_examples=EXAMPLES)
@given(st.data(), st.sampled_from(["random", "naive"]), st.integers(1, 4))
def test_no_random_harness_leaves_the_tabular_simulator(data: st.DataObject, kind: str, steps: int) -> None:
    task = data.draw(pomdps(max_states=3, max_actions=3, max_observations=3))
    model = StatelessModel(kind, float("inf") if kind == "naive" else 0.0)
    criterion = Criterion.of(task, "9/10", steps)
    spec = Spec("drawn", task, criterion, data.draw(harnesses(task)), model, Sizes())
    try:
        ready = Conformance.of(spec)
    except AgentError as refused:
        assert "\n" not in str(refused)
        return
    found = ready.compare(["runtime"], range(8))
    assert found.differences == 0, found.first and found.first.text
