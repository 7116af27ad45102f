"""Worked memos by name: the tasks A, B and C of M1 §1.8.3 and its exercises E1.4 and E1.6; imports nothing.

Each is a document as a SPEC.toml would hold it; tasks, answers and justifications are this project's words. B and E1.4
also have a task of the library, so their Axis 2 is computed.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

CATEGORIES = [f"category-{k}" for k in range(12)]

EXAMPLES: Mapping[str, Mapping[str, Any]] = {
    "A": {
        "memo": {
            "tasks": "Support tickets: find the help articles that bear on one and draft an answer. They differ in "
            "topic and tone, never in what has to be done.",
            "tools": {"answer": "fixed", "count": 2, "why": "A search and a draft, always in this order."},
            "sequence": {
                "answer": "yes",
                "why": "Search, draft, return: what was found fills the draft, not the path.",
            },
            "verifier": {
                "answer": "judged",
                "name": "the support person who sends the answer",
                "why": "Whether a draft helps is a matter of judgement.",
            },
            "failure": {"answer": "low", "why": "A poor draft is discarded by the person who reads it."},
            "subtasks": {"answer": "shared", "why": "The draft needs the ticket and the articles together."},
            "variance": {"answer": "low", "why": "Every ticket goes through the same two steps."},
            "persistence": {"answer": "no", "why": "A run takes seconds and can be repeated."},
            "stronger_models": {
                "answer": "no",
                "why": "A better model writes a better draft in the same pipeline.",
            },
            "revise": ["Tickets begin to need questions back to the customer before they can be answered."],
        }
    },
    "B": {
        "task": "library:repo_repair",
        "memo": {
            "tasks": "Repositories with failing tests that are to pass. The request is always the same; what is wrong "
            "ranges from a slip to faulty logic to a package that is not there.",
            "tools": {
                "answer": "varies",
                "count": 3,
                "why": "Running tests, reading and patching follow each other as the findings ask.",
            },
            "sequence": {
                "answer": "no",
                "why": "Which file to read and what to patch is in the test output.",
            },
            "verifier": {
                "answer": "deterministic",
                "name": "the test suite",
                "reliability": 0.95,
                "why": "Tests pass or fail; a patch that games them is the exception to look for.",
            },
            "failure": {"answer": "low", "why": "It runs in a sandbox, and the tests catch a wrong patch."},
            "subtasks": {"answer": "shared", "why": "Diagnosis, patch and check all read the same code."},
            "variance": {
                "answer": "high",
                "why": "The type is easily told, but each kind of fault is mended differently.",
            },
            "persistence": {"answer": "no", "why": "A run that dies is started again from the same commit."},
            "stronger_models": {"answer": "yes", "why": "Repair is where each better model has gained."},
            "price_per_step": 0.1,
        },
    },
    "C": {
        "memo": {
            "tasks": "A comparison of five competitors with a sourced section on each. The outline is given; what "
            "there is to read about each company is not.",
            "tools": {
                "answer": "varies",
                "count": 3,
                "why": "Searching, reading and noting follow whatever the sources lead to.",
            },
            "sequence": {
                "answer": "no",
                "why": "The five sections are known, the research behind each is not.",
            },
            "verifier": {
                "answer": "judged",
                "name": "an editor with the cited sources",
                "why": "That a source says what is claimed can be checked, that nothing is missing cannot.",
            },
            "failure": {
                "answer": "low",
                "why": "A wrong fact embarrasses, and review comes before publication.",
            },
            "subtasks": {
                "answer": "distinct",
                "coordination": "yes",
                "why": "Each company fills a context with sources that would crowd out the other four; only the "
                "finished sections have to meet.",
            },
            "variance": {
                "answer": "high",
                "why": "What the research looks like differs from company to company.",
            },
            "persistence": {"answer": "yes", "why": "Hours of reading should survive a crash."},
            "stronger_models": {"answer": "yes", "why": "Longer contexts may make the division unnecessary."},
            "revise": [
                "A single agent, built and measured first, is as reliable, cheap and easy to diagnose."
            ],
        }
    },
    "E1.4": {
        "task": "library:ticket_routing",
        "memo": {
            "tasks": "A thousand tickets, each of one of 12 categories, to be routed to one of 4 teams; the category "
            "determines the team.",
            "tools": {"answer": "fixed", "count": 2, "why": "Classify, then route."},
            "sequence": {
                "answer": "yes",
                "why": "Classify, look the team up, route. That no feedback is needed is so where classifying and "
                "looking up count as one action; against plans that ignore the category, V_f is positive, and it is "
                "the table of 12 branches drawn beforehand that closes the difference.",
            },
            "verifier": {
                "answer": "deterministic",
                "name": "the table of categories and teams with tickets whose category is known",
                "why": "A routed ticket is with the right team or it is not.",
            },
            "failure": {"answer": "low", "why": "A team passes on a ticket that is not its own."},
            "subtasks": {"answer": "shared", "why": "One ticket fits any context."},
            "variance": {"answer": "low", "why": "Twelve categories, all treated alike."},
            "persistence": {"answer": "no", "why": "Tickets are independent, and one can be routed again."},
            "stronger_models": {
                "answer": "no",
                "why": "A better classifier replaces the one in the pipeline.",
            },
            "branch_on": CATEGORIES,
            "tolerance": 0.01,
        },
    },
    "E1.6": {
        "memo": {
            "tasks": "Pull requests to be reviewed for style and security, with one comment posted on each. They "
            "differ in size and language.",
            "tools": {
                "answer": "fixed",
                "count": 4,
                "why": "Fetch the diff, check style, scan for security, post: all of them on each request.",
            },
            "sequence": {
                "answer": "yes",
                "why": "What the checkers report decides what the comment says, not what is done next.",
            },
            "verifier": {
                "answer": "judged",
                "name": "the author and the reviewers of the pull request",
                "why": "The checkers' findings can be verified; whether the comment weighs them well cannot.",
            },
            "failure": {"answer": "low", "why": "A comment can be corrected, and a person still merges."},
            "subtasks": {
                "answer": "shared",
                "why": "Both checks read the same diff, and the comment needs both.",
            },
            "variance": {"answer": "low", "why": "Each request takes the same steps, whatever it changes."},
            "persistence": {"answer": "no", "why": "The review can be run again on the same commit."},
            "stronger_models": {
                "answer": "no",
                "why": "The one call that writes the comment gains by itself.",
            },
            "revise": ["Findings have to be confirmed by reading other files or by running the code."],
        }
    },
}
