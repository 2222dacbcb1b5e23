"""Files that people add, below ``<home>/evidence``: named by their SHA-256, whole or not there, never reached by a link."""

from __future__ import annotations

import errno
import hashlib
import os
import uuid
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import anyio.to_thread

from beadmill.errors import BeadmillError, Conflict, NotFound, Refused

LIMIT = 250 * 1024 * 1024  # bytes a file
CHUNK = 1024 * 1024
TEMP = "tmp"
_NO_LINK = os.O_NOFOLLOW | os.O_CLOEXEC
# Raster images that a browser shows without running anything of them. SVG is none of these.
_MAGIC = ((b"\x89PNG\r\n\x1a\n", "image/png"), (b"\xff\xd8\xff", "image/jpeg"), (b"GIF87a", "image/gif"), (b"GIF89a", "image/gif"))  # fmt: skip


class FileTooLarge(BeadmillError):
    status = 413


@dataclass(frozen=True, slots=True)
class Received:
    """Bytes that wait under ``temp`` for a row that names them."""

    temp: str
    sha256: str
    size: int
    media: str


def media_of(head: bytes) -> str:
    """By content, never by name."""
    for magic, media in _MAGIC:
        if head.startswith(magic):
            return media
    if head[:4] == b"RIFF" and head[8:12] == b"WEBP":
        return "image/webp"
    if head[4:12] in (b"ftypavif", b"ftypavis"):
        return "image/avif"
    return "application/octet-stream"


class EvidenceFiles:
    def __init__(self, root: Path, *, limit: int = LIMIT) -> None:
        self.root = root
        self.limit = limit

    async def receive(self, chunks: AsyncIterator[bytes]) -> Received:
        """Streams to a temporary file, synced. Raises FileTooLarge; whatever goes wrong, nothing is left."""
        temp = uuid.uuid4().hex
        with self._folder(TEMP) as folder:
            place = os.open(temp, os.O_WRONLY | os.O_CREAT | os.O_EXCL | _NO_LINK, 0o600, dir_fd=folder)
            try:
                digest, size, head = hashlib.sha256(), 0, b""
                async for chunk in chunks:
                    size += len(chunk)
                    self._fits(size)
                    digest.update(chunk)
                    head = (head + chunk)[:16] if len(head) < 16 else head
                    await anyio.to_thread.run_sync(_write, place, chunk)
                await anyio.to_thread.run_sync(os.fsync, place)
            except BaseException:
                os.unlink(temp, dir_fd=folder)
                raise
            finally:
                os.close(place)
        return Received(temp, digest.hexdigest(), size, media_of(head))

    def _fits(self, size: int) -> None:
        if size > self.limit:
            raise FileTooLarge(
                f"a file has at most {self.limit // 1024**2} MiB",
                code="EVIDENCE_TOO_LARGE",
                details={"limit": self.limit},
                kept="nothing of it was kept",
                next="send a shorter recording, or put a link to it",
            )

    def keep(self, received: Received) -> None:
        """Gives the bytes their name. The same bytes twice are one file. Raises Conflict when they were swept away."""
        with self._folder(TEMP) as temp, self._folder(received.sha256[:2]) as folder:
            try:
                os.rename(received.temp, received.sha256, src_dir_fd=temp, dst_dir_fd=folder)
            except FileNotFoundError as error:
                raise Conflict("the upload is gone", code="UPLOAD_GONE", next="send the file again") from error
            os.fsync(folder)

    def forget(self, received: Received) -> None:
        with self._folder(TEMP) as folder, suppress(FileNotFoundError):
            os.unlink(received.temp, dir_fd=folder)

    def drop(self, sha256: str) -> None:
        with self._folder(sha256[:2]) as folder, suppress(FileNotFoundError):
            os.unlink(sha256, dir_fd=folder)

    async def read(self, sha256: str) -> AsyncIterator[bytes]:
        """The bytes in pieces. Raises NotFound at once when they are not there."""
        try:
            with self._folder(sha256[:2]) as folder:
                place = os.open(sha256, os.O_RDONLY | _NO_LINK, dir_fd=folder)
        except OSError as error:
            raise NotFound(
                "the file is not in the data home any more", code="EVIDENCE_GONE", kept="its name, size and SHA-256"
            ) from error
        return _pieces(place)

    def sweep(self) -> tuple[str, ...]:
        """Removes uploads that a dead process left half done. Returns their names."""
        if not self.root.is_dir():
            return ()
        with self._folder(TEMP) as folder:
            names = tuple(os.listdir(folder))  # noqa: PTH208 - by the open folder, not by its name
            for name in names:
                os.unlink(name, dir_fd=folder)
        return names

    @contextmanager
    def _folder(self, name: str) -> Iterator[int]:
        """A folder below the root, both of them real. Raises Refused for a link in their place."""
        self.root.mkdir(parents=True, exist_ok=True, mode=0o700)
        root = self._open(str(self.root))
        try:
            with suppress(FileExistsError):
                os.mkdir(name, 0o700, dir_fd=root)
            folder = self._open(name, root)
        finally:
            os.close(root)
        try:
            yield folder
        finally:
            os.close(folder)

    def _open(self, name: str, above: int | None = None) -> int:
        try:
            return os.open(name, os.O_RDONLY | os.O_DIRECTORY | _NO_LINK, dir_fd=above)
        except OSError as error:
            if error.errno not in (errno.ELOOP, errno.ENOTDIR):
                raise
            raise Refused(
                f"{self.root} or {name} in it is no folder of ours: links are not followed",
                code="EVIDENCE_PLACE",
                kept="whatever it leads to was not touched",
                next="put a real folder in its place",
            ) from error


def _write(place: int, chunk: bytes) -> None:
    view = memoryview(chunk)
    while view:
        view = view[os.write(place, view) :]


async def _pieces(place: int) -> AsyncIterator[bytes]:
    try:
        while piece := await anyio.to_thread.run_sync(os.read, place, CHUNK):
            yield piece
    finally:
        os.close(place)
