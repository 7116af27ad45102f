"""Context maps, each once: tabulated by the formal side, folded by the running one; the public list.

>>> from harnesses.context import Sizes, fold, parse_map
>>> from pomdp.library import task
>>> flip = task("flip:3")
>>> sizes = Sizes.of_task(flip)
>>> history = [sizes.event(*pair) for pair in [("wait", "u1"), ("flip", "t2"), ("wait", "t3")]]
>>> context = fold(parse_map("last:1").bind(flip.model, 5, sizes), history)
>>> context.text, context.tokens, [gone.message.text for gone in context.dropped]
('wait=t3', 40, ['wait', 'u1', 'flip', 't2'])
>>> fold(parse_map("pin:flip/t2:last:1").bind(flip.model, 5, sizes), history).text
'flip=t2;wait=t3'
"""

from harnesses.context.belief_grid import BeliefGrid
from harnesses.context.compose import Calls, Compose, Psi, Rename, Results, Table, Unordered
from harnesses.context.context_map import Branches, ContextMap, Memory, branches, fold, require_horizon
from harnesses.context.counter import Counter
from harnesses.context.held import Held
from harnesses.context.message import Context, Event, Message, Removal, Sizes, total_tokens
from harnesses.context.names import KNOWN, MapRecipe, parse_map
from harnesses.context.numbered import NumberedMap
from harnesses.context.oldest_first import OldestFirst
from harnesses.context.order import Refutation, coarsens
from harnesses.context.pattern import Pattern
from harnesses.context.pin import Pin
from harnesses.context.retrieve import Register, Retrieve
from harnesses.context.summary import Count, First, Latest, Pairs, Parity, Statistic, Summary
from harnesses.context.window import Full, Last, LastMessages, Null

__all__ = [
    "BeliefGrid",
    "Branches",
    "Calls",
    "Compose",
    "Context",
    "ContextMap",
    "Count",
    "Counter",
    "Event",
    "First",
    "Full",
    "Held",
    "KNOWN",
    "Last",
    "LastMessages",
    "Latest",
    "MapRecipe",
    "Memory",
    "Message",
    "Null",
    "NumberedMap",
    "OldestFirst",
    "Pairs",
    "Parity",
    "Pattern",
    "Pin",
    "Psi",
    "Refutation",
    "Register",
    "Removal",
    "Rename",
    "Results",
    "Retrieve",
    "Sizes",
    "Statistic",
    "Summary",
    "Table",
    "Unordered",
    "branches",
    "coarsens",
    "fold",
    "parse_map",
    "require_horizon",
    "total_tokens",
]
