"""The installation's settings of a run, as they are now: config.toml is read again whenever it has changed."""

from __future__ import annotations

import logging
import os
import tempfile
import threading
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import ValidationError
from pydantic_settings import EnvSettingsSource, TomlConfigSettingsSource

from beadmill.errors import Unprocessable
from beadmill.leaves import flat, nested
from beadmill.settings import RunSettings, Settings

log = logging.getLogger("beadmill.profile")
Stamp = tuple[int, int] | None  # time of change in ns, size; None = no file


@dataclass(frozen=True, slots=True)
class Read:
    """One reading. ``file`` and ``environment`` are layers over the built-in defaults; ``problem`` says why the file
    that lies there now does not count."""

    stamp: Stamp
    file: Mapping[str, Any]
    environment: Mapping[str, Any]
    problem: str = ""


class Profile:
    """Safe to read from any thread. A file that cannot be read changes nothing: the last good reading goes on."""

    def __init__(self, settings: Settings) -> None:
        self.path = settings.home / "config.toml"
        self._given: Mapping[str, Any] = {}
        self._writing = threading.Lock()
        self._read = Read(None, {}, {})
        self._read = self._again(_stamp(self.path))
        before, now = flat(self.now().model_dump(mode="json")), flat(settings.defaults.model_dump(mode="json"))
        self._given = nested({path: value for path, value in now.items() if before[path] != value})

    def layers(self) -> tuple[tuple[str, Mapping[str, Any]], ...]:
        """Lowest first: config.toml, the environment, what the program was started with."""
        stamp = _stamp(self.path)
        if stamp != self._read.stamp:
            self._read = self._again(stamp)
        return ("file", self._read.file), ("environment", self._read.environment), ("flag", self._given)

    def now(self) -> RunSettings:
        return RunSettings().overlaid(*(dict(layer) for _, layer in self.layers()))

    @property
    def problem(self) -> str:
        """Why config.toml as it lies there does not count, "" when it does."""
        self.layers()
        return self._read.problem

    def _again(self, stamp: Stamp) -> Read:
        try:
            file, environment = _file(self.path), _environment()
            RunSettings().overlaid(file, environment)
        except (OSError, tomllib.TOMLDecodeError, ValidationError) as error:
            said = f"{self.path} does not count, what was read before goes on: {error}"
            log.warning("%s", said)
            return Read(stamp, self._read.file, self._read.environment, said)
        return Read(stamp, file, environment)

    def write(self, changes: Mapping[str, Any]) -> None:
        """``changes`` by dotted path into config.toml; None takes the line out. Comments and all else stay as they
        are. Raises Unprocessable for a file that is no TOML, ValidationError for values that are none."""
        with self._writing:  # two changes at once both count
            document = self._document()
            for path, value in changes.items():
                _put(document, ["defaults", *path.split(".")], value)
            text = document.as_string()
            RunSettings().overlaid(tomllib.loads(text).get("defaults", {}), _environment())
            _replace(self.path.resolve(), text)

    def _document(self) -> Any:
        import tomlkit
        from tomlkit.exceptions import TOMLKitError

        try:
            return tomlkit.parse(self.path.read_text(encoding="utf-8") if self.path.exists() else "")
        except TOMLKitError as error:
            raise Unprocessable(
                f"{self.path} is no TOML: {error}",
                code="CONFIG_FILE",
                kept="the file as it is",
                next="correct the line, then try again",
            ) from error


def _put(into: Any, names: list[str], value: Any) -> None:
    """Tables are made when they are missing; one that becomes empty stays, with its comments."""
    import tomlkit

    *groups, last = names
    for name in groups:
        if name not in into:
            if value is None:
                return
            into[name] = tomlkit.table(is_super_table=name != groups[-1])
        into = into[name]
    if value is None:
        into.pop(last, None)
    else:
        into[last] = value


def _replace(path: Path, text: str) -> None:
    """Whole or not at all, and the owner's alone."""
    handle, part = tempfile.mkstemp(dir=path.parent, prefix=".config-", suffix=".part")
    with os.fdopen(handle, "w", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    Path(part).replace(path)


def _stamp(path: Path) -> Stamp:
    try:
        found = path.stat()
    except FileNotFoundError:
        return None
    return found.st_mtime_ns, found.st_size


def _file(path: Path) -> dict[str, Any]:
    return dict(TomlConfigSettingsSource(Settings, path)().get("defaults", {}))


def _environment() -> dict[str, Any]:
    return dict(EnvSettingsSource(Settings)().get("defaults", {}))
