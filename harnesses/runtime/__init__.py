"""The minimal harness, running: each file one part; nothing is imported here, so that a child process starts fast.

records (messages, calls, results, state) · clock · schema, tools, child (what a model may call) · retry · control
(budgets, stalls, permission patterns) · assembly (context maps over a history) · format · models · loop (the seven
steps) · trace (JSON lines, replay) · resume · calc (a worked example). Source: M1 §1.2.
"""
