"""Graphs: each harness pattern of M14 §9 as a small LangGraph graph over one running request; imports langgraph.

A node returns what changes; calls and tokens add up by their reducers. A loop, a branch and a worker are graphs of
their own, started with a fresh state: each sees only what it is given and returns a short result (M14 §9, rules 1 and
2). Nothing here knows the formal side.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from operator import add
from typing import Annotated, Any, TypedDict

from langgraph.graph import END, START, StateGraph
from langgraph.runtime import Runtime
from langgraph.types import Send

from harnesses.desk.patterns import request as task
from harnesses.desk.patterns.chooser import ERROR, Tokens, choice
from harnesses.desk.patterns.world import World
from pomdp.rng import ACTION

VOTERS, ROUNDS, LOOP, AUTONOMOUS = 3, 3, 8, 16
"""Branches of the vote; drafts of the evaluator-optimizer; steps of a loop of three tools, and of all seven."""

RECURSION_LIMIT = 100
TOOLS = (task.CLASSIFY, task.RETRIEVE, task.DRAFT)
HANDED, UNFINISHED = "handed", "unfinished"


@dataclass(frozen=True)
class Surroundings:
    """What the nodes of a run share and no state holds: the world, token sizes, the chooser's error."""

    world: World
    tokens: Tokens = Tokens()
    error: Fraction = ERROR


class State(TypedDict, total=False):
    """A run: typed facts, last value wins; `calls`, `tokens`, `answers`, `gaps` and `trace` are appended to.

    `shown`: what the last call showed of the question in hand; `known`: what is known of their number; `slot`: the
    question, or branch; `earlier`: steps made in this loop; `pending`: the chosen call; `drafts`: drafts checked;
    `answers`: slots whose drafts go into the email; `gaps`: slots whose worker failed; `outcome`: how it ended.
    """

    shown: str
    known: str
    slot: int
    earlier: int
    pending: str
    drafts: int
    calls: Annotated[int, add]
    tokens: Annotated[int, add]
    answers: Annotated[list[int], add]
    gaps: Annotated[list[int], add]
    trace: Annotated[list[str], add]
    outcome: str


Update = dict[str, Any]
Step = Callable[[State, Runtime[Surroundings]], Update]
Edge = Callable[[State], Any]


def opening(known: str = task.UNSPLIT, slot: int = 0) -> State:
    """The state in which a graph starts: nothing done yet."""
    return State(
        shown=task.Part().shown, known=known, slot=slot, earlier=0, pending="", drafts=0, calls=0, tokens=0,
        answers=[], gaps=[], trace=[], outcome="",
    )  # fmt: skip


def fixed(action: str) -> Step:
    """A node whose step the code has chosen."""

    def node(state: State, runtime: Runtime[Surroundings]) -> Update:
        near = runtime.context
        cost = near.tokens.step(action, 1, 0)
        shown = near.world.call(action, state["slot"])
        return {"shown": shown, "calls": cost.calls, "tokens": cost.tokens, "trace": [action]}

    return node


def name_questions(state: State, runtime: Runtime[Surroundings]) -> Update:
    """The model names the questions of the request."""
    update = fixed(task.SPLIT)(state, runtime)
    return update | {"known": task.FIRST if runtime.context.world.seen == 2 else task.ONE}


def send(state: State, runtime: Runtime[Surroundings]) -> Update:
    """The code sends the email: the answers handed in so far, and the draft in hand."""
    slots = [*state["answers"], state["slot"]]
    return {"outcome": runtime.context.world.send(slots), "trace": [task.SUBMIT]}


def submit(state: State, runtime: Runtime[Surroundings]) -> Update:
    """The draft in hand is handed in; after the first of two the second comes up, else the email goes out."""
    if state["known"] != task.FIRST:
        return send(state, runtime)
    return {
        "answers": [state["slot"]], "known": task.SECOND, "slot": state["slot"] + 1,
        "shown": task.Part().shown, "drafts": 0, "trace": [task.SUBMIT],
    }  # fmt: skip


def hand_over(state: State) -> Update:
    """A person gets the request."""
    return {"outcome": HANDED, "trace": [task.ESCALATE]}


def agent(menu: Sequence[str]) -> Step:
    """The model chooses the next call from the menu, having read the loop so far; a draft comes in the same reply."""

    def node(state: State, runtime: Runtime[Surroundings]) -> Update:
        near = runtime.context
        facts = f"{state['known']}.{state['shown']}"
        chosen = near.world.draw(ACTION, state["slot"], choice(facts, menu, near.error))
        cost = near.tokens.step(chosen, len(menu), state["earlier"])
        return {"pending": chosen, "calls": cost.calls, "tokens": cost.tokens}

    return node


