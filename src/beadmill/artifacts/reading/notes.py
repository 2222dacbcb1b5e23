"""What reading did to a reply, collected while it happens."""

from __future__ import annotations

from typing import Literal

from beadmill.artifacts.council import Intervention

Category = Literal["parser_fix", "cleanup", "synthesized", "dropped", "attribution", "retry"]
Stage = Literal["parse", "normalize", "semantic_validation", "retry"]
MOST = 100  # a reply with more is reported as "and more", the value is the same


class Notes:
    """An append-only list of interventions. Each attempt at a candidate has its own, so a rejected one leaves none."""

    def __init__(self, *earlier: Intervention) -> None:
        self._all: list[Intervention] = list(earlier)

    def add(self, category: Category, stage: Stage, title: str, detail: str = "") -> None:
        if len(self._all) == MOST:
            self._all.append(Intervention(category="cleanup", stage=stage, title="and more of the same"))
        if len(self._all) < MOST:
            self._all.append(Intervention(category=category, stage=stage, title=title, detail=detail[:400]))

    def fixed(self, title: str, detail: str = "") -> None:
        self.add("parser_fix", "parse", title, detail)

    def cleaned(self, title: str, detail: str = "") -> None:
        self.add("cleanup", "normalize", title, detail)

    def dropped(self, title: str, detail: str = "") -> None:
        self.add("dropped", "normalize", title, detail)

    def synthesized(self, title: str, detail: str = "") -> None:
        self.add("synthesized", "normalize", title, detail)

    def extend(self, more: tuple[Intervention, ...]) -> None:
        for one in more:
            self.add(one.category, one.stage, one.title, one.detail)

    def all(self) -> tuple[Intervention, ...]:
        return tuple(self._all)
