"""The command `desk`: the front desk of M14 as a LangGraph graph, run, reviewed, replayed, measured.

Each verb is in a file named after what it works on: cli_desk_run, cli_desk_history, cli_desk_data, cli_desk_graph.
"""

from __future__ import annotations

from typing import Any

from harnesses.cli_desk_data import add_data, add_evaluate
from harnesses.cli_desk_graph import add_graph
from harnesses.cli_desk_history import add_fork, add_handoff, add_history, add_outbox, add_replay
from harnesses.cli_desk_run import add_resume, add_review, add_run


def add_desk(subparsers: Any) -> None:
    """Add the command, and its verbs, to what `ArgumentParser.add_subparsers` returned."""
    parser = subparsers.add_parser(
        "desk",
        help="the front desk on LangGraph: a guarded agent that pauses for a person, resumes, replays and is measured",
        description="A workshop's front desk: a router, an agent with tools, a guard in front of every email, a person "
        "for the uncertain middle. Runs are in one SQLite file and go on in any process.",
    )
    verbs = parser.add_subparsers(title="verbs", metavar="VERB", dest="verb", required=True)
    for add in (add_run, add_review, add_resume, add_history, add_replay, add_fork, add_handoff, add_outbox):
        add(verbs)
    add_evaluate(verbs)
    add_data(verbs)
    add_graph(verbs)
