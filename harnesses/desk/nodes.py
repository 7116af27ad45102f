"""Nodes: the desk's nine functions from state to update; imports decider, questions, toolbox, outbox, grounds, handoff.

The guard asks the decider and writes its number down; another node does nothing but pause, because a node that pauses
runs again from its first line on resume. The hard rules are checked before the decider is asked. Each node leaves one
line in `trace`, with the numbers and thresholds that its edge reads. Source: M14 §4 (table of nodes), §5, §7.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from langchain_core.runnables import RunnableConfig
from langgraph.types import interrupt

from harnesses.desk.decider import Decider, label
from harnesses.desk.grounds import Kind, guard_region, hard_ground, looked_up, router_ground
from harnesses.desk.handoff import handoff
from harnesses.desk.outbox import Email, Outbox
from harnesses.desk.prompt import system_message
from harnesses.desk.questions import ROUTES, guard_question, route_question, verify_question
from harnesses.desk.reviews import Verdict, addressed, review_question
from harnesses.desk.state import ACT, ESC, ROUTE, VERIFY, DeskState, Line, Message, Update, merged
from harnesses.desk.tool_errors import Stop
from harnesses.desk.toolbox import SEND_EMAIL, BoundTools, Toolbox
from harnesses.desk.transcript import all_calls, calls, passages, record, resulted, said
from harnesses.guard.region import probability
from harnesses.runtime.models import Model, ModelFailure, RawCall, Reply
from harnesses.runtime.parse import as_written, parse
from harnesses.runtime.records import ToolCall, ToolResult
from harnesses.runtime.tools import refusal

View = Callable[[Sequence[Message]], list[Message]]
"""What of the thread's messages the model is shown; the state keeps them all."""


def everything(messages: Sequence[Message]) -> list[Message]:
    """The view that leaves nothing out."""
    return list(messages)


