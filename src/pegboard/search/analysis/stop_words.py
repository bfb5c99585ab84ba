"""Words of requests and sentences that say nothing of what a tool does."""

from __future__ import annotations

from typing import Final

_WORDS: Final = """
a about after again all also am an and any anything are aren as at be because been before being both but by
can cannot could d did didn do does doesn doing don done each either else every few for from further gonna
got had has have having he hello hence her here hers hey hi him his how however i if in instead into is isn
it its itself just kindly let lets like ll m make many may maybe me might mine more most much must my myself
need needed needs neither no nor not now of off ok okay on once one only onto or other others our ours out
over own per perhaps please quite rather re really s same shall she should since so some something soon such
sure t than thank thanks that the their theirs them themselves then there therefore these they thing things
this those though through thus to together too toward towards under until up upon us use used uses using ve
very via want wants was wasn way we well were what whatever when whenever where whether which while who whom
whose why will with within without won would yes yet you your yours yourself
"""

STOP_WORDS: Final = frozenset(_WORDS.split())
"""English function words, forms of politeness and the pieces that apostrophes leave; names keep theirs."""
