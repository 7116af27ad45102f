"""A guard in front of one call: it reads the probability p that the call is allowed, and acts, asks or escalates.

Read in this order. Rule: `region` (the three regions and the one rule), `costs`, `thresholds` (T1, T5).
Theory on finite guards, in rationals: `finite`, `bounds` (T2 to T4), `reviewer` (T5), `shift` (T6), `injected` (T7).
Data: `scores` (a file of reports and labels), `binomial` and `rate` (T8), `report`, `injection`, `shifted`, `routes`.
Calibration: `calibration` with `reliability`, `smooth_ece` and `acting_region`; `calibrators`, `venn_abers`.
Choice: `selection` and `learn_then_test` (T9), `planning`; watch: `monitor` (T10).
Checks: `testing` for users' own guards, `coverage` by simulation, `guarded` for a guard inside a POMDP, `demo`.

Names are imported from their files, `from harnesses.guard.thresholds import thresholds`: several files are named
after the function that they hold.
"""
