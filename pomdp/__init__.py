"""Finite POMDPs: models, formats, beliefs, policies, exact values, certified bounds and Monte Carlo.

Knows nothing of harnesses or studies. Importing it loads neither JAX nor numba.
"""
