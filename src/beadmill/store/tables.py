"""Every table (design: architecture.md §3). Times are UTC ISO-8601 text: the same bytes on SQLite and PostgreSQL."""

from __future__ import annotations

from sqlalchemy import Column, Float, ForeignKey, Index, Integer, LargeBinary, String, Text, UniqueConstraint
from sqlalchemy.types import JSON

from beadmill.store.tables_base import ID, metadata, pk, table
from beadmill.store.tables_qa import qa_evidence, qa_improvements

__all__ = ["ID", "metadata", "pk", "qa_evidence", "qa_improvements", "table"]


# --- people and projects ------------------------------------------------------------------------------------------
settings = table("settings", Column("key", String, primary_key=True), Column("value", JSON, nullable=False))

users = table(
    "users",
    pk(),
    Column("name", String, nullable=False, unique=True),
    Column("password", String),
    Column("admin", Integer, nullable=False, default=0),
    Column("created", String, nullable=False),
)
logins = table(
    "logins",
    Column("token_hash", String, primary_key=True),
    Column("user_id", ID, ForeignKey("users.id", ondelete="CASCADE"), nullable=False),
    Column("once", Integer, nullable=False, default=0),  # a one-time link, spent on first use
    Column("created", String, nullable=False),
    Column("expires", String, nullable=False),
)
api_tokens = table(
    "api_tokens",
    pk(),
    Column("user_id", ID, ForeignKey("users.id", ondelete="CASCADE"), nullable=False),
    Column("name", String, nullable=False),
    Column("token_hash", String, nullable=False, unique=True),
    Column("scopes", JSON, nullable=False),
    Column("created", String, nullable=False),
    Column("revoked", String),
)
projects = table(
    "projects",
    pk(),
    Column("short", String, nullable=False, unique=True),  # prefix of ticket keys
    Column("name", String, nullable=False),
    Column("overrides", JSON, nullable=False, default=dict),  # layer over Settings.defaults
    Column("counter", Integer, nullable=False, default=0),
    Column("created", String, nullable=False),
)
repositories = table(
    "repositories",
    pk(),
    Column("project_id", ID, ForeignKey("projects.id", ondelete="CASCADE"), nullable=False),
    Column("path", String, nullable=False, unique=True),  # the user's checkout
    Column("base", String, nullable=False, default=""),
    Column("remote", String, nullable=False, default="origin"),
    Column("forge", String, nullable=False, default="local"),
    Column("created", String, nullable=False),
)
members = table(
    "members",
    Column("project_id", ID, ForeignKey("projects.id", ondelete="CASCADE"), primary_key=True),
    Column("user_id", ID, ForeignKey("users.id", ondelete="CASCADE"), primary_key=True),
    Column("role", String, nullable=False),
)
tickets = table(
    "tickets",
    pk(),
    Column("project_id", ID, ForeignKey("projects.id"), nullable=False),
    Column("key", String, nullable=False, unique=True),
    Column("title", String, nullable=False),
    Column("description", Text, nullable=False, default=""),
    Column("acceptance", Text, nullable=False, default=""),
    Column("priority", Integer, nullable=False, default=3),
    Column("sop", String, nullable=False, default="deliver"),
    Column("overrides", JSON, nullable=False, default=dict),
    Column("state", String, nullable=False),  # domain.machine.TicketState
    Column("status", String, nullable=False),  # projection: one of the 34 words
    Column("run_id", String),  # the current run
    Column("created", String, nullable=False),
    Column("updated", String, nullable=False),
)
Index("tickets_project_state", tickets.c.project_id, tickets.c.state)

