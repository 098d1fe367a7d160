"""Downloads from a hub on loopback, by the hub's own client: what is kept, resumed, verified and refused."""

from __future__ import annotations

import hashlib
import random
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from server import COMMIT, Hub, Repo, serving

from macr_local.errors import ConfigError, DownloadError
from macr_local.hub import cache, ledger
from macr_local.hub.download import Download, point
from macr_local.hub.listing import Listing
from macr_local.hub.receive import Stopped, fetch
from macr_local.hub.wanted import check_room, is_here, partial_path, snapshot_path, wanted

SIZE = 3_000_000
BLOCK = 100_000


def content(seed: int = 0, size: int = SIZE) -> bytes:
    return random.Random(seed).randbytes(size)


@pytest.fixture
def hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Hub]:
    files = {"m-Q4_K_M.gguf": content(), "m-Q8_0.gguf": content(1), "mmproj.gguf": content(2, 50_000)}
    with serving(Hub({"o/r": Repo(files)})) as made:
        monkeypatch.setattr("huggingface_hub.constants.ENDPOINT", made.url)
        template = made.url + "/{repo_id}/resolve/{revision}/{filename}"
        monkeypatch.setattr("huggingface_hub.constants.HUGGINGFACE_CO_URL_TEMPLATE", template)
        monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path / "hub"))
        monkeypatch.setattr("huggingface_hub.constants.HF_TOKEN_PATH", str(tmp_path / "token"))
        monkeypatch.setattr("huggingface_hub.constants.DOWNLOAD_CHUNK_SIZE", BLOCK)
        monkeypatch.setattr("huggingface_hub.constants.HF_HUB_DOWNLOAD_TIMEOUT", 5)
        monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
        monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
        for name in ("HF_TOKEN", "HUGGING_FACE_HUB_TOKEN"):
            monkeypatch.delenv(name, raising=False)
        yield made


def get(*names: str) -> Listing:
    listing, files = wanted("o/r", names or ("m-Q4_K_M.gguf",))
    check_room(files)
    Download(files).run()
    point("o/r", None, listing.commit)
    return listing


def test_a_file_is_in_the_cache_as_the_hub_s_own_client_would_leave_it(hub: Hub) -> None:
    from huggingface_hub import try_to_load_from_cache

    get("m-Q4_K_M.gguf", "mmproj.gguf")
    path = cache.find("o/r", "m-Q4_K_M.gguf")
    assert path is not None
    assert path.read_bytes() == content()
    assert try_to_load_from_cache("o/r", "m-Q4_K_M.gguf", cache_dir=str(cache.folder("o/r").parent)) == str(
        path
    )
    assert cache.find("o/r", "mmproj*") is not None
    assert not list(cache.folder("o/r").rglob("*.incomplete"))


def test_what_is_here_is_not_asked_for_again(hub: Hub) -> None:
    get()
    before = dict(hub.asked)
    _, (one,) = wanted("o/r", ["m-Q4_K_M.gguf"])
    assert (one.left, one.held) == (0, SIZE)
    Download([one]).run()
    assert hub.asked["file"] == before["file"]


def test_a_new_commit_with_the_same_file_costs_no_download(hub: Hub) -> None:
    get()
    hub.repos["o/r"].commit = "d" * 40
    before = hub.asked["file"]
    get()
    assert hub.asked["file"] == before
    path = cache.find("o/r", "m-Q4_K_M.gguf", "d" * 40)
    assert path is not None
    assert path.read_bytes() == content()


def test_a_cut_connection_is_gone_on_with_in_the_middle(hub: Hub) -> None:
    hub.cut, hub.cuts = 1_000_000, 2
    get()
    assert hub.starts[0] == 0
    assert hub.starts[1] > 0
    assert hub.starts[2] > hub.starts[1]
    assert snapshot_path(wanted("o/r", ["m-Q4_K_M.gguf"])[1][0].file).read_bytes() == content()


