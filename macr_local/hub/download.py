"""Several files of the hub at a time, until all are here or something stops them."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from contextlib import suppress

from macr_local.errors import Cancelled
from macr_local.hub import cache
from macr_local.hub.receive import Count, DiskError, Stopped, fetch
from macr_local.hub.wanted import Wanted, is_here

AT_ONCE = 3
"""Files that are downloaded at a time: one connection seldom fills a line, and many are refused."""


class Download:
    """Downloads files, several at a time.

    Args:
        wanted: Which; those that are here already are passed over.
        count: Told of progress, from several threads.
    """

    def __init__(self, wanted: Sequence[Wanted], count: Count = lambda _file, _bytes: None) -> None:
        self._queue = [one.file for one in wanted if one.left or not is_here(one.file)]
        self._count = count
        self._stop = threading.Event()
        self._guard = threading.Lock()
        self._errors: list[Exception] = []

    def run(self) -> None:
        """Download; Ctrl-C, or the end of the process, costs at most the last few megabytes of each file.

        Raises:
            DownloadError: A file cannot be downloaded or is not what the hub says; others were finished.
            Cancelled: The user interrupted.
        """
        # Daemons: one that waits for the network must not keep an interrupted program alive.
        threads = [
            threading.Thread(target=self._work, name=f"download {number}", daemon=True)
            for number in range(min(AT_ONCE, len(self._queue)))
        ]
        try:
            for thread in threads:
                thread.start()
            for thread in threads:
                while thread.is_alive():
                    thread.join(0.1)
        except KeyboardInterrupt:
            self._stop.set()
            for thread in threads:
                thread.join(0.5)
            raise Cancelled(
                "The download was interrupted", "Give the same command again to go on where it stopped"
            ) from None
        if self._errors:
            raise self._errors[0]

    def _work(self) -> None:
        while not self._stop.is_set():
            with self._guard:
                if not self._queue:
                    return
                file = self._queue.pop(0)
            try:
                fetch(file, self._count, self._stop)
            except Stopped:
                return
            except Exception as error:
                with self._guard:
                    self._errors.append(error)
                if isinstance(error.__cause__, DiskError):  # the others would only meet it too
                    self._stop.set()


def point(repo: str, revision: str | None, commit: str) -> None:
    """Let a branch of the local cache point at a commit, as the hub's own client does."""
    ref = cache.folder(repo) / "refs" / (revision or "main")
    if revision != commit:
        with suppress(OSError):
            ref.parent.mkdir(parents=True, exist_ok=True)
            ref.write_text(commit, "ascii")
