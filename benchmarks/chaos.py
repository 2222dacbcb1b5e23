"""Kills Beadmill with -9 while it works, starts it again, and compares the end with undisturbed runs.

``python benchmarks/chaos.py``                             the daemon, at every named durable call of every built-in node
``python benchmarks/chaos.py --kills 200 [--seed 1]``      at random moments of whole demo runs
    ``[--victims daemon,runner,agent] [--agent scripted]`` also agents' runners and the agents themselves

Progress goes to stderr, the result as one JSON object to stdout (or ``--out``). Exit 1 when anything was repeated,
lost or orphaned. A killed daemon must leave no trace at all. A killed runner or agent costs its turn: what is counted
then is that the loss was seen, undone and made good, and nothing besides.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import random
import re
import shutil
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "src"), str(ROOT / "tests/helpers")]

from beadmill.cli import daemon  # noqa: E402 - the paths first: this runs from a checkout
from beadmill.demo import house, material  # noqa: E402
from tests.deliver.daemon_world import DaemonWorld  # noqa: E402
from tests.deliver.reckoning import Reckoning, agreed, damage, differences, reckon  # noqa: E402
from tests.deliver.stories import DEMO, STORIES, Story  # noqa: E402

LEFT_OUT = (
    "runner.",
    "before ",
)  # the daemon never passes the first; the second is behind the "after" of its forerunner
PATIENCE = 600.0  # seconds for one undisturbed run on a busy machine
MORE = 60.0  # seconds more for each kill
KINDS = {
    "scan", "interview", "prd", "beads", "preflight", "setup", "build", "verify", "integrate", "pull_request", "cleanup",
    "script", "gate",
}  # fmt: skip


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


@dataclass(slots=True)
class Run:
    """One run of a story on a fresh home; daemons come and go. ``list`` is the file of crash points."""

    world: DaemonWorld
    story: Story
    agent: str
    kills: Counter[str] = field(default_factory=Counter)
    hit: set[str] = field(default_factory=set)  # sessions of which something was killed

    @property
    def list(self) -> Path:
        return self.world.place.root / "points"

    def reached(self) -> Sequence[str]:
        return _lines(self.list.with_name("points.reached"))

    async def begin(self) -> None:
        await self.world.start()
        await self.world.prepare(sop=self.story.sop, **self.story.settings(self.agent))
        self.world.terminate()

    async def to_the_end(self, kills: int = 0) -> Reckoning:
        """Answers gates, starts the daemon again whenever it died, until the run is over and all is at rest."""
        async with asyncio.timeout(PATIENCE + MORE * kills):
            while not (self.world.over and self.world.mirrored):
                if self.world.process is None or self.world.dead:
                    await self.world.start(crash=f"each:{self.list}")
                if self.world.serving and not self.world.over:
                    with suppress(AssertionError, FileNotFoundError):  # it died while its record was read
                        await self.world.go_on(lambda: False)
                await asyncio.sleep(0.02)
        if not self.world.dead:
            self.world.terminate()
        return reckon(self.world)


@asynccontextmanager
async def fresh(story: Story, agent: str, points: Sequence[str] = ()) -> AsyncIterator[Run]:
    """A demo of its own below a folder whose name is always as long: briefs hold paths, and tokens are compared."""
    root = Path(tempfile.mkdtemp(prefix="chaos-"))
    os.environ |= {"BEADMILL_HOME": str(root), "BEADMILL_TESTING": "1", "PYTHONPATH": str(ROOT / "src")}
    place = house.place()
    try:
        async with house.opened(place, agents=agent.split(","), keep=False, stay=True, say=lambda _: None):
            await asyncio.to_thread(daemon.stop, place.home, say=lambda _: None)
            _write_scenario(place, story)
            (place.root / "tmp").mkdir()
            os.environ["TMPDIR"] = str(place.root / "tmp")  # what a killed daemon leaves there is counted
            run = Run(DaemonWorld(place, choose=story.choose), story, agent)
            run.list.write_text("\n".join(points))
            try:
                yield run
            finally:
                if run.world.process is not None and not run.world.dead:
                    run.world.kill()
                for session in run.world.sessions().all():
                    if session.live():
                        await session.stop("the benchmark is over")
    finally:
        os.environ.pop("TMPDIR", None)
        shutil.rmtree(root, ignore_errors=True)


def _write_scenario(place: material.Place, story: Story) -> None:
    scenario = json.loads(place.scenario.read_text())
    scenario["replies"][:0] = story.first
    place.scenario.write_text(json.dumps(scenario, ensure_ascii=False))


def _lines(path: Path) -> list[str]:
    return list(dict.fromkeys(path.read_text().splitlines())) if path.exists() else []


# --- undisturbed --------------------------------------------------------------------------------------------------
@dataclass(frozen=True, slots=True)
class Reference:
    """``points`` in the order in which they were reached; ``seconds`` of one run."""

    end: Reckoning
    points: tuple[str, ...]
    seconds: float


async def reference(story: Story, agent: str) -> Reference:
    """Two undisturbed runs: only what they have in common can be asked of a disturbed one."""
    ends = []
    for _ in range(2):
        async with fresh(story, agent) as run:
            await run.begin()
            began = time.monotonic()
            ends.append(await run.to_the_end())
            seconds = time.monotonic() - began
            points = tuple(p for p in run.reached() if not p.startswith(LEFT_OUT))
    both = agreed(*ends)
    rows = sum(counted.total() for counted in both.exact.values())
    say(f"{story.name}: undisturbed in {seconds:.0f} s, {len(points)} crash points")
    say(f"{story.name}: {rows} rows and {len(both.measured)} contents and bills are compared")
    return Reference(both, points, seconds)


def _each_call_once(points: Sequence[str]) -> tuple[str, ...]:
    """The first of those that differ only in which seat, bead or try they are of."""
    first: dict[str, str] = {}
    for point in points:
        call = re.sub(r"\d+", "#", re.sub(r" build/[^/:]+/", " build/*/", point))
        first.setdefault(call, point)
    return tuple(first.values())


# --- at every name ------------------------------------------------------------------------------------------------
async def at_every_name(stride: int, only: Sequence[str], *, instances: bool, most: int | None) -> dict[str, Any]:
    """``stride`` runs of each story: run n dies at every stride-th name, so what lies between two kills varies.
    ``most`` cuts the names of a story short."""
    kinds: set[str] = set()
    out: dict[str, Any] = {"mode": "every name", "stories": {}, "kills": 0, "found": []}
    for story in (STORIES[name] for name in only):
        wanted = await reference(story, "scripted")
        kinds |= {_node(point) for point in wanted.points}
        missed: set[str] = set()
        about = [p for p in wanted.points if not story.nodes or _node(p) in story.nodes]
        every = tuple(about) if instances else _each_call_once(about)
        every = every[:most]
        say(f"{story.name}: {len(every)} of them in {stride} runs")
        for n in range(min(stride, len(every))):
            points = every[n::stride]
            async with fresh(story, "scripted", points) as run:
                await run.begin()
                found = differences(wanted.end, await run.to_the_end(len(points)))
                died = _lines(run.list.with_name("points.died"))
            missed |= set(points) - set(died)
            out["kills"] += len(died)
            out["found"] += [f"{story.name}, run {n + 1}: {what}" for what in found]
            say(f"{story.name}, run {n + 1} of {stride}: {len(died)} kills, {len(found)} differences {found[:3] or ''}")
        out["stories"][story.name] = {"points": len(every), "never reached again": sorted(missed)}
    out["kinds not reached"] = sorted(KINDS - kinds) if len(only) == len(STORIES) else []
    return out


def _node(point: str) -> str:
    """ "acted pull_request/publish" → "pull_request"; the hello SOP's nodes go by their kinds."""
    name = point.partition(" ")[2].partition("/")[0].partition(":")[0]
    return {"greet": "script", "review": "gate"}.get(name, name)