def test_an_interrupted_file_goes_on_where_it_stopped(hub: Hub) -> None:
    (one,) = wanted("o/r", ["m-Q4_K_M.gguf"])[1]
    stop = threading.Event()
    seen: list[int] = []

    def count(_: object, more: int) -> None:
        seen.append(more)
        if sum(seen) > 1_500_000:
            stop.set()

    with pytest.raises(Stopped):
        fetch(one.file, count, stop)
    held = partial_path(one.file).stat().st_size
    assert 0 < held == sum(seen) < SIZE
    assert not is_here(one.file)
    (again,) = wanted("o/r", ["m-Q4_K_M.gguf"])[1]
    assert again.held == held
    seen.clear()
    Download([again], lambda _, more: seen.append(more)).run()
    assert hub.starts[-1] == held
    assert sum(seen) == SIZE - held
    assert is_here(one.file)


def test_a_server_that_cannot_go_on_in_the_middle_begins_anew(hub: Hub) -> None:
    (one,) = wanted("o/r", ["m-Q4_K_M.gguf"])[1]
    partial_path(one.file).parent.mkdir(parents=True)
    partial_path(one.file).write_bytes(content()[:777_777])
    hub.ranges = False
    seen: list[int] = []
    Download([one], lambda _, more: seen.append(more)).run()
    assert sum(seen) == SIZE - 777_777  # what was given up is taken back
    assert is_here(one.file)


def test_damage_in_what_an_earlier_run_left_is_found_and_mended(hub: Hub) -> None:
    (one,) = wanted("o/r", ["m-Q4_K_M.gguf"])[1]
    partial_path(one.file).parent.mkdir(parents=True)
    partial_path(one.file).write_bytes(bytes(1_000_000))
    Download([one]).run()
    assert hub.starts == [1_000_000, 0]
    assert is_here(one.file)


def test_a_file_that_is_not_what_the_hub_says_is_never_in_the_cache(hub: Hub) -> None:
    hub.repos["o/r"].published["m-Q4_K_M.gguf"] = hashlib.sha256(b"another").hexdigest()
    with pytest.raises(DownloadError, match=r"m-Q4_K_M.gguf of o/r has another sha256 than published"):
        get("m-Q4_K_M.gguf", "mmproj.gguf")
    assert cache.find("o/r", "m-Q4_K_M.gguf") is None
    assert not list(cache.folder("o/r").rglob("*.incomplete"))
    (_, good) = wanted("o/r", ["m-Q4_K_M.gguf", "mmproj.gguf"])[1]
    assert is_here(good.file)  # the others are finished


def test_a_file_that_changed_on_the_disk_is_downloaded_again(hub: Hub) -> None:
    get()
    path = cache.find("o/r", "m-Q4_K_M.gguf")
    assert path is not None
    blob = path.resolve()
    blob.write_bytes(content()[:-1] + b"!")
    (one,) = wanted("o/r", ["m-Q4_K_M.gguf"])[1]
    assert one.held == 0
    Download([one]).run()
    assert path.read_bytes() == content()


def test_requests_that_are_refused_for_a_while_are_repeated(hub: Hub) -> None:
    hub.refuse = 2
    get("mmproj.gguf")
    assert hub.asked["file"] == 3


@pytest.mark.parametrize(
    ("repo", "revision", "said", "fix"),
    [
        ("o/none", None, "There is no repository o/none at http", "HF_TOKEN"),
        ("o/gated", None, "o/gated is gated", "Accept them at http"),
        ("o/private", None, "There is no repository o/private", "log in"),
        ("o/r", "v9", 'o/r has no revision "v9"', "models.toml"),
    ],
)
def test_what_the_hub_refuses_is_said_with_what_to_do(
    repo: str, revision: str | None, said: str, fix: str, hub: Hub
) -> None:
    hub.repos["o/gated"] = Repo({"m.gguf": b"x"}, gated=True, token="t")
    hub.repos["o/private"] = Repo({"m.gguf": b"x"}, token="t")
    with pytest.raises(DownloadError) as raised:
        Listing.fetch(repo, revision)
    assert said in raised.value.found
    assert fix in raised.value.fix