@dataclass(frozen=True)
class Nodes:
    """What the nodes need beside the state: the language model, the decider, the tools, the outbox."""

    model: Model
    decider: Decider
    toolbox: Toolbox
    outbox: Outbox
    view: View = everything

    def router(self, state: DeskState) -> Update:
        """One Choice: which step comes next. A wish for a person is honoured before it is asked."""
        update: Update = {"route": None, "p_route": None}
        ground = router_ground({**state, **update})
        if ground is not None and ground.kind is Kind.PERSON:
            return update | _line("router", ground.detail)
        try:
            answer = self.decider.choose(route_question(state["case"]))
            if answer.choice in ROUTES:
                update = {"route": answer.choice, "p_route": _checked(answer.p)}
            fault = "" if answer.choice in ROUTES else f"{answer.choice!r} is none of the routes"
        except Exception as error:  # whatever a decider raises, it has not decided
            fault = _words(error)
        numbers = {
            "p_route": update["p_route"],
            "tau_route": state["taus"][ROUTE],
            "decider": label(self.decider),
        }
        ground = router_ground({**state, **update})
        says = fault or (ground.detail if ground else f"{update['route']}, p_route {_reached(update, state)}")
        return update | _line("router", says, **numbers)

    def agent(self, state: DeskState) -> Update:
        """One model call with the tools. A transient failure is raised, so that the call may be made again."""
        messages, k = state["messages"], state["k"] + 1
        shown = [system_message(state["case"]), *self.view(messages)]
        try:
            reply = self.model.reply(shown, self.toolbox.schemas, state["k"])
        except ModelFailure as failure:
            if failure.transient:
                raise
            return {
                "k": k,
                **_failed(f"the model gave no reply: {failure}"),
                **_line("agent", f"no reply: {failure}"),
            }
        numbers = {"k": k, "k_max": state["k_max"], "model": self.model.name, "tokens": reply.tokens}
        if reply.fault is not None or not (reply.calls or reply.text.strip()):
            fault = reply.fault or "the reply is empty"
            written = [{"role": "assistant", "content": as_written(reply)}]
            return {"messages": written, "k": k, **_failed(fault), **_line("agent", fault, **numbers)}
        message = said(reply, len(all_calls(messages)) + 1)
        update: Update = {"messages": [message], "k": k}
        asked = ", ".join(call["name"] for call in calls(message))
        if not asked:
            update["outcome"] = {"kind": "answer", "text": reply.text}
        elif k >= state["k_max"]:
            update |= _failed(f"k_max: {k} model calls, and {asked} still requested")
        ends = (
            f"k = {k} = k_max, {asked} still requested" if asked and k >= state["k_max"] else f"calls {asked}"
        )
        return update | _line("agent", ends if asked else "final answer", **numbers)

    def tools(self, state: DeskState) -> Update:
        """Run the calls that read; store the email that is asked for, which waits for the guard."""
        bound, pending = self.toolbox.bound(state["case"]), None
        written: list[Message] = []
        says: list[str] = []
        stopped: list[str] = []
        for asked in calls(state["messages"][-1]):
            call = _parsed(asked)
            if isinstance(call, ToolResult):
                result = call
            elif call.name == SEND_EMAIL:
                seen = merged(state, [{"messages": written}])
                found = self._parked(bound, call, seen, pending)
                if not isinstance(found, ToolResult):
                    pending = found
                    says.append(f"{SEND_EMAIL} {call.id} waits for the guard")
                    continue
                result = found
                if "order rule" in result.content:
                    stopped.append(Kind.ORDER.value)
            else:
                result = bound.run(call)
                if result.status == "denied":
                    stopped.append("least-privilege")
            written.append(resulted(asked["name"], result))
            says.append(f"{asked['name']} {asked['id']} {result.status}")
        return {"messages": written, "pending": pending, **_line("tools", "; ".join(says), stopped=stopped)}

    def _parked(
        self, bound: BoundTools, call: ToolCall, state: DeskState, pending: Mapping[str, Any] | None
    ) -> dict[str, Any] | ToolResult:
        """The pending call, or the error by which an email is not even considered."""
        if pending is not None:
            return refusal(
                call, "error", "Fix: send_email: one email at a time; ask again after the first is settled"
            )
        email = bound.email(call)
        if isinstance(email, ToolResult):
            return email
        if not looked_up(state):
            text = "Fix: send_email: order rule: look the registration up with get_registration first, then ask again"
            return refusal(call, "error", text)
        return {"id": call.id, "email": email.json()}

    def guard(self, state: DeskState) -> Update:
        """P6 and the order rule in code, then one Noul: may this email be sent now?"""
        pending = state["pending"]
        assert pending is not None  # the edge from `tools` leads here with a pending call alone
        ground = hard_ground(state)
        if ground is not None:
            closed: Update = {"p_allow": None, "region": "escalate"}
            return closed | _line("guard", ground.detail, stopped=[ground.kind.value])
        case = {**state["case"], "registration": record(state["case"], state["messages"])}
        asked: Update = {"p_allow": None}
        fault = ""
        try:
            question = guard_question(case, pending["email"], passages(state["messages"]))
            asked["p_allow"] = _checked(self.decider.noul(question))
        except Exception as error:  # whatever a decider raises, it has not allowed the email
            fault = _words(error)
        found = guard_region({**state, **asked})
        taus = state["taus"]
        numbers = {"tau_esc": taus[ESC], "tau_act": taus[ACT], "decider": label(self.decider)}
        says = fault or f"p_allow {asked['p_allow']:.4g}: {found.value}"
        line = _line("guard", says, p_allow=asked["p_allow"], region=found.value, **numbers)
        return {**asked, "region": found.value, **line}

    def human_review(self, state: DeskState) -> Update:
        """Pause until a person has answered this very question; answers to others are put aside.

        Nothing here has an effect, so that running it again from the top on resume repeats nothing.
        """
        question = review_question(state)
        answer = None
        while answer is None:
            answer = addressed(interrupt(question), question)
        verdict, by = answer
        approved = verdict is Verdict.APPROVE
        call = question["call"]
        update: Update = {"actions": [f"{'approved' if approved else 'rejected'}:{call}"]}
        if not approved:
            text = "Stop: send_email: a person has rejected this email; do not ask for it again"
            result = ToolResult(call, "denied", text, 0.0)
            update |= {"pending": None, "messages": [resulted(SEND_EMAIL, result)]}
        says = f"{verdict.value} by {by}"
        return update | _line("human_review", says, by=by, stopped=[] if approved else ["person"])

    def send(self, state: DeskState, config: RunnableConfig) -> Update:
        """Send the pending email, once for its call. A database that is busy is raised: the run goes on from here."""
        pending = state["pending"]
        assert pending is not None  # both edges to this node need a pending call
        thread, call = str(config["configurable"]["thread_id"]), pending["id"]
        try:
            first = self.outbox.send(thread, call, Email(**pending["email"]))
        except Stop as error:
            result = ToolResult(call, "error", f"Stop: send_email: {error}", 0.0)
            return {"messages": [resulted(SEND_EMAIL, result)], "pending": None, **_line("send", str(error))}
        to = pending["email"]["to"]
        result = ToolResult(call, "ok", f"The email to {to} was sent.", 0.0)
        says = f"{call} to {to}" + ("" if first else ", sent before: nothing went out now")
        return {
            "messages": [resulted(SEND_EMAIL, result)],
            "pending": None,
            "actions": [f"sent:{call}"],
            **_line("send", says, first=first),
        }

    def ask_user(self, state: DeskState) -> Update:
        """A question to the participant about what is missing."""
        text = question_to(state["case"])
        return {
            "actions": ["asked_user"],
            "outcome": {"kind": "question", "text": text},
            **_line("ask_user", text),
        }

    def escalate(self, state: DeskState) -> Update:
        """The hand-off record."""
        made = handoff(state, label(self.decider), self.model.name)
        actions = [f"escalated:{made['reason']}"]
        return {"actions": actions, "outcome": {"kind": "handoff", **made}, **_line("escalate", made["why"])}

    def verify(self, state: DeskState) -> Update:
        """One Noul: does the answer rest on the passages? None were read: no question, no verdict (stretch A)."""
        outcome, read = state["outcome"], passages(state["messages"])
        assert outcome is not None  # only a final answer comes here
        p, mark = None, "no-sources"
        says = "no passage was read"
        if read:
            try:
                p = _checked(self.decider.noul(verify_question(outcome["text"], read)))
                says = f"p {p:.4g}, tau_verify {state['taus'][VERIFY]}"
            except Exception as error:
                says = _words(error)
            reached = p is not None and probability(p, "p") >= probability(state["taus"][VERIFY], "tau")
            mark = "verified" if reached else "unverified"
        numbers = {"p_verify": p, "tau_verify": state["taus"][VERIFY], "decider": label(self.decider)}
        line = _line("verify", f"{mark}: {says}", **numbers)
        return {"actions": [f"delivered:{mark}"], "outcome": {**outcome, "delivered": mark}, **line}


