"""The desk agent on LangGraph: the front desk of M14, running and measured."""
