"""Logs from elsewhere, read into the records of the running harness; the public list.

Five formats, told apart by content: tau-bench, AgentDojo, mini-swe-agent, SWE-agent, LangGraph checkpoints.
"""

from harnesses.logs.dropping import Dropped, Gone, bind, dropped, events
from harnesses.logs.fields import LogError
from harnesses.logs.files import Broken, Found, find_logs, runs
from harnesses.logs.formats import FORMATS, KNOWN, Format, read_run, recognise
from harnesses.logs.report import Group, RunReport, Tally
from harnesses.logs.run import Head, Outcome, Run, Step
from harnesses.logs.stalls import Stalls, stalls
from harnesses.logs.tokens import ESTIMATOR, estimate

__all__ = [
    "Broken",
    "Dropped",
    "ESTIMATOR",
    "FORMATS",
    "Format",
    "Found",
    "Gone",
    "Group",
    "Head",
    "KNOWN",
    "LogError",
    "Outcome",
    "Run",
    "RunReport",
    "Stalls",
    "Step",
    "Tally",
    "bind",
    "dropped",
    "estimate",
    "events",
    "find_logs",
    "read_run",
    "recognise",
    "runs",
    "stalls",
]
