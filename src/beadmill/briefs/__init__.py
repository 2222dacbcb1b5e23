"""Briefs: what one session is given. Templates people may edit, allow-lists, a token budget, a ledger."""

from beadmill.briefs.catalog import SHEETS, Sheet
from beadmill.briefs.part import PartText
from beadmill.briefs.write import Briefs

__all__ = ["SHEETS", "Briefs", "PartText", "Sheet"]