# --- SOPs and other definitions -----------------------------------------------------------------------------------
definitions = table(
    "definitions",
    pk(),
    Column("kind", String, nullable=False),  # sop, role, template, skill, mcp
    Column("name", String, nullable=False),
    Column("project_id", ID, ForeignKey("projects.id", ondelete="CASCADE")),
    UniqueConstraint("kind", "name", "project_id"),
)
definition_versions = table(
    "definition_versions",
    pk(),
    Column("definition_id", ID, ForeignKey("definitions.id", ondelete="CASCADE"), nullable=False),
    Column("version", Integer, nullable=False),
    Column("state", String, nullable=False),  # draft, published, archived
    Column("body", Text, nullable=False),
    Column("sha256", String, nullable=False),
    Column("created", String, nullable=False),
    UniqueConstraint("definition_id", "version"),
)

# --- runs ---------------------------------------------------------------------------------------------------------
runs = table(
    "runs",
    Column("id", String, primary_key=True),
    Column("ticket_id", ID, ForeignKey("tickets.id")),
    Column("project_id", ID, ForeignKey("projects.id")),
    Column("sop", String, nullable=False),
    Column("sop_body", Text, nullable=False),  # the YAML this run pins
    Column("state", String, nullable=False),
    Column("hold", String, nullable=False, default="none"),
    Column("host", String, nullable=False, default=""),
    Column("settings", JSON, nullable=False),  # RunSettings, frozen
    Column("work", JSON, nullable=False),  # engine.port.Work, frozen
    Column("parent", String),  # the run a rerun came from
    Column("tokens", Integer, nullable=False, default=0),
    Column("cost_usd", Float),  # of the priced turns; null = none was
    Column("unpriced", Integer, nullable=False, default=0, server_default="0"),  # turns that cost_usd does not hold
    Column("agent_seconds", Float, nullable=False, default=0),
    Column("created", String, nullable=False),
    Column("ended", String),
)
Index("runs_state", runs.c.state)
Index("runs_ticket", runs.c.ticket_id)

visits = table(
    "visits",
    Column("id", String, primary_key=True),  # <run>/<node>.<n>
    Column("run_id", String, ForeignKey("runs.id"), nullable=False),
    Column("node", String, nullable=False),
    Column("n", Integer, nullable=False),
    Column("state", String, nullable=False),
    Column("activation", Integer, nullable=False, default=1),
    Column("owner", String),
    Column("worker", String),
    Column("wake_at", String),
    Column("phase", String),
    Column("outcome", String),
    Column("note", Text, nullable=False, default=""),
    Column("made", JSON, nullable=False, default=list),  # artifact row ids the outcome stands for
    Column("came_from", JSON, nullable=False, default=list),  # visit ids whose tokens this one consumed
    Column("comment", Text, nullable=False, default=""),  # why it was sent back
    Column("settings", JSON),  # what is not frozen, as it was when the visit began; null: all is as the run froze it
    Column("created", String, nullable=False),
    Column("started", String),
    Column("ended", String),
    UniqueConstraint("run_id", "node", "n"),
)
Index("visits_state", visits.c.state)
scopes = table(
    "scopes",
    Column("visit_id", String, ForeignKey("visits.id"), primary_key=True),
    Column("scope", String, primary_key=True),
    Column("round", Integer, nullable=False),
)
steps = table(
    "steps",
    Column("visit_id", String, ForeignKey("visits.id"), primary_key=True),
    Column("name", String, primary_key=True),  # scope/name
    Column("round", Integer, primary_key=True),
    Column("kind", String, nullable=False),  # step, agent, command, ask, sleep, get, put, emit
    Column("result", JSON(none_as_null=False)),
    Column("blob", String),  # sha256, when the result is over 64 kB
    Column("seq", ID, nullable=False),  # order of recording
    Column("created", String, nullable=False),
)
waits = table(
    "waits",
    Column("visit_id", String, ForeignKey("visits.id"), primary_key=True),
    Column("kind", String, primary_key=True),  # gate, time, lease, session
    Column("key", String, primary_key=True),
    Column("at", String),
)
Index("waits_key", waits.c.kind, waits.c.key)
gates = table(
    "gates",
    Column("id", String, primary_key=True),  # visit/scope/name#round
    Column("run_id", String, ForeignKey("runs.id"), nullable=False),
    Column("visit_id", String, ForeignKey("visits.id"), nullable=False),
    Column("kind", String, nullable=False),
    Column("title", String, nullable=False),
    Column("choices", JSON, nullable=False),
    Column("shows", JSON, nullable=False),  # [[kind, row, sha256], …]
    Column("form", JSON),
    Column("detail", JSON),
    Column("may", String, nullable=False),
    Column("lapse", String),
    Column("lapse_at", String),
    Column("state", String, nullable=False),  # open, answered, withdrawn
    Column("etag", String, nullable=False),
    Column("created", String, nullable=False),
)
Index("gates_state", gates.c.state)
Index("gates_visit", gates.c.visit_id)
decisions = table(
    "decisions",
    Column("gate_id", String, ForeignKey("gates.id"), primary_key=True),
    Column("choice", String, nullable=False),
    Column("saw", JSON, nullable=False),
    Column("payload", JSON),
    Column("note", Text, nullable=False, default=""),
    Column("actor", String, nullable=False),
    Column("door", String, nullable=False, default=""),
    Column("key", String, nullable=False),
    Column("at", String, nullable=False),
)