def test_who_is_logged_in_may_see_more(hub: Hub, monkeypatch: pytest.MonkeyPatch) -> None:
    hub.repos["o/gated"] = Repo({"m.gguf": content(3)}, gated=True, token="secret")
    monkeypatch.setenv("HF_TOKEN", "secret")
    Download(wanted("o/gated", ["m.gguf"])[1]).run()
    assert cache.find("o/gated", "m.gguf", COMMIT) is not None


def test_a_hub_that_cannot_be_reached_and_offline_mode_are_said(
    hub: Hub, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("huggingface_hub.constants.ENDPOINT", "http://127.0.0.1:9")
    with pytest.raises(DownloadError, match=r"http://127.0.0.1:9 cannot be reached"):
        Listing.fetch("o/r")


@pytest.mark.parametrize(
    ("pattern", "said"),
    [
        ("*Q5_K_M*.gguf", r'No file of o/r fits "\*Q5_K_M\*.gguf"; it has m-Q4_K_M.gguf \(3 MB\), m-Q8_0'),
        ("m-*.gguf", r'2 files of o/r fit "m-\*.gguf": m-Q4_K_M.gguf \(3 MB\), m-Q8_0.gguf \(3 MB\)'),
    ],
)
def test_a_pattern_that_fits_none_or_several_is_answered_with_what_is_there(
    pattern: str, said: str, hub: Hub
) -> None:
    with pytest.raises(ConfigError, match=said):
        wanted("o/r", [pattern])


def test_a_split_model_is_downloaded_whole(hub: Hub) -> None:
    parts = [f"big-{number:05}-of-00003.gguf" for number in (1, 2, 3)]
    hub.repos["o/r"].files |= {name: content(place, 1000) for place, name in enumerate(parts)}
    assert [one.file.name for one in wanted("o/r", [parts[0]])[1]] == parts
    assert [one.file.name for one in wanted("o/r", ["big-*.gguf"])[1]] == parts
    del hub.repos["o/r"].files[parts[2]]
    with pytest.raises(ConfigError, match="o/r lacks big-00003-of-00003"):
        wanted("o/r", [parts[0]])


def test_a_disk_without_room_is_said_before_anything_is_downloaded(
    hub: Hub, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Usage:
        free = 1_000_000

    monkeypatch.setattr("macr_local.hub.wanted.shutil.disk_usage", lambda _: Usage)
    with pytest.raises(DownloadError, match=r"3 MB are to be downloaded, and 1 MB are free in .*hub"):
        get()
    assert hub.asked["file"] == 0


def test_a_disk_that_fills_ends_the_download_and_keeps_what_came(hub: Hub) -> None:
    resource = pytest.importorskip("resource")  # not on Windows
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1_000_000, limits[1]))
    try:
        with pytest.raises(DownloadError, match=r"incomplete cannot be written \(.*goes on where it stopped"):
            get()
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    (one,) = wanted("o/r", ["m-Q4_K_M.gguf"])[1]
    assert one.held == 1_000_000
    Download([one]).run()
    assert is_here(one.file)


def test_what_was_verified_is_written_down(hub: Hub) -> None:
    get()
    path = cache.find("o/r", "m-Q4_K_M.gguf")
    assert path is not None
    entry = ledger.entries()[str(path)]
    assert (entry.repo, entry.commit, entry.size) == ("o/r", COMMIT, SIZE)
    assert entry.sha256 == hashlib.sha256(content()).hexdigest() == cache.published_sha256(path)


def test_without_links_the_ledger_knows_what_a_file_must_be(
    hub: Hub, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("huggingface_hub.file_download.are_symlinks_supported", lambda *_: False)
    get("mmproj.gguf")
    path = cache.find("o/r", "mmproj.gguf")
    assert path is not None
    assert not path.is_symlink()
    assert cache.published_sha256(path) == hashlib.sha256(content(2, 50_000)).hexdigest()
