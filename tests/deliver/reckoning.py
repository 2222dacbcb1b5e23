"""What is left when a run is over, as multisets of rows: two runs of one story can be compared, whatever befell them."""

from __future__ import annotations

import hashlib
import json
import os
import re
import subprocess
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from beadmill.agents import registry
from beadmill.processes import folder as files
from beadmill.processes import procs
from beadmill.processes.servers import is_server
from tests.deliver.shown import Shown

Rows = Counter[tuple[Any, ...]]
TABLES: Final = {
    "ticket": "select key, state, status from tickets",
    "run": "select id, state, hold from runs",
    "visit": "select id, state, outcome from visits",
    "step": "select visit_id, name, round, kind from steps",
    "session": "select token, kind, seat, template, subject, ended is not null, json_extract(end, '$.type') from sessions",
    "artifact": "select kind, visit_id, version, author from artifacts",
    "attempt": "select bead, n, state, json_array_length(sessions) from bead_attempts",
    "check": "select visit_id, bead, purpose, command, exit from checks",
    "gate": "select id, kind, state from gates",
    "decision": "select gate_id, choice from decisions",
    "change": "select run_id, number, state, decision from changes",
    "workspace": "select run_id, name, state from workspaces",
    "wait": "select visit_id, kind, key from waits",
    "lease": "select kind, resource, holder from leases",
    "event": (
        "select kind, visit_id, coalesce(json_extract(data, '$.name'), json_extract(data, '$.token'),"
        " json_extract(data, '$.phase'), json_extract(data, '$.kind'), json_extract(data, '$.gate'), '') || '' from events"
    ),
}
# The last column counts only where two undisturbed runs agree on it: texts may hold times and commits.
MEASURED: Final = {
    "artifact bytes": "select kind, visit_id, version, sha256 from artifacts",
    "bill of a session": "select token, input || '/' || cached || '/' || output from sessions",
    "bill of the run": "select id, tokens from runs",
}
# What finishes a try is in the ledger (``attempt``) before its step is recorded: a visit that begins anew sees the bead
# done and does not enter it again, so the step may be missing.
LEDGER: Final = re.compile(r"/try-\d+/done$")
CHANGING: Final = ("visit.waits",)  # events that say when something was seen, not that something was done


@dataclass(frozen=True, slots=True)
class Reckoning:
    """``exact`` must be the same in every run of a story; ``measured`` maps what to a value that may differ;
    ``wrong`` must be empty whatever happened."""

    exact: Mapping[str, Rows]
    measured: Mapping[tuple[Any, ...], Any]
    wrong: tuple[str, ...]


def reckon(shown: Shown) -> Reckoning:
    """Call it when the daemon has stopped."""
    exact = {name: Counter(shown.rows(query)) for name, query in TABLES.items()}
    exact["event"] = _without(exact["event"], lambda kind, _, what: kind in CHANGING or LEDGER.search(what))
    exact["step"] = _without(exact["step"], lambda _, name, *__: LEDGER.search(name))
    exact |= {"said by a session": _said(shown), "ref": _refs(shown), "file": _files(shown)}
    exact["merged tree"] = Counter([(_git(shown.place.origin, "rev-parse", "main^{tree}"),)])
    exact["merge"] = Counter(
        {(line,): 1 for line in _git(shown.place.origin, "log", "--format=%s", "main").split("\n")}
    )
    measured = {(name, *row[:-1]): row[-1] for name, query in MEASURED.items() for row in shown.rows(query)}
    return Reckoning(exact, measured, (*_broken(shown), *orphans(shown)))


def _without(rows: Rows, which: Callable[..., object]) -> Rows:
    return Counter({row: n for row, n in rows.items() if not which(*row)})


def _said(shown: Shown) -> Rows:
    """How often each session began, edited, ran a command and ended: an agent that was asked twice began twice."""
    kinds: Rows = Counter()
    for session in shown.sessions().all():
        if is_server(session.token):  # one is started whenever it is needed, and named after what it was started with
            continue
        for line in (session.folder / "events.jsonl").read_text().splitlines():
            kind = json.loads(line)["kind"]
            if kind in ("started", "tool", "command_done", "ended"):
                kinds[session.token, kind] += 1
    return kinds