# --- processes ----------------------------------------------------------------------------------------------------
sessions = table(
    "sessions",
    Column("token", String, primary_key=True),
    Column("run_id", String, ForeignKey("runs.id"), nullable=False),
    Column("visit_id", String, ForeignKey("visits.id"), nullable=False),
    Column("kind", String, nullable=False),  # agent, batch
    Column("host", String, nullable=False),
    Column("seat", String, nullable=False, default=""),
    Column("template", String, nullable=False, default=""),
    Column("subject", String, nullable=False, default=""),
    Column("ledger", JSON, nullable=False, default=list),
    Column("prompt_sha", String),  # blob with the whole brief
    Column("lease", Integer, nullable=False, default=0),
    Column("started", String, nullable=False),
    Column("ended", String),
    Column("end", JSON),  # the encoded end, booked once
    Column("input", Integer, nullable=False, default=0),
    Column("cached", Integer, nullable=False, default=0),
    Column("output", Integer, nullable=False, default=0),
    Column("reasoning", Integer, nullable=False, default=0),
    Column("cost_usd", Float),
    Column("cost_source", String, nullable=False, default="", server_default=""),  # domain.price.Source
    Column("agent", String, nullable=False, default="", server_default=""),
    Column("model", String, nullable=False, default="", server_default=""),  # the seat's, then the one that was used
    Column("seconds", Float, nullable=False, default=0),
)
Index("sessions_visit", sessions.c.visit_id)
Index("sessions_open", sessions.c.ended)
workers = table(
    "workers",
    Column("id", String, primary_key=True),
    Column("host", String, nullable=False),
    Column("pid", Integer, nullable=False),
    Column("beat", String, nullable=False),
)
leases = table(
    "leases",
    Column("kind", String, primary_key=True),  # agent_slots, parallel_tickets, lane, port
    Column("resource", String, primary_key=True),  # e.g. project short name
    Column("holder", String, primary_key=True),  # session token, run id …
    Column("host", String, nullable=False, default=""),
    Column("taken", String, nullable=False),
)
workspaces = table(
    "workspaces",
    Column("run_id", String, ForeignKey("runs.id"), primary_key=True),
    Column("name", String, primary_key=True),
    Column("path", String, nullable=False),
    Column("branch", String, nullable=False),
    Column("base", String, nullable=False),
    Column("base_commit", String, nullable=False),
    Column("host", String, nullable=False, default=""),
    Column("state", String, nullable=False),
)

