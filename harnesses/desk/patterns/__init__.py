"""Patterns: the eight harness patterns of M14 §9 on one request, as LangGraph graphs and as formal harnesses."""