# --- at random ----------------------------------------------------------------------------------------------------
async def at_random(kills: int, agent: str, victims: Sequence[str], seed: int) -> dict[str, Any]:
    """Whole demo runs, each disturbed about ten times, until there were ``kills``."""
    rng = random.Random(seed)
    wanted = await reference(DEMO, agent)
    out: dict[str, Any] = {
        "mode": "random",
        "agent": agent,
        "seed": seed,
        "victims": {},
        "kills": 0,
        "found": [],
        "runs": 0,
    }
    done: Counter[str] = Counter()
    while done.total() < kills:
        out["runs"] += 1
        async with fresh(DEMO, agent) as run:
            await run.begin()
            killing = asyncio.create_task(
                _kill_now_and_then(run, rng, victims, min(10, kills - done.total()), wanted.seconds)
            )
            try:
                end = await run.to_the_end(10)
            finally:
                killing.cancel()
                await asyncio.wait([killing])
            found = damage(wanted.end, end, run.hit) if run.hit else differences(wanted.end, end)
        done += run.kills
        out["found"] += [f"run {out['runs']}: {what}" for what in found]
        say(
            f"run {out['runs']}: {dict(run.kills)} killed, {len(found)} differences, {done.total()} of {kills} {found[:3] or ''}"
        )
    return {**out, "victims": dict(done), "kills": done.total()}