def question_to(case: Mapping[str, Any]) -> str:
    """What the participant is asked: the first thing that is missing from the case, else what they want done."""
    if case.get("event") is None:
        return "Which event is this about? Please give its number (E1 to E4) or its title."
    if case.get("registration") is None:
        return "I found no registration under your address. Which address did you register with?"
    return "What would you like us to do? Please say which document, amount or change you mean."


def _parsed(asked: Mapping[str, Any]) -> ToolCall | ToolResult:
    """A call as the harness runs it, or the error of one whose arguments are no JSON object."""
    raw = RawCall(asked["name"], asked["arguments"])
    read = parse(Reply(calls=(raw,)), 1)
    if isinstance(read, str):
        return ToolResult(asked["id"], "error", f"Fix: {read}", 0.0)
    return ToolCall(asked["id"], read[0].name, read[0].arguments)


def _checked(p: Any) -> float:
    """A probability as a float. Raises GuardError for what is none."""
    return float(probability(p, "the decider's number"))


def _failed(reason: str) -> Update:
    return {"outcome": {"kind": "failed", "reason": reason}}


def _reached(update: Update, state: DeskState) -> str:
    return f"{update['p_route']:.4g} >= tau_route {state['taus'][ROUTE]}"


def _words(error: Exception) -> str:
    return f"{type(error).__name__}: {error}" if str(error) else type(error).__name__


def _line(node: str, says: str, **numbers: Any) -> Update:
    """One line of the trace; numbers that are not there are left out."""
    kept: Line = {name: value for name, value in numbers.items() if value not in (None, [])}
    return {"trace": [{"node": node, "says": says, **kept}]}
