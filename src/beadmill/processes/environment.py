"""The environment that children get: an allow-list, never a copy. Standard library only."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

SESSION_VARIABLE: Final = "BEADMILL_SESSION"  # the token, for people who look at a process
MARK_VARIABLE: Final = "BEADMILL_SESSION_MARK"  # unlike a token never used twice: what a sweep goes by
TRUSTED_DIRS: Final = "BEADMILL_TRUSTED_EXECUTABLE_DIRS"
# Where podman and docker find their daemon, their images and their settings. The runner gets them, a box never.
ENGINE: Final = (
    "XDG_RUNTIME_DIR", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "DBUS_SESSION_BUS_ADDRESS", "CONTAINERS_CONF",
    "CONTAINERS_STORAGE_CONF", "STORAGE_DRIVER", "DOCKER_HOST", "DOCKER_CONTEXT", "DOCKER_CONFIG", "DOCKER_CERT_PATH",
    "DOCKER_TLS_VERIFY",
)  # fmt: skip

_NAMES: Final = frozenset(
    {
        "PATH", "LANG", "LANGUAGE", "TERM", "TZ", "USER", "LOGNAME",
        "SSL_CERT_FILE", "SSL_CERT_DIR", "NODE_EXTRA_CA_CERTS", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE",
        "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "all_proxy", "no_proxy",
    }
)  # fmt: skip
_TESTING: Final = ("BEADMILL_TESTING", "BEADMILL_CRASH")


def allowed(env: Mapping[str, str], *, also: Sequence[str] = ()) -> dict[str, str]:
    """What of ``env`` a child may see. ``also`` names what an adapter declared: a provider's key, for instance."""
    return {k: v for k, v in env.items() if k in _NAMES or k.startswith("LC_") or k in also}


def marks(*, token: str, mark: str) -> dict[str, str]:
    """By which every process of a session is known, wherever it goes."""
    return {SESSION_VARIABLE: token, MARK_VARIABLE: mark}


def for_runner(env: Mapping[str, str], *, also: Sequence[str] = ()) -> dict[str, str]:
    """The runner also needs the user's HOME (where sign-ins live), what leads to podman or docker and, in tests only, the
    crash points."""
    kept = allowed(env, also=(*also, "HOME", TRUSTED_DIRS, *ENGINE))
    if env.get("BEADMILL_TESTING") == "1":
        kept.update({k: env[k] for k in _TESTING if k in env})
    return kept
