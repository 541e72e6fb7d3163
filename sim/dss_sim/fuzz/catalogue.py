"""All parsers of what others wrote, each by its name."""

from dss_sim.fuzz.files import FILES
from dss_sim.fuzz.messages import MESSAGES
from dss_sim.fuzz.parser import Parser
from dss_sim.fuzz.texts import TEXTS

PARSERS: tuple[Parser, ...] = (*FILES, *TEXTS, *MESSAGES)
assert len({each.name for each in PARSERS}) == len(PARSERS)