def _refs(shown: Shown) -> Rows:
    """Names only, since a commit has its time in it; of undo refs what they were kept for, since they are numbered."""
    found: Rows = Counter()
    for where in (shown.place.checkout, shown.place.origin):
        for line in _git(where, "for-each-ref", "--format=%(refname)%09%(subject)").splitlines():
            name, _, why = line.partition("\t")
            found[where.name, re.sub(r"\d+$", why, name) if name.startswith("refs/beadmill/undo/") else name] += 1
    trees = _git(shown.place.checkout, "worktree", "list", "--porcelain").count("worktree ")
    found["worktrees", trees] += 1
    return found


def _files(shown: Shown) -> Rows:
    """Everything in the home but logs, SQLite's own and what CLIs keep in theirs; below sessions too, so a half-written
    file shows."""
    home = shown.place.home
    theirs = tuple(f"{name}/" for name in registry.paths())
    found = (path.relative_to(home).as_posix() for path in home.rglob("*"))
    own = re.compile(
        r"logs/|backups/|beadmill\.db-|daemon\.json|sessions/[^/]+/(control|runner\.log)$|sessions/[^/]+-server-"
    )
    by_path = re.compile(r"(?<=/\.locks/)[0-9a-f]+|(?<=^trust/own-)[0-9a-f]+|(?<=^trust/common-)[0-9a-f]+")
    return Counter((by_path.sub("…", name),) for name in found if not (own.match(name) or name.startswith(theirs)))


def _broken(shown: Shown) -> Iterator[str]:
    for (verdict,) in shown.rows("pragma integrity_check"):
        if verdict != "ok":
            yield f"lost: the database says {verdict}"
    for row in shown.rows("pragma foreign_key_check"):
        yield f"lost: {row} points nowhere"
    numbers = [row[0] for row in shown.rows("select seq from events order by seq")]
    if numbers != list(range(1, len(numbers) + 1)):
        yield "lost: events are not numbered without gaps"
    named = "select blob from steps where blob is not null union select prompt_sha from sessions where prompt_sha is not null"
    there = {
        sha for sha, data in shown.rows("select sha256, data from blobs") if hashlib.sha256(data).hexdigest() == sha
    }
    wanted = {row[0] for row in shown.rows(f"{named} union select sha256 from artifacts")}
    yield from (f"lost: the content {sha}" for sha in sorted(wanted - there))
    for bead, n, commit in shown.rows("select bead, n, end_commit from bead_attempts where state = 'done'"):
        if _git(shown.place.checkout, "cat-file", "-t", commit, missing="nothing") != "commit":
            yield f"lost: the commit {commit} of {bead} try {n}"
    twice = "select visit_id, name, count(*) from steps where kind = 'step' group by visit_id, name, round having count(*) > 1"
    yield from (f"repeated: {row}" for row in shown.rows(twice))


def orphans(shown: Shown) -> Iterator[str]:
    """Processes, locks and temporary files that nobody owns. The daemon must have stopped."""
    for session in shown.sessions().all():
        yield from (f"orphaned: {proc.command} ({proc.pid}) of {session.token}" for proc in session.running())
        if files.is_locked(session.folder):
            yield f"orphaned: the lock of {session.token}"
        if not (session.folder / "end.json").exists():
            yield f"orphaned: {session.token} has no end"
    yield from (
        f"orphaned: process {proc.pid} ({proc.command}) works in the demo" for proc in _inside(shown.place.root)
    )
    for token in shown.rows("select token from sessions where ended is null"):
        yield f"orphaned: {token[0]} was never booked"
    for where in (shown.place.checkout / ".git", shown.place.origin):
        yield from (f"orphaned: {path}" for path in where.rglob("*.lock"))
        yield from (f"orphaned: {path}" for path in where.rglob("tmp_obj_*"))
    temporary = shown.place.root / "tmp"
    if temporary.is_dir():
        yield from (f"orphaned: {path}" for path in temporary.iterdir())


