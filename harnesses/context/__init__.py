"""Context maps, each once: tabulated by the formal side, folded by the running one; the public list.

>>> from harnesses.context import Sizes, fold, parse_map
>>> from pomdp.library import task
>>> flip = task("flip:3")
>>> phi = parse_map("last:1").bind(flip.model, 5, Sizes.of_task(flip))
>>> history = [Sizes.of_task(flip).event(*pair) for pair in [("wait", "u1"), ("flip", "t2"), ("wait", "t3")]]
>>> context = fold(phi, history)
>>> context.text, context.tokens, [gone.message.text for gone in context.dropped]
('wait=t3', 40, ['wait', 'u1', 'flip', 't2'])
"""

from harnesses.context.context_map import Branches, ContextMap, Memory, branches, fold, require_horizon
from harnesses.context.message import Context, Event, Message, Removal, Sizes, total_tokens
from harnesses.context.names import MapRecipe, parse_map
from harnesses.context.window import Full, Last, LastMessages, Null

__all__ = [
    "Branches",
    "Context",
    "ContextMap",
    "Event",
    "Full",
    "Last",
    "LastMessages",
    "MapRecipe",
    "Memory",
    "Message",
    "Null",
    "Removal",
    "Sizes",
    "branches",
    "fold",
    "parse_map",
    "require_horizon",
    "total_tokens",
]
