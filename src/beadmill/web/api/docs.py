"""/api/docs: the OpenAPI description as one page, from our own server only."""

from __future__ import annotations

from html import escape
from typing import Any

from fastapi import APIRouter, Request
from starlette.responses import HTMLResponse

router = APIRouter(include_in_schema=False)
INTRO = (
    "<p>Errors of every address have the same form: <code>{error: {code, message, details, kept, next}}</code>. "
    "Writes on gates and artifacts need <code>If-Match</code>; every creating write takes <code>Idempotency-Key</code>. "
    "The machine-readable description is at <a href='/api/openapi.json'>/api/openapi.json</a>.</p>"
)


@router.get("/api/docs")
async def docs(request: Request) -> HTMLResponse:
    description = request.app.openapi()
    rows = "".join(
        _row(method, path, operation)
        for path, methods in description["paths"].items()
        for method, operation in methods.items()
    )
    return HTMLResponse(
        "<!doctype html><html lang=en><meta charset=utf-8><meta name=viewport content='width=device-width'>"
        "<title>Beadmill API</title><main><h1>Beadmill API</h1>"
        f"{INTRO}<table><thead><tr><th scope=col>Method<th scope=col>Address<th scope=col>Does<th scope=col>Parameters"
        f"</thead><tbody>{rows}</tbody></table></main></html>"
    )


def _row(method: str, path: str, operation: dict[str, Any]) -> str:
    names = ", ".join(p["name"] for p in operation.get("parameters", ()))
    text = operation.get("description") or operation.get("summary", "")
    cells = (method.upper(), path, f"{operation['operationId']}. {text}", names)
    return "<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in cells) + "</tr>"
