from __future__ import annotations

from typing import Any


def told(line: Any) -> str:
    """One receipt of the trail in one line; its reason is told below."""
    details = line["details"]
    match line["kind"]:
        case "edit":
            what = "after the agents" if details["after_ai"] else "their own text"
            return (
                f"edited the {line['title'].replace('_', ' ')}, version {details['version']}, {what}: "
                f"{details['before'][:12]} → {details['after'][:12]}"
            )
        case "skip":
            return _skip(line, details)
        case "send_back":
            return f"sent the run back to {details['to']}"
        case "rerun":
            return f"started it anew after {details['parent']}"
        case "automatic":
            return f"policy: {line['choice']}: {line['title']}"
        case "expiry":
            return f"timeout: {line['choice']}: {line['title']}"
        case "decision":
            return f"{line['choice']}: {line['title']}{_saw(line)}"
        case kind:
            return f"{kind} {line['choice']}".rstrip()


def _saw(line: Any) -> str:
    shown = ", ".join(f"{one['kind']} v{one['version']} {one['sha256'][:12]}" for one in line["saw"])
    return f" ({shown})" if shown else ""


def _skip(line: Any, details: Any) -> str:
    if details.get("summary"):
        return "skipped the rest of the interview"
    later = line["superseded_at"]
    after = f" (superseded by {line['superseded_by']} at {later[:19].replace('T', ' ')})" if later else ""
    return f"skipped {details['question']}: {details['prompt']}{after}"
