"""Conformance: one policy with one stream of random numbers in three engines; the public list.

The tabular simulator, the minimal harness and a LangGraph graph take the same steps: same actions, observations,
contexts and rewards. Source: design of the running harness, section 3.
"""
