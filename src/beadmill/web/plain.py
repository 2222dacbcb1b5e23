"""The pages that need no sign-in and no file beside them: signing in, signing out, a refusal."""

from __future__ import annotations

import base64
import hashlib

STYLE = """
:root { color-scheme: light dark; }
body { margin: 0; font: 16px/1.5 system-ui, "Noto Sans", "Noto Sans CJK SC", sans-serif; background: light-dark(#f4f6f6, #0f1516);
  color: light-dark(#16201f, #e5ebea); }
main { max-width: 34rem; margin: 14vh auto 0; padding: 24px; border-top: 4px solid light-dark(#0a6277, #5cc7d9);
  background: light-dark(#fff, #171f20); overflow-wrap: break-word; }
h1 { font-size: 1.3rem; margin: 0 0 8px; }
p { margin: 6px 0; }
a { color: light-dark(#0a6277, #5cc7d9); }
code { font-family: ui-monospace, Menlo, monospace; }
"""


def plain(heading: str, body: str, *, script: str = "") -> str:
    """``heading`` and ``body`` are HTML that is safe already."""
    code = f"<script type=module>{script}</script>" if script else ""
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8"><title>Beadmill</title>'
        f'<meta name="viewport" content="width=device-width, initial-scale=1"><style>{STYLE}</style></head>'
        f"<body><main><h1>{heading}</h1>{body}</main>{code}</body></html>"
    )


def digest(text: str) -> str:
    """The source expression that lets exactly this inline text run."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"
