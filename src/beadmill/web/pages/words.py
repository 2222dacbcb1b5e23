"""What the stored words are called on the screen. ``_`` is the one place a translation will hook in."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def _(text: str) -> str:
    """The text in the language of the reader. English so far."""
    return text


FORGES: Mapping[str, str] = {
    "local": "a bare repository on this machine",
    "github": "GitHub",
    "gitlab": "GitLab",
    "gitea": "Gitea or Forgejo",
    "gogs": "Gogs",
    "direct": "none: straight into the base",
}
STATUS: Mapping[str, str] = {
    "draft": "Draft",
    "scanning_relevant_files": "Looking for the files that matter",
    "council_deliberating": "The council writes interview questions",
    "council_voting_interview": "The council votes on the questions",
    "compiling_interview": "The winner refines the questions",
    "waiting_interview_answers": "Questions for you",
    "verifying_interview_coverage": "Checking the answers for gaps",
    "waiting_interview_approval": "Approve the interview",
    "drafting_prd": "The council drafts the requirements",
    "council_voting_prd": "The council votes on the requirements",
    "refining_prd": "The winner refines the requirements",
    "verifying_prd_coverage": "Checking the requirements for gaps",
    "waiting_prd_approval": "Approve the requirements",
    "drafting_beads": "The council plans the beads",
    "council_voting_beads": "The council votes on the plan",
    "refining_beads": "The winner refines the plan",
    "verifying_beads_coverage": "Checking the plan for gaps",
    "expanding_beads": "Writing out every bead",
    "waiting_beads_approval": "Approve the plan of work",
    "pre_flight_check": "Checking that everything is ready",
    "generating_execution_setup_plan": "Planning the workspace",
    "waiting_execution_setup_approval": "Approve the workspace setup",
    "preparing_execution_env": "Preparing the workspace",
    "coding": "Building",
    "running_final_test": "Verifying the whole change",
    "generating_qa_checklist": "Writing the checklist",
    "waiting_manual_qa": "Check it by hand",
    "integrating_changes": "Integrating",
    "creating_pull_request": "Writing the pull request",
    "waiting_pr_review": "Merge or send back",
    "cleaning_env": "Cleaning up",
    "completed": "Done",
    "canceled": "Canceled",
    "blocked_error": "Blocked",
}
COLUMN: Mapping[str, str] = {
    "needs_input": "Needs input",
    "todo": "To do",
    "in_progress": "In progress",
    "done": "Done",
}
STATE: Mapping[str, str] = {
    "waiting": "not yet",
    "ready": "about to go on",
    "running": "working",
    "parked": "waiting",
    "done": "done",
    "kept": "kept",
    "superseded": "replaced",
    "canceled": "canceled",
    "active": "running",
    "completed": "completed",
    "closed": "closed without a merge",
    "draft": "draft",
    "open": "open",
    "failed": "failed",
    "replaced": "replaced",
    "pending": "to do",
    "in_progress": "being built",
    "error": "last try failed",
    "merged": "merged",
    "answered": "answered",
    "withdrawn": "withdrawn",
}
SETTINGS: Mapping[str, str] = {
    "": "Agents, sandbox and places",
    "council": "Council and interview",
    "gates": "Who approves",
    "build": "Building and proof",
    "budget": "Budget",
    "questions": "Questions of agents",
    "limits": "Limits of providers",
}
SETTING: Mapping[str, str] = {
    "implementer": "Implementer",
    "council.seats": "Council seats",
    "council.mode": "Planning",
    "council.deadline_s": "Seconds per seat and round",
    "council.structured_retries": "Times an unreadable reply is asked for again",
    "council.interview_questions": "Most interview questions",
    "council.follow_up_percent": "Follow-up questions, in percent",
    "council.interview_passes": "Checks of the interview",
    "council.prd_passes": "Checks of the requirements",
    "council.beads_passes": "Checks of the plan",
    "gates.interview": "Approve the interview",
    "gates.prd": "Approve the requirements",
    "gates.beads": "Approve the plan",
    "gates.setup": "Approve the workspace setup",
    "build.attempts": "Tries per bead",
    "build.parallel": "Beads at the same time",
    "build.iteration_s": "Seconds per try",
    "build.idle_s": "Seconds without a sign of life",
    "build.command_s": "Seconds per command",
    "build.setup_s": "Seconds per setup attempt",
    "build.continuations": "Times an unfinished try goes on",
    "build.max_steps": "Tool calls per turn",
    "build.earlier": "Earlier beads' commands must pass too",
    "build.red_on_base": "New tests must fail without the change",
    "build.tamper": "Weakened tests",
    "build.bead_review": "Review of each bead",
    "build.review": "Independent review",
    "budget.usd": "Budget in US dollars",
    "budget.tokens": "Budget in tokens",
    "budget.minutes": "Budget in agent minutes",
    "limits.fallback": "Who takes over at a limit",
    "limits.wait_minutes": "Minutes to wait before that",
    "questions.enabled": "Agents may ask",
    "questions.window_s": "Seconds to answer",
    "allow_hosts": "Hosts in reach",
    "readable": "Folders shown read-only",
    "manual_qa": "Manual QA",
    "agent_slots": "Agent sessions at the same time",
    "parallel_tickets": "Tickets that build at the same time",
    "context_tokens": "Tokens per brief",
}
QA_OUTCOME: Mapping[str, str] = {
    "pass": "As expected",
    "fail": "Failed",
    "waive": "Let it through",
    "improvement": "Could be better",
    "pending": "Not checked yet",
}
COVERED: Mapping[str, str] = {
    "covered": "covered",
    "partially_covered": "partially",
    "uncovered": "by no item",
    "not_applicable": "not by hand",
}
LEFTOVER: Mapping[str, str] = {
    "worktree": "Worktree",
    "lane": "Worktree of a lane",
    "workspace": "Homes and caches of sessions",
    "set_aside": "Set aside, as no ref could keep it",
    "temporary": "Half-written",
    "sessions": "Logs",
    "undo": "Undo states",
    "backup": "Copy of the database",
}
GATE: Mapping[str, str] = {
    "approve": "Approval",
    "interview": "Questions",
    "question": "An agent asks",
    "qa": "Checklist",
    "merge": "Merge",
    "blocked": "Blocked",
    "budget": "Budget",
}
CHOICE: Mapping[str, str] = {
    "approve": "Approve",
    "approved": "Approve",
    "rejected": "Reject",
    "approve_with_gaps": "Approve with its gaps",
    "fix_gaps": "Fix the gaps first",
    "send_back": "Send it back",
    "regenerate": "Plan it again",
    "answer": "Send the answer",
    "decide_yourself": "Let the agent decide",
    "skip_all": "Skip the rest",
    "edit": "Change an earlier answer",
    "canceled": "Canceled",
    "withdrawn": "Withdrawn",
    "merge": "Merge",
    "close": "Close without a merge",
    "request_changes": "Ask for changes",
    "rework": "Have it reworked",
    "look": "Look at the forge again",
    "retry": "Retry",
    "continue": "Continue the conversation",
    "keep": "Keep this work and go on",
    "raise": "Raise the budget and go on",
    "submit": "Submit the results",
    "skip": "Skip manual QA",
    "include": "Take the changes along",
    "discard": "Discard the changes",
}
KIND: Mapping[str, str] = {
    "prd": "Requirements",
    "prd_findings": "What is open in the requirements",
    "beads": "Plan of work",
    "blueprint": "Plan before it was written out",
    "interview": "Interview",
    "interview_session": "Interview so far",
    "questions": "Questions",
    "full_answers": "Interview with the council's own answers",
    "relevant_files": "Files that matter",
    "workspace": "Where the run works",
    "execution_setup_plan": "Setup plan",
    "execution_setup_profile": "Prepared workspace",
    "preflight_report": "Readiness report",
    "bead_evidence": "Proof of a bead",
    "final_test_report": "Verification report",
    "integration_report": "Integration report",
    "pull_request_report": "Pull request",
    "merge_report": "Merge report",
    "cleanup_report": "Clean-up report",
    "council_drafts": "Drafts of the council",
    "council_votes": "Votes of the council",
    "council_refined": "Refinement of the winner",
    "coverage": "Coverage checks",
    "qa_checklist": "Checklist",
    "qa_baseline": "Worktree before the check",
    "qa_results": "Results of the check",
    "qa_fix_beads": "Beads for what failed",
    "qa_round": "Round of manual QA",
    "reply": "Raw reply of an agent",
}
SEAT: Mapping[str, str] = {
    "pending": "not yet",
    "working": "working",
    "asks": "waits for your answer",
    "completed": "done",
    "timed_out": "ran out of time",
    "invalid_output": "gave nothing that can be read",
    "full_answers_invalid": "could not answer the skipped questions, so it did not draft",
    "failed": "failed",
}
DOMAIN: Mapping[str, str] = {"interview": "Interview", "prd": "Requirements", "beads": "Plan of work"}
COUNCIL_PHASE: Mapping[str, str] = {
    "live": "The winner interviews",
    "refine": "The winner refines",
    "cover": "The winner checks for gaps",
    "expand": "The winner writes out every bead",
    "fix": "The winner fixes gaps that you saw",
}
TIE: Mapping[str, str] = {
    "implementer": "Several drafts had the highest mean: the draft of the first seat goes before the others.",
    "earliest seat": "Several drafts had the highest mean: the earliest seat of them goes before the others.",
}
ATTRIBUTION: Mapping[str, str] = {
    "model_unattributed": "an idea of the winner",
    "synthesized_unattributed": "found by comparing; the winner had not listed it",
    "invalid_unattributed": "the winner named a draft that it was not shown",
}
ENDED: Mapping[str, str] = {
    "clean": "It ended because nothing is missing.",
    "gaps": "Gaps are left, and only a person can settle them.",
    "coverage_pass_limit_reached": "It ended because the last check allowed was done; its gaps go to you.",
    "follow_up_budget_exhausted": "It ended because no more questions may be asked; its gaps go to you.",
    "follow_up_generation_failed": "It ended because the check named gaps and no question that could be asked.",
    "skipped": "There was no check, because the rest of the interview was skipped.",
}
END: Mapping[str, str] = {
    "Replied": "replied",
    "Asked": "asked a question",
    "Limited": "stopped at a provider limit",
    "Lapsed": "ran out of time",
    "Stopped": "was stopped",
    "Failed": "failed",
    "Ran": "finished",
    "Lost": "was lost",
}


def say(table: Mapping[str, str], word: Any) -> str:
    """The stored word itself where we have none for it: an unknown state is shown, never guessed."""
    return _(table.get(str(word), str(word).replace("_", " ")))


def event(kind: str, data: Mapping[str, Any]) -> str:
    """One line of what happened."""
    node = str(data.get("node", ""))
    match kind:
        case "ticket.created":
            return _("The ticket was written")
        case "ticket.status":
            return say(STATUS, data.get("to"))
        case "run.started":
            return _("The run started")
        case "visit.created":
            return f"{node}: {_('begins')}"
        case "visit.done":
            return f"{node}: {say(STATE, 'done')} ({data.get('outcome')})"
        case "visit.phase":
            return say(STATUS, data.get("phase"))
        case "bead.started":
            return f"{data.get('bead')}: {_('try')} {data.get('attempt')}"
        case "bead.done" | "bead.failed":
            ending = _("is proven and committed") if kind == "bead.done" else _("did not hold; it is done again")
            return f"{data.get('bead')} {ending}"
        case "council.drafted" | "council.ballot":
            act = _("has drafted") if kind == "council.drafted" else _("has voted")
            return f"{_('Seat')} {int(data.get('seat') or 0) + 1} {act} ({str(data.get('outcome')).replace('_', ' ')})"
        case "council.voted":
            return f"{_('The council chose the draft of seat')} {int(data.get('winner') or 0) + 1}"
        case "change.put":
            return f"{_('Change')} #{data.get('number')}: {say(STATE, data.get('state'))}"
        case "gate.held":
            return _("The clock of an agent's question was stopped")
        case "gate.rebound":
            return _("A document was edited at its gate")
        case "run.amended":
            return f"{node}: {_('edited after its approval; what follows begins anew')}"
        case "run.sent_back":
            return f"{_('Sent back to')} {node}"
        case "gate.opened":
            return f"{_('Asks you')}: {data.get('title')}"
        case "gate.answered":
            return f"{_('Answered')}: {say(CHOICE, data.get('choice'))}"
        case _:
            return _of_work(kind, data)


def _of_work(kind: str, data: Mapping[str, Any]) -> str:
    """What agents, plans and checks by hand tell."""
    match kind:
        case "session.started":
            return f"{data.get('template') or data.get('kind')} {data.get('subject') or ''} → {data.get('seat') or 'Beadmill'}"
        case "session.ended":
            who = data.get("seat") or "Beadmill"
            return f"{who} {say(END, data.get('end'))} {_('after')} {float(data.get('seconds') or 0):.1f} s"
        case "seat.fell_back":
            return f"{data.get('to')} {_('takes over from')} {data.get('from')}, {_('whose limit ends at')} {data.get('until')}"
        case "plan.changed":
            return f"{_('The plan was changed')}: {'; '.join(data.get('changes') or ())}"
        case "undo.restored":
            place = f"{_('as the branch')} {data['branch']}" if data.get("branch") else _("into the worktree")
            return f"{_('Kept state')} {data.get('n')}: {_('brought back')} {place}"
        case "clean.removed":
            return f"{_('Removed to free space')}: {data.get('path')} ({data.get('said')})"
        case "session.stuck":
            alive = ", ".join(f"{p.get('pid')} ({p.get('command')})" for p in data.get("processes") or ())
            return f"{_('Could not be stopped and still runs')}: {alive}"
        case "qa.checklist_ready":
            return f"{_('The checklist is ready')}: {data.get('items')} {_('items')}"
        case "qa.completed":
            return f"{_('Manual QA')} v{data.get('version')}: {data.get('outcome')}"
        case "qa.evidence_uploaded" | "qa.evidence_removed":
            act = _("added") if kind == "qa.evidence_uploaded" else _("removed")
            return f"{data.get('item')}: {data.get('name')} {act}"
        case "qa.improvement_created":
            return f"{_('A ticket for later')}: {data.get('ticket')}"
        case _:
            return kind.replace(".", " ").replace("_", " ")


def setting(path: str) -> str:
    """The label of a setting's field; one without a label is called by its name."""
    return _(SETTING.get(path) or path.rpartition(".")[2].replace("_", " ").capitalize())
