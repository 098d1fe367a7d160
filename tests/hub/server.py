"""A hub on loopback: answers what the hub's client asks, and fails where it is told to."""

from __future__ import annotations

import hashlib
import json
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import unquote, urlsplit

COMMIT = "c0ffee" + "0" * 34


@dataclass
class Repo:
    """A repository: its files, and who may see it."""

    files: dict[str, bytes]
    commit: str = COMMIT
    gated: bool = False
    token: str | None = None
    published: dict[str, str] = field(default_factory=dict)
    """sha256 by name, where it is not that of the content."""

    def sha256(self, name: str) -> str:
        return self.published.get(name) or hashlib.sha256(self.files[name]).hexdigest()


@dataclass
class Hub:
    """What the server has, and what happened.

    Attributes:
        repos: By name.
        cut: After how many bytes of an answer the connection is cut, for so many answers as are in ``cuts``.
        ranges: Whether requests for a part are answered with a part.
        refuse: How many requests for files are answered with 429 first.
        slow: Seconds to wait after each block of a file.
        sent: Bytes of files that were sent.
        asked: Requests by method and kind.
        starts: Where each answer with a file's bytes began.
    """

    repos: dict[str, Repo] = field(default_factory=dict)
    cut: int = 0
    cuts: int = 0
    ranges: bool = True
    refuse: int = 0
    slow: float = 0.0
    sent: int = 0
    asked: Counter[str] = field(default_factory=Counter)
    starts: list[int] = field(default_factory=list)
    tokens: list[str | None] = field(default_factory=list)
    url: str = ""


@contextmanager
def serving(hub: Hub) -> Iterator[Hub]:
    """Serve a hub on a free port."""

    class Handler(_Handler):
        pass

    Handler.hub = hub
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    hub.url = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    try:
        yield hub
    finally:
        server.shutdown()
        server.server_close()


class _Handler(BaseHTTPRequestHandler):
    hub: Hub
    protocol_version = "HTTP/1.1"

    def log_message(self, *_: object) -> None:
        pass

    def do_HEAD(self) -> None:
        self._answer(body=False)

    def do_GET(self) -> None:
        self._answer(body=True)

    def _answer(self, *, body: bool) -> None:
        path = unquote(urlsplit(self.path).path).strip("/")
        self.hub.tokens.append(self.headers.get("authorization"))
        if path.startswith("api/models/"):
            self.hub.asked["listing"] += 1
            self._listing(path.removeprefix("api/models/"))
        else:
            self.hub.asked["file" if body else "head"] += 1
            self._file(path, body=body)

    def _repo(self, name: str) -> Repo | None:
        repo = self.hub.repos.get(name)
        given = (self.headers.get("authorization") or "").removeprefix("Bearer ")
        if repo is None or (repo.token and given != repo.token and not repo.gated):
            self._error(401, "RepoNotFound", "Repository not found")
            return None
        if repo.gated and given != repo.token:
            self._error(403, "GatedRepo", "Access to this model is restricted")
            return None
        return repo

    def _listing(self, path: str) -> None:
        name, _, revision = path.partition("/revision/")
        repo = self._repo(name)
        if repo is None:
            return
        if revision not in ("", "main", repo.commit):
            self._error(404, "RevisionNotFound", "no such revision")
            return
        siblings = [
            {
                "rfilename": name,
                "size": len(data),
                "blobId": hashlib.sha1(data).hexdigest(),
                "lfs": {"sha256": repo.sha256(name), "size": len(data), "pointerSize": 134},
            }
            for name, data in repo.files.items()
        ]
        text = json.dumps(
            {"id": name, "sha": repo.commit, "private": False, "siblings": siblings, "tags": []}
        )
        self._send(200, text.encode(), {"Content-Type": "application/json"})

    def _file(self, path: str, *, body: bool) -> None:
        name, _, rest = path.partition("/resolve/")
        revision, _, file = rest.partition("/")
        repo = self._repo(name)
        if repo is None:
            return
        if file not in repo.files or revision not in ("main", repo.commit):
            self._error(404, "EntryNotFound", "no such file")
            return
        if body and self.hub.refuse:
            self.hub.refuse -= 1
            self._send(429, b"", {"Retry-After": "1"})
            return
        data, digest = repo.files[file], repo.sha256(file)
        head = {
            "ETag": f'"{digest}"',
            "X-Linked-Etag": f'"{digest}"',
            "X-Linked-Size": str(len(data)),
            "X-Repo-Commit": repo.commit,
            "Accept-Ranges": "bytes",
        }
        wanted = self.headers.get("range")
        if not body:
            self._send(200, b"", {**head, "Content-Length": str(len(data))}, body=False)
        elif wanted and self.hub.ranges:
            start = int(wanted.removeprefix("bytes=").partition("-")[0])
            head["Content-Range"] = f"bytes {start}-{len(data) - 1}/{len(data)}"
            self._stream(206, data, start, head)
        else:
            self._stream(200, data, 0, head)

    def _stream(self, status: int, data: bytes, start: int, head: dict[str, str]) -> None:
        self.hub.starts.append(start)
        self.send_response(status)
        for key, value in {**head, "Content-Length": str(len(data) - start)}.items():
            self.send_header(key, value)
        self.end_headers()
        stop = len(data)
        if self.hub.cuts:
            self.hub.cuts -= 1
            stop = min(stop, start + self.hub.cut)
        place = start
        while place < stop:
            block = data[place : min(place + 65536, stop)]
            try:
                self.wfile.write(block)
            except OSError:
                break
            place += len(block)
            self.hub.sent += len(block)
            time.sleep(self.hub.slow)
        if place < len(data):
            self.close_connection = True
            self.connection.close()

    def _error(self, status: int, code: str, message: str) -> None:
        head = {"X-Error-Code": code, "X-Error-Message": message, "Content-Type": "application/json"}
        self._send(status, json.dumps({"error": message}).encode(), head)

    def _send(self, status: int, data: bytes, head: dict[str, str], *, body: bool = True) -> None:
        self.send_response(status)
        for key, value in {"Content-Length": str(len(data)), **head}.items():
            self.send_header(key, value)
        self.end_headers()
        if body and self.command != "HEAD":
            self.wfile.write(data)
