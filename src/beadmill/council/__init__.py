"""Draft, vote, refine, cover: how several seats make one document. A library for nodes; it decides nothing by itself."""

from beadmill.council.council import Council
from beadmill.council.cover import Candidate, Cover
from beadmill.council.desk import Desk, Table
from beadmill.council.domains import BEADS, INTERVIEW, PRD, Domain
from beadmill.council.drafts import Draft, Drafts
from beadmill.council.seats import implementer, seats

__all__ = [
    "BEADS",
    "INTERVIEW",
    "PRD",
    "Candidate",
    "Council",
    "Cover",
    "Desk",
    "Domain",
    "Draft",
    "Drafts",
    "Table",
    "implementer",
    "seats",
]