# --- what was made ------------------------------------------------------------------------------------------------
blobs = table(
    "blobs",
    Column("sha256", String, primary_key=True),
    Column("size", Integer, nullable=False),
    Column("data", LargeBinary, nullable=False),
)
artifacts = table(
    "artifacts",
    pk(),
    Column("kind", String, nullable=False),
    Column("run_id", String, ForeignKey("runs.id"), nullable=False),
    Column("visit_id", String, ForeignKey("visits.id"), nullable=False),
    Column("version", Integer, nullable=False),
    Column("sha256", String, ForeignKey("blobs.sha256"), nullable=False),
    Column("author", String, nullable=False),
    Column("parent", ID),
    Column("created", String, nullable=False),
    UniqueConstraint("run_id", "kind", "version"),
)
Index("artifacts_visit", artifacts.c.visit_id)
bead_attempts = table(
    "bead_attempts",
    Column("run_id", String, ForeignKey("runs.id"), primary_key=True),
    Column("bead", String, primary_key=True),
    Column("n", Integer, primary_key=True),
    Column("bead_sha", String, nullable=False),
    Column("visit_id", String, ForeignKey("visits.id"), nullable=False),
    Column("key", String, nullable=False, unique=True),  # the durable key of the step that began it
    Column("tree", String, nullable=False, default=""),
    Column("start_commit", String, nullable=False, default=""),
    Column("end_commit", String, nullable=False, default=""),
    Column("state", String, nullable=False),
    Column("note", Text, nullable=False, default=""),
    Column("sessions", JSON, nullable=False, default=list),
    Column("proof", JSON, nullable=False, default=dict),
    Column("started", String, nullable=False),
    Column("ended", String),
)
checks = table(
    "checks",
    pk(),
    Column("run_id", String, ForeignKey("runs.id"), nullable=False),
    Column("visit_id", String, nullable=False),
    Column("bead", String, nullable=False, default=""),
    Column("purpose", String, nullable=False),
    Column("command", Text, nullable=False),
    Column("commit_sha", String, nullable=False, default=""),
    Column("exit", Integer),
    Column("seconds", Float, nullable=False),
    Column("output", Text, nullable=False, default=""),
    Column("at", String, nullable=False),
    Column("key", String, nullable=False, unique=True),
)
Index("checks_run", checks.c.run_id)
changes = table(
    "changes",
    Column("run_id", String, ForeignKey("runs.id"), primary_key=True),
    Column("forge", String, nullable=False),
    Column("number", Integer, nullable=False),
    Column("url", String, nullable=False, default=""),
    Column("branch", String, nullable=False),
    Column("base", String, nullable=False),
    Column("head", String, nullable=False),
    Column("state", String, nullable=False),
    Column("decision", String),  # merge or close: fenced, written before the act
    Column("merge_sha", String),
)
drafts = table(
    "drafts",
    Column("target", String, primary_key=True),  # gate id or artifact row
    Column("user", String, primary_key=True),
    Column("revision", Integer, nullable=False),
    Column("body", JSON, nullable=False),
    Column("updated", String, nullable=False),
)
schedules = table(
    "schedules",
    pk(),
    Column("name", String, nullable=False, unique=True),
    Column("cron", String, nullable=False),
    Column("zone", String, nullable=False, default="UTC"),
    Column("sop", String, nullable=False),
    Column("project_id", ID, ForeignKey("projects.id", ondelete="CASCADE")),
    Column("enabled", Integer, nullable=False, default=1),
    Column("next_at", String),
    Column("last_run", String),
)

# --- what happened ------------------------------------------------------------------------------------------------
counters = table("counters", Column("name", String, primary_key=True), Column("value", ID, nullable=False))
events = table(
    "events",
    Column("seq", ID, primary_key=True, autoincrement=False),
    Column("kind", String, nullable=False),
    Column("run_id", String),
    Column("visit_id", String),
    Column("ticket", String),
    Column("actor", String, nullable=False),
    Column("data", JSON, nullable=False),
    Column("at", String, nullable=False),
)
Index("events_run", events.c.run_id, events.c.seq)
Index("events_ticket", events.c.ticket, events.c.seq)
receipts = table(
    "receipts",
    Column("key", String, primary_key=True),  # Idempotency-Key of a door
    Column("operation", String, nullable=False),
    Column("result", JSON),
    Column("at", String, nullable=False),
)
