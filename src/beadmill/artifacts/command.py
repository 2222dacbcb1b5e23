"""CommandSpec at the border: JSON in the reference's spelling (§4.2) to the frozen value and back."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BeforeValidator, PlainSerializer, WithJsonSchema

from beadmill.domain.command import CommandSpec


def read_command(value: Any) -> Any:
    """A mapping becomes a CommandSpec; a plain string is a legacy shell command (reference §4.2)."""
    if isinstance(value, CommandSpec):
        return value
    if isinstance(value, str):
        return CommandSpec(mode="shell", script=value)
    if not isinstance(value, dict):
        raise ValueError("a command is a mapping with mode, or a shell line")  # noqa: TRY004 - pydantic wants ValueError
    data = {("timeout_ms" if k == "timeoutMs" else k): v for k, v in value.items() if v is not None}
    data.setdefault("mode", "shell" if "script" in data else "process")
    unknown = data.keys() - set(CommandSpec.__dataclass_fields__)
    if unknown:
        raise ValueError(f"unknown keys {sorted(unknown)}")
    if not isinstance(data.get("args", []), (list, tuple)) or not all(isinstance(a, str) for a in data.get("args", [])):
        raise ValueError("args: a list of strings")
    data["args"] = tuple(data.get("args", ()))
    return CommandSpec(**data)


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


_SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "mode": {"enum": ["process", "shell"]},
        "program": {"type": "string"},
        "args": {"type": "array", "items": {"type": "string"}},
        "script": {"type": "string"},
        "cwd": {"type": "string"},
        "env": {"type": "object", "additionalProperties": {"type": "string"}},
        "timeoutMs": {"type": "integer"},
    },
    "required": ["mode"],
}

Command = Annotated[CommandSpec, BeforeValidator(read_command), PlainSerializer(write_command), WithJsonSchema(_SCHEMA)]
