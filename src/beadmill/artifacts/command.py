"""CommandSpec at the border: JSON in the reference's spelling (§4.2) to the frozen value and back."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import BeforeValidator, PlainSerializer, WithJsonSchema

from beadmill.domain.command import CommandSpec


def read_command(value: Any) -> Any:
    """A mapping becomes a CommandSpec; a plain string is a legacy shell command (reference §4.2).

    ``env`` may also be a list of ``{name, value}``, the spelling of the strict JSON Schema. Raises ValueError.
    """
    if isinstance(value, CommandSpec):
        return value
    if isinstance(value, str):
        return CommandSpec(mode="shell", script=value)
    if not isinstance(value, dict):
        raise ValueError("a command is a mapping with mode, or a shell line")  # noqa: TRY004 - pydantic wants ValueError
    data = {("timeout_ms" if k == "timeoutMs" else k): v for k, v in value.items() if v not in (None, "")}
    data.setdefault("mode", "shell" if "script" in data else "process")
    unknown = data.keys() - set(CommandSpec.__dataclass_fields__)
    if unknown:
        raise ValueError(f"unknown keys {sorted(unknown)}")
    if data["mode"] not in ("process", "shell") or data.get("shell", "posix") != "posix":
        raise ValueError("mode: process or shell; shell: posix")
    if "script" in data if data["mode"] == "process" else ("program" in data or data.get("args")):
        raise ValueError("a process has program and args, a shell has script")
    data |= {"args": _args(data.get("args", ())), "env": _env(data.get("env", {}))}
    if "timeout_ms" in data:
        data["timeout_ms"] = _milliseconds(data["timeout_ms"])
    if not all(isinstance(data.get(key, ""), str) for key in ("program", "script", "cwd")):
        raise ValueError("program, script and cwd are strings")
    return CommandSpec(**data)


def _args(value: Any) -> tuple[str, ...]:
    if not isinstance(value, (list, tuple)) or not all(isinstance(one, str) for one in value):
        raise ValueError("args: a list of strings")
    return tuple(value)


def _env(value: Any) -> dict[str, str]:
    if isinstance(value, (list, tuple)) and all(
        isinstance(one, dict) and one.keys() == {"name", "value"} for one in value
    ):
        value = {one["name"]: one["value"] for one in value}
    if not isinstance(value, Mapping) or not all(isinstance(x, str) for pair in value.items() for x in pair):
        raise ValueError("env: a mapping of strings")
    return dict(value)


def _milliseconds(value: Any) -> int:
    if isinstance(value, str) and value.strip().isdecimal() and len(value) < 12:
        return int(value)
    if isinstance(value, bool) or not isinstance(value, int):
        raise ValueError("timeoutMs: a whole number of milliseconds")  # noqa: TRY004 - pydantic wants ValueError
    return value


def write_command(spec: CommandSpec) -> dict[str, Any]:
    out: dict[str, Any] = {"mode": spec.mode}
    if spec.mode == "process":
        out |= {"program": spec.program, "args": list(spec.args)}
    else:
        out |= {"shell": spec.shell, "script": spec.script}
    out |= {"cwd": spec.cwd, "env": dict(spec.env)}
    if spec.timeout_ms is not None:
        out["timeoutMs"] = spec.timeout_ms
    return out


def _schema(mode: str, **own: dict[str, Any]) -> dict[str, Any]:
    properties = {
        "mode": {"type": "string", "enum": [mode]},
        **own,
        "cwd": {"type": "string"},
        "env": {"type": "object", "additionalProperties": {"type": "string"}},
        "timeoutMs": {"anyOf": [{"type": "integer"}, {"type": "null"}]},
    }
    return {"type": "object", "properties": properties, "required": ["mode"]}


_TEXT: dict[str, Any] = {"type": "string"}
_SCHEMA: dict[str, Any] = {
    "anyOf": [
        _schema("process", program=_TEXT, args={"type": "array", "items": _TEXT}),
        _schema("shell", script=_TEXT),
    ]
}

Command = Annotated[CommandSpec, BeforeValidator(read_command), PlainSerializer(write_command), WithJsonSchema(_SCHEMA)]