def _inside(root: Path) -> Iterator[procs.Proc]:
    """Processes whose folder or command line is below ``root``."""
    needle = os.fsencode(root)
    for proc in procs.table().values():
        try:
            here = Path(f"/proc/{proc.pid}")
            if (here / "cwd").readlink().is_relative_to(root) or needle in (here / "cmdline").read_bytes():
                yield proc
        except OSError:
            continue


def _git(where: Path, *args: str, missing: str | None = None) -> str:
    done = subprocess.run(["git", "-C", str(where), *args], check=False, capture_output=True, text=True)
    if done.returncode and missing is None:
        raise RuntimeError(done.stderr)
    return done.stdout.strip() if not done.returncode else str(missing)


# --- comparing ----------------------------------------------------------------------------------------------------
def differences(reference: Reckoning, seen: Reckoning) -> list[str]:
    """``repeated``: rows too many. ``lost``: rows too few. Empty = as if nothing had happened."""
    out = list(seen.wrong)
    for name, rows in reference.exact.items():
        out += [f"repeated: {name} {row} × {n}" for row, n in (seen.exact[name] - rows).items()]
        out += [f"lost: {name} {row} × {n}" for row, n in (rows - seen.exact[name]).items()]
    for what, value in reference.measured.items():
        if what in seen.measured and not _same(value, seen.measured[what]):
            out.append(f"repeated: {what} is {seen.measured[what]}, not {value}")
    return out


def _same(value: Any, other: Any) -> bool:
    """A bill may differ by the length of a time in a brief; a call that was counted twice doubles it."""
    one, two = ([int(n) for n in str(v).split("/") if n.isdigit()] for v in (value, other))
    bills = "/" in str(value) or isinstance(value, int)
    return all(abs(a - b) <= max(a, b) / 100 for a, b in zip(one, two, strict=True)) if bills else bool(value == other)


def agreed(one: Reckoning, other: Reckoning) -> Reckoning:
    """A reference of two undisturbed runs: measured is only what both have in common, by whole kinds of documents:
    seats work at the same time, so replies come in any order, and in two runs it may be the same by chance.

    Raises AssertionError when they differ in what must be exact: then nothing can be compared.
    """
    assert (found := differences(Reckoning(one.exact, {}, ()), other)) == [], found
    assert one.wrong == (), one.wrong
    differing = {
        _group(what) for what, value in one.measured.items() if not _same(value, other.measured.get(what, value))
    }
    same = {what: value for what, value in one.measured.items() if _group(what) not in differing}
    return Reckoning(one.exact, same, ())


def _group(what: tuple[Any, ...]) -> tuple[Any, ...]:
    return what[:2]  # the kind of a document, the token of a session


def damage(reference: Reckoning, seen: Reckoning, hit: Collection[str]) -> list[str]:
    """What is wrong when sessions were hit: their turns are made good by others, which no reference has. Asked is then
    that the run ends as it should, that no session began twice, and that no more tries failed than were hit."""
    out = [wrong for wrong in seen.wrong if not any(wrong == f"orphaned: {token} has no end" for token in hit)]
    for name in ("ticket", "run", "merge", "merged tree", "lease", "wait", "ref"):
        out += [f"lost: {name} {row}" for row in reference.exact[name] - seen.exact[name]]
    out += [f"repeated: merge {row}" for row in seen.exact["merge"] - reference.exact["merge"]]
    done = Counter(bead for bead, _, state, _ in seen.exact["attempt"] if state == "done")
    out += [f"repeated: {bead} was done {n} times" for bead, n in done.items() if n > 1]
    failed = [sum(row[2] == "failed" for row in end.exact["attempt"]) for end in (reference, seen)]
    out += (
        [f"repeated: {failed[1]} tries failed, {failed[0]} do undisturbed"] if failed[1] > failed[0] + len(hit) else []
    )
    twice = [row for row, n in seen.exact["said by a session"].items() if row[1] in ("started", "ended") and n > 1]
    out += [f"repeated: {token} {kind}" for token, kind in twice]
    return out