def execute(state: State, runtime: Runtime[Surroundings]) -> Update:
    """The chosen call is made: of the seven, whatever it is."""
    action, counted = state["pending"], {"earlier": state["earlier"] + 1}
    if action == task.ESCALATE:
        return hand_over(state) | counted
    if action == task.SUBMIT:
        return submit(state, runtime) | counted
    world = runtime.context.world
    fresh = action == task.SPLIT and world.seen == 0
    update: Update = {"shown": world.call(action, state["slot"]), "trace": [action]}
    if fresh:
        update["known"] = task.FIRST if world.seen == 2 else task.ONE
    return update | counted


def stopped(state: State) -> Update:
    """The loop has used its steps: the run is a failure."""
    return {"outcome": UNFINISHED}


def drafted(state: State) -> bool:
    """Whether the loop has given its final answer."""
    return state["shown"].endswith(".new")


def build(nodes: Mapping[str, Any], edges: Mapping[str, str | Edge]) -> Any:
    """The compiled graph: nodes by name, the first after START; an edge is a name or a function of the state."""
    graph = StateGraph(State, context_schema=Surroundings)
    for name, node in nodes.items():
        graph.add_node(name, node)
    graph.add_edge(START, next(iter(nodes)))
    for name, edge in edges.items():
        if callable(edge):
            graph.add_conditional_edges(name, edge)
        else:
            graph.add_edge(name, edge)
    return graph.compile()


LINE = {a: fixed(a) for a in TOOLS}


def chain() -> Any:
    """Prompt chaining: name the document, retrieve, draft, send."""
    return build(
        {**LINE, "send": send},
        {task.CLASSIFY: task.RETRIEVE, task.RETRIEVE: task.DRAFT, task.DRAFT: "send", "send": END},
    )


def routing() -> Any:
    """Routing: a classifier counts the questions, the code follows the path for one or the path for two."""

    def route(state: State) -> str:
        return "one-classify" if state["known"] == task.ONE else "first-classify"

    nodes: dict[str, Any] = {"router": name_questions}
    edges: dict[str, str | Edge] = {"router": route}
    for path, last in (("one", "send"), ("first", "hand-in"), ("second", "send")):
        nodes |= {f"{path}-{a}": node for a, node in LINE.items()}
        steps = [*(f"{path}-{a}" for a in TOOLS), last]
        edges |= dict(zip(steps, steps[1:], strict=False))
    return build(
        {**nodes, "hand-in": submit, "send": send}, {**edges, "hand-in": "second-classify", "send": END}
    )


@lru_cache(maxsize=1)
def branch() -> Any:
    """The chain without its end: what each branch of `parallel` runs."""
    return build(LINE, {task.CLASSIFY: task.RETRIEVE, task.RETRIEVE: task.DRAFT, task.DRAFT: END})


def parallel() -> Any:
    """Parallelization: three chains side by side; the code sends the answer that most of them gave."""

    def fan_out(state: State) -> list[Send]:
        return [Send("branch", opening(slot=slot)) for slot in range(VOTERS)]

    def one_branch(state: State, runtime: Runtime[Surroundings]) -> Update:
        done = branch().invoke(state, context=runtime.context)
        return {"answers": [state["slot"]], **_spent(done)}

    def vote(state: State, runtime: Runtime[Surroundings]) -> Update:
        world = runtime.context.world
        given = {slot: world.answer(slot) for slot in state["answers"]}
        (most, _), *_ = Counter(given.values()).most_common(1)
        taken = next(slot for slot, answer in given.items() if answer == most)
        return {"outcome": world.send([taken]), "trace": [task.SUBMIT]}

    return build(
        {"start": lambda state: {}, "branch": one_branch, "vote": vote},
        {"start": fan_out, "branch": "vote", "vote": END},
    )


@lru_cache(maxsize=1)
def loop() -> Any:
    """Tool use as a loop: agent and tools in turn until the final answer, a draft, or the last step."""

    def after(state: State) -> str:
        return END if drafted(state) or state["earlier"] >= LOOP else "agent"

    return build({"agent": agent(TOOLS), "tools": execute}, {"agent": "tools", "tools": after})


def run_loop(state: State, runtime: Runtime[Surroundings]) -> Update:
    """The free loop inside one node: it starts with the facts alone and hands back what it came to."""
    given = opening(state["known"], state["slot"]) | {"shown": state["shown"]}
    done = loop().invoke(given, {"recursion_limit": RECURSION_LIMIT}, context=runtime.context)
    return {"shown": done["shown"], **_spent(done)}


