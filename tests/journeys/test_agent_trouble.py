"""An agent that is missing, signed out, wrong, failing or limited: its own state, what was kept, and the way on."""

from __future__ import annotations

from typing import Any

from tests.journeys.small_world import Small

UNTIL_PLAN = (
    *("--set", "council.interview_questions=0"),
    *("--set", "gates.interview=off", "--set", "gates.prd=off", "--set", "gates.setup=off"),
)
CODEX = ("--set", 'council.seats=["codex/x"]')


def first(template: str, *steps: dict[str, Any]) -> dict[str, Any]:
    return {"match": {"template": template}, "steps": list(steps)}


def shown(small: Small, key: str) -> str:
    return small.cli("gate", "show", key).out


def test_an_unusable_reply_is_asked_again_then_blocks_with_its_raw_text_in_reach(small: Small) -> None:
    small.script(first("scan|repair", {"reply": "I am not in the mood, 不要."}))
    key = small.ticket(*UNTIL_PLAN)
    gate = small.asked(key)
    assert (gate["kind"], gate["detail"]["code"]) == ("blocked", "AGENT_OUTPUT_INVALID")
    assert len(gate["detail"]["details"]["attempts"]) == 2
    row = gate["detail"]["kept"].rpartition(" ")[2]
    assert f"kept: every raw reply: beadmill artifact show {row}\n" in shown(small, key)
    assert small.cli("artifact", "show", row).out.count("I am not in the mood, 不要.") == 2
    small.script()
    assert small.cli("run", "retry", key).code == 0
    assert small.asked(key)["node"] == "beads"


def test_a_provider_that_fails_blocks_with_its_own_words_and_goes_on_after_a_retry(small: Small) -> None:
    small.script(first("prd_draft", {"fail": {"why": "quota", "message": "Your credit is used up"}}))
    key = small.ticket(*UNTIL_PLAN)
    gate = small.asked(key)
    assert (gate["title"], gate["detail"]["code"]) == ("Your credit is used up", "AGENT_QUOTA")
    assert "next: retry when the provider lets you again" in shown(small, key)
    assert small.cli("ticket", "show", key, "--json").json["status"] == "blocked_error"
    small.script()
    assert small.cli("gate", "answer", key, "retry", "--note", "topped up").code == 0
    assert small.asked(key)["node"] == "beads"


def test_an_overloaded_provider_offers_to_continue_the_conversation(small: Small) -> None:
    small.script(first("scan", {"fail": {"why": "overloaded", "message": "Try later"}}))
    key = small.ticket(*UNTIL_PLAN)
    assert small.asked(key)["choices"] == ["retry", "continue"]
    small.script()
    assert small.cli("run", "retry", key, "--continue").code == 0
    assert small.asked(key)["node"] == "beads"


def test_a_limit_parks_until_its_end_says_so_and_goes_on_by_itself(small: Small) -> None:
    small.script(first("scan", {"limit": {"seconds": 15, "message": "5 h limit"}}))
    key = small.ticket(*UNTIL_PLAN)
    with small.cli.begin("ticket", "watch", key, "--until-gate") as watching:
        assert watching.stdout is not None
        heard = [watching.stdout.readline()]
        while "end=Limited" not in heard[-1]:
            heard.append(watching.stdout.readline())
        small.script()
        visit = small.cli("run", "show", key, "--json").json["visits"][0]
        status = small.cli("ticket", "show", key).out
        rest = watching.stdout.read()
        assert watching.wait(60) == 5
    assert ("scan.1" in heard[-1], visit["state"], visit["wake_at"] is not None) == (True, "parked", True)
    assert "waits until" in status
    assert any(line.startswith("scan waits until 20") for line in [*heard, *rest.splitlines()])
    assert "Approve the plan of work" in rest


def test_a_person_need_not_wait_for_the_end_of_a_limit(small: Small) -> None:
    small.script(first("scan", {"limit": {"seconds": 36_000, "message": "10 h limit"}}))
    key = small.ticket(*UNTIL_PLAN)
    with small.cli.begin("ticket", "watch", key, "--until-gate") as watching:
        assert watching.stdout is not None
        next(line for line in watching.stdout if "waits until" in line)
        small.script()
        assert small.cli("run", "retry", key).code == 0
        assert watching.wait(60) == 5
    assert small.asked(key)["node"] == "beads"


def test_a_setting_that_could_run_a_program_stops_until_it_is_vouched_for(small: Small) -> None:
    small.git("config", "core.sshCommand", "/nowhere/evil")
    told = small.cli("project", "show", "GRUE").out
    key = small.ticket(*UNTIL_PLAN)
    gate = small.asked(key)
    vouched = small.cli("project", "set", "GRUE", "--trust")
    retried = small.cli("run", "retry", key)
    assert ("core.sshcommand" in told, gate["detail"]["code"]) == (True, "REPOSITORY_SETTINGS_CHANGED")
    assert (vouched.code, retried.code, "core.sshcommand" in vouched.out) == (0, 0, False)
    assert small.asked(key)["node"] == "beads"


def test_an_agent_that_is_not_installed_blocks_and_says_how_to_install_it(small: Small) -> None:
    listed = {agent["name"]: agent["state"] for agent in small.cli("agent", "list", "--json").json}
    probed = small.cli("agent", "probe", "codex")
    assert (listed["codex"], listed["scripted"], probed.code) == ("missing", "ready", 1)
    key = small.ticket(*UNTIL_PLAN, *CODEX)
    gate = small.asked(key)
    assert (gate["detail"]["code"], gate["node"]) == ("AGENT_MISSING", "scan")
    assert "next: beadmill agent list says how to install it, then retry" in shown(small, key)


def test_an_agent_that_is_signed_out_is_told_apart_from_one_that_fails(small: Small) -> None:
    small.script(first("scan", {"fail": {"why": "auth", "message": "Not signed in"}}))
    key = small.ticket(*UNTIL_PLAN)
    assert small.asked(key)["detail"]["code"] == "AGENT_SIGNED_OUT"
    assert "next: sign in to the agent, then retry" in shown(small, key)


def test_a_preflight_that_fails_blocks_is_mended_and_goes_on(small: Small) -> None:
    key = small.ticket(*UNTIL_PLAN)
    assert small.asked(key)["node"] == "beads"
    small.git("config", "--unset", "user.email")
    small.approve(key, "plan of work")
    gate = small.asked(key)
    told = shown(small, key)
    small.git("config", "user.email", "zoe@example.org")
    assert (gate["node"], gate["detail"]["code"]) == ("preflight", "PREFLIGHT_FAILED")
    assert ("git config" in told, "kept: the approved plan" in told) == (True, True)
    assert small.cli("run", "retry", key).code == 0
    assert small.asked(key)["kind"] == "merge"