async def _kill_now_and_then(run: Run, rng: random.Random, victims: Sequence[str], most: int, seconds: float) -> None:
    """Moments are drawn over the length of an undisturbed run, each from the last kill on; a start may be hit too."""
    while run.kills.total() < most:
        await asyncio.sleep(rng.uniform(0.0, 2.2 * seconds / (most + 1)))
        victim = rng.choice(list(victims))
        if victim == "daemon":
            if run.world.process is not None and not run.world.dead:
                run.world.kill()
                run.kills[victim] += 1
        elif (token := _kill_of_session(run, rng, victim)) is not None:
            run.hit.add(token)
            run.kills[victim] += 1


def _kill_of_session(run: Run, rng: random.Random, victim: str) -> str | None:
    """The runner of some living agent session, or one of the processes below it. None when none lives."""
    living = [s for s in run.world.sessions().all() if s.live() and (s.folder / "owner.json").exists()]
    rng.shuffle(living)
    for session in living:
        runner = json.loads((session.folder / "owner.json").read_text())["pid"]
        below = sorted(p.pid for p in session.running() if p.pid != runner)
        pids = [runner] if victim == "runner" else below
        if pids:
            with suppress(ProcessLookupError):
                os.kill(rng.choice(pids), signal.SIGKILL)
                return session.token
    return None


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=0, help="random kills; 0 = at every name")
    parser.add_argument("--agent", default="scripted", help="as of beadmill demo: several with commas take turns")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--victims", default="daemon", help="of daemon, runner, agent")
    parser.add_argument("--stride", type=int, default=4, help="runs over which the names of a story are spread")
    parser.add_argument("--stories", default=",".join(STORIES), help="of " + ", ".join(STORIES))
    parser.add_argument("--instances", action="store_true", help="each seat, bead and try by itself, not one of a kind")
    parser.add_argument("--most", type=int, help="no more names of each story than this, for a short look")
    parser.add_argument("--out", type=Path)
    wish = parser.parse_args()
    began = time.monotonic()
    work = (
        at_random(wish.kills, wish.agent, wish.victims.split(","), wish.seed)
        if wish.kills
        else at_every_name(wish.stride, wish.stories.split(","), instances=wish.instances, most=wish.most)
    )
    result = asyncio.run(work)
    result |= {kind: [f for f in result["found"] if f": {kind}" in f] for kind in ("repeated", "lost", "orphaned")}
    result["seconds"] = round(time.monotonic() - began)
    text = json.dumps(result, indent=1, ensure_ascii=False)
    wish.out.write_text(text + "\n") if wish.out else print(text)
    return 1 if result["found"] or result.get("kinds not reached") else 0


if __name__ == "__main__":
    sys.exit(main())