def tool_use() -> Any:
    """Tool use: the model, one call at a time; its final answer is sent."""
    return build(
        {"loop": run_loop, "send": send, "stopped": stopped},
        {"loop": lambda s: "send" if drafted(s) else "stopped", "send": END, "stopped": END},
    )


def evaluator() -> Any:
    """Evaluator-optimizer: a draft is checked, then sent or made anew; after three failures a person gets it."""

    def check(state: State, runtime: Runtime[Surroundings]) -> Update:
        return fixed(task.CHECK)(state, runtime) | {"drafts": state["drafts"] + 1}

    def judge(state: State) -> str:
        if state["shown"].endswith(".pass"):
            return "send"
        return task.CLASSIFY if state["drafts"] < ROUNDS else task.ESCALATE

    return build(
        {**LINE, task.CHECK: check, "send": send, task.ESCALATE: hand_over},
        {
            task.CLASSIFY: task.RETRIEVE, task.RETRIEVE: task.DRAFT, task.DRAFT: task.CHECK, task.CHECK: judge,
            "send": END, task.ESCALATE: END,
        },
    )  # fmt: skip


def orchestrator() -> Any:
    """Orchestrator-workers: the model names the questions, a worker answers each alone, and a gap goes to a person."""

    def hand_out(state: State) -> list[Send]:
        if state["known"] == task.ONE:
            return [Send("worker", opening(task.ONE))]
        return [Send("worker", opening(known, slot)) for slot, known in enumerate((task.FIRST, task.SECOND))]

    def worker(state: State, runtime: Runtime[Surroundings]) -> Update:
        done = run_loop(state, runtime)
        finished = done.pop("shown").endswith(".new")
        return done | {"answers" if finished else "gaps": [state["slot"]]}

    def join(state: State, runtime: Runtime[Surroundings]) -> Update:
        if state["gaps"]:
            return hand_over(state)
        return {"outcome": runtime.context.world.send(state["answers"]), "trace": [task.SUBMIT]}

    return build(
        {"coordinator": name_questions, "worker": worker, "join": join},
        {"coordinator": hand_out, "worker": "join", "join": END},
    )


def autonomous() -> Any:
    """Autonomous agent: the model directs the whole process until it stops, or has used its steps."""

    def after(state: State) -> str:
        if state["outcome"]:
            return END
        return "agent" if state["earlier"] < AUTONOMOUS else "stopped"

    return build(
        {"agent": agent(task.ACTIONS), "tools": execute, "stopped": stopped},
        {"agent": "tools", "tools": after, "stopped": END},
    )


def hybrid() -> Any:
    """LG's hybrid: the outer graph names, checks and sends; a free loop inside one of its nodes answers."""

    def check(state: State, runtime: Runtime[Surroundings]) -> Update:
        return fixed(task.CHECK)(state, runtime) | {"drafts": state["drafts"] + 1}

    def judge(state: State) -> str:
        if state["shown"].endswith(".pass"):
            return "submit"
        return "loop" if state["drafts"] < 2 else task.ESCALATE

    return build(
        {
            "questions": name_questions, "loop": run_loop, task.CHECK: check, "submit": submit,
            task.ESCALATE: hand_over,
        },
        {
            "questions": "loop", "loop": lambda s: task.CHECK if drafted(s) else task.ESCALATE, task.CHECK: judge,
            "submit": lambda s: END if s["outcome"] else "loop", task.ESCALATE: END,
        },
    )  # fmt: skip


GRAPHS: dict[str, Callable[[], Any]] = {
    "chain": chain,
    "routing": routing,
    "parallel": parallel,
    "tool_use": tool_use,
    "evaluator": evaluator,
    "orchestrator": orchestrator,
    "autonomous": autonomous,
    "hybrid": hybrid,
}


@lru_cache(maxsize=len(GRAPHS))
def graph(pattern: str) -> Any:
    """The compiled graph of a pattern, once a process; ValueError for an unknown one."""
    if pattern not in GRAPHS:
        raise ValueError(f"no pattern {pattern!r}; known: {', '.join(GRAPHS)}")
    return GRAPHS[pattern]()


def _spent(done: Mapping[str, Any]) -> Update:
    """What an inner graph adds to the outer one's counts; the rest of its transcript stays inside."""
    return {name: done[name] for name in ("calls", "tokens", "trace")}
