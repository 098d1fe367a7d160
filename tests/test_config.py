"""Pool files: what they say, what is refused and how, and where they are looked for."""

from __future__ import annotations

from pathlib import Path

import pytest

from macr_local.config import default_pool, find_pool, list_pools, load_pool
from macr_local.errors import ConfigError, NotDownloaded
from macr_local.settings import RelaySettings, Sampling

ROOT = Path(__file__).parents[1]
MODEL = '[models.a]\nmodel = "a.gguf"\n[models.b]\nmodel = "b.gguf"\n'
ONE = 'models.a.model = "a.gguf"\n[pools."p q"]\nmembers = ["a"]\n'
GOOD = f'[pools.p]\nmembers = ["a", "b"]\n{MODEL}'


@pytest.fixture(autouse=True)
def _own_folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing of the developer's own configuration or hub cache reaches these tests."""
    for name in ("MACR_LOCAL_MODELS", "MACR_LOCAL_POOL"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr("platformdirs.user_config_path", lambda *_, **__: tmp_path / "config" / "macr-local")
    monkeypatch.setattr("platformdirs.user_data_path", lambda *_, **__: tmp_path / "data")
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path / "hub"))
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")


def write(folder: Path, text: str, name: str = "models.toml") -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


def cached(hub: Path, repo: str, *names: str, commit: str = "c0ffee", main: bool = True) -> Path:
    folder = hub / f"models--{repo.replace('/', '--')}"
    snapshot = folder / "snapshots" / commit
    snapshot.mkdir(parents=True, exist_ok=True)
    for name in names:
        (snapshot / name).write_bytes(b"GGUF")
    if main:
        (folder / "refs").mkdir(exist_ok=True)
        (folder / "refs" / "main").write_text(commit)
    return snapshot


def refusal(path: Path) -> ConfigError:
    with pytest.raises(ConfigError) as caught:
        load_pool(path)
    return caught.value


def test_every_key_reaches_the_specification(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WEIGHTS", str(tmp_path / "w"))
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    sha = "ab" * 32
    path = write(
        tmp_path,
        f"""
        [pools.p]
        description = "two"
        members = ["b", "a"]
        calibration = "cal/p"
        settings = {{ window = 4, threshold = -1, stop = ["###"], max_relays = 3, initiation = "a" }}
        sampling = {{ temperature = 1, top_k = 20 }}
        [models.a]
        model = "$WEIGHTS/a.gguf"
        projector = "${{WEIGHTS}}/a-mmproj.gguf"
        architecture = "qwen3vl"
        projector_type = "qwen3vl_merger"
        model_sha256 = "{sha}"
        n_ctx = 512
        n_batch = 64
        n_gpu_layers = 0
        kv_type = "q8_0"
        threads = 1
        system = "Be brief."
        think = false
        stop = ["</s>"]
        images = {{ square = 64, max_pixels = 5000 }}
        [models.b]
        model = "~/b.gguf"
        """,
    )
    pool = load_pool(path)
    b, a = pool.members
    assert (pool.name, pool.description, pool.source) == ("p", "two", path)
    assert pool.calibration == tmp_path / "cal" / "p"
    assert pool.settings == RelaySettings(
        window=4, threshold=-1.0, stop=("###",), max_relays=3, initiation="a",
        sampling=Sampling(temperature=1.0, top_k=20),
    )  # fmt: skip
    assert isinstance(pool.settings.threshold, float)
    assert (a.model, a.projector) == (tmp_path / "w" / "a.gguf", tmp_path / "w" / "a-mmproj.gguf")
    assert b.model == tmp_path / "home" / "b.gguf"
    assert (a.architecture, a.projector_type, a.model_sha256) == ("qwen3vl", "qwen3vl_merger", sha)
    assert (a.n_ctx, a.n_batch, a.n_gpu_layers, a.kv_type, a.threads) == (512, 64, 0, "q8_0", 1)
    assert (a.system, a.think, a.stop, a.images.square, a.images.max_pixels) == (
        "Be brief.", False, ("</s>",), 64, 5000,
    )  # fmt: skip
    assert (b.projector, b.think, b.n_ctx) == (None, None, 4096)


@pytest.mark.parametrize(
    ("text", "line", "found", "fix"),
    [
        (GOOD + "n_ctxx = 4\n", 7, 'unknown key "n_ctxx" in [models.b]', '"n_ctx"'),
        (GOOD + 'n_ctx = "big"\n', 7, 'models.b.n_ctx is "big"', "a whole number"),
        (GOOD + "n_ctx = true\n", 7, "models.b.n_ctx is true", "a whole number"),
        (GOOD + "n_ctx = 0\n", 7, "n_ctx is 0", "1 or more"),
        (GOOD + "think = 1\n", 7, "models.b.think is 1", "true or false"),
        (GOOD + 'kv_type = "f32"\n', 7, 'models.b.kv_type is "f32"', '"q8_0"'),
        (GOOD + 'model_sha256 = "12"\n', 7, "model_sha256 is '12'", "64"),
        (GOOD + "images = { sqare = 64 }\n", 7, 'unknown key "sqare" in [models.b.images]', '"square"'),
        (GOOD + "images = 64\n", 7, "models.b.images is 64", "a table"),
        (GOOD + "[models.b.images]\nmin_side = 0\n", 8, "min_side is 0", "1 or more"),
        (GOOD + 'stop = "x"\n', 7, 'models.b.stop is "x"', "a list of texts"),
        (GOOD + 'repo = "nobody"\n', 7, 'repo of [models.b] is "nobody"', "owner/name"),
        (GOOD + 'revision = "v1"\n', 7, "has a revision and no repo", "repo ="),
        (GOOD + 'projector = "$NOT_SET_HERE/x"\n', 7, "$NOT_SET_HERE, which is not set", "NOT_SET_HERE"),
        (GOOD + "[pool.q]\n", 7, 'unknown key "pool"', '"pools"'),
        ("[models.a]\nn_ctx = 4\n[pools.p]\nmembers=['a']", 1, "[models.a] names no model", "model ="),
        (f'[pools.p]\nmembers = ["a", "c"]\n{MODEL}', 2, 'names "c", which no [models] table', "a, b"),
        (f'[pools.p]\nmembers = ["a", "a"]\n{MODEL}', 2, 'member "a" comes 2 times', "once"),
        (f"[pools.p]\nmembers = []\n{MODEL}", 2, "has no members", "members ="),
        (f"[pools.p]\nmembers = [1]\n{MODEL}", 2, "pools.p.members is [1]", "a list of texts"),
        (f"[pools.p]\n{MODEL}", 1, "has no members", "members ="),
        (f'[pools]\np = "a"\n{MODEL}', 2, 'pools.p is "a", not a table', "[pools.p]"),
        (ONE + "settings = { windw = 3 }\n", 4, 'unknown key "windw"', '"window"'),
        (ONE + "settings = { window = 0 }\n", 4, "window is 0", "1 or more"),
        (ONE + "settings = { threshold = nan }\n", 4, "threshold is nan", "a number"),
        (ONE + 'settings = { bids = "both" }\n', 4, 'bids is "both"', '"parallel"'),
        (ONE + "settings = { top_k = 3 }\n", 4, '"top_k" stands in settings', "sampling = {"),
        (ONE + 'settings = { initiation = "b" }\n', 4, 'initiation of pool "p q"', '"best"'),
        (ONE + "sampling = { top_p = 2 }\n", 4, "top_p is 2.0", "at most 1"),
    ],
)  # fmt: skip
def test_a_mistake_is_named_with_its_line_and_its_remedy(
    tmp_path: Path, text: str, line: int, found: str, fix: str
) -> None:
    path = write(tmp_path, text)
    error = refusal(path)
    assert error.found.startswith(f"{path}, line {line}: ")
    assert found in error.found
    assert fix in error.fix


@pytest.mark.parametrize(
    ("data", "found"),
    [
        (b'[pools.p]\nmembers = ["a"\nx = 1\n', "line 3"),
        (b"a = 1\na = 2\n", "line 2"),
        (b"# fine\n\xff\xfe\n", "line 2: not UTF-8"),
        (b"", "defines no pool"),
        (b"[models.a]\nmodel = 'a.gguf'\n", "defines no pool"),
    ],
)
def test_a_file_that_is_not_a_pool_file_is_named(tmp_path: Path, data: bytes, found: str) -> None:
    path = tmp_path / "broken.toml"
    path.write_bytes(data)
    error = refusal(path)
    assert str(path) in error.found
    assert found in error.found
    assert error.fix


def test_a_byte_order_mark_is_no_mistake(tmp_path: Path) -> None:
    path = tmp_path / "bom.toml"
    path.write_bytes(b"\xef\xbb\xbf" + GOOD.encode())
    assert load_pool(path).name == "p"


def test_an_absent_file_is_named(tmp_path: Path) -> None:
    assert "none.toml cannot be read: No such file" in refusal(tmp_path / "none.toml").found


def test_one_of_several_pools_of_a_file_is_chosen_after_a_hash(tmp_path: Path) -> None:
    path = write(tmp_path, GOOD + '[pools.q]\nmembers = ["b"]\n')
    assert load_pool(f"{path}#q").name == "q"
    assert "defines 2 pools: p, q" in refusal(path).found
    with pytest.raises(ConfigError, match='has no pool "r"'):
        load_pool(f"{path}#r")


def test_of_several_pools_the_default_one_is_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write(tmp_path, GOOD + '[pools.q]\nmembers = ["b"]\n')
    monkeypatch.setenv("MACR_LOCAL_POOL", "q")
    assert load_pool(path).name == "q"


def test_files_are_searched_from_the_most_to_the_least_particular(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def pool(name: str) -> str:
        return f'[pools.default]\ndescription = "{name}"\nmembers = ["a"]\n{MODEL}'

    assert find_pool("default").source.name == "models.toml"
    assert find_pool("default").source.parent == ROOT / "macr_local"
    write(tmp_path / "config" / "macr-local", pool("user"))
    assert find_pool("default").description == "user"
    write(Path.cwd(), pool("here"))
    assert find_pool("default").description == "here"
    monkeypatch.setenv("MACR_LOCAL_MODELS", str(write(tmp_path, pool("environment"), "mine.toml")))
    assert find_pool("default").description == "environment"
    assert [entry.description for entry in list_pools() if entry.name == "default"] == ["environment"]


def test_a_models_variable_that_names_no_file_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MACR_LOCAL_MODELS", "/nowhere/models.toml")
    with pytest.raises(ConfigError, match="MACR_LOCAL_MODELS is /nowhere"):
        list_pools()


def test_the_default_pool_comes_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    assert default_pool() == "default"
    monkeypatch.setenv("MACR_LOCAL_POOL", "tiny")
    assert load_pool().name == "tiny"


def test_a_wrong_name_is_answered_with_the_nearest() -> None:
    with pytest.raises(ConfigError, match='Perhaps "tiny" is meant'):
        load_pool("tinny")
    with pytest.raises(ConfigError, match="Known are: default, tiny "):
        load_pool("zzz")


def test_some_members_can_be_chosen_in_any_order() -> None:
    pool = load_pool("tiny", ["tiny-minicpmv", "tiny-qwen3vl"])
    assert [member.name for member in pool.members] == ["tiny-minicpmv", "tiny-qwen3vl"]
    with pytest.raises(ConfigError, match='no member "tiny-qwen"'):
        load_pool("tiny", ["tiny-qwen"])
    for wrong in ([], ["tiny-qwen3vl", "tiny-qwen3vl"]):
        with pytest.raises(ConfigError, match="once, and at least one"):
            load_pool("tiny", wrong)


def test_the_embedded_pool_is_whole() -> None:
    for member in load_pool("tiny").members:
        assert member.model.is_file()
        assert member.projector is not None
        assert member.projector.is_file()


def test_the_packaged_pool_file_is_the_one_in_the_repository() -> None:
    assert (ROOT / "models.toml").read_bytes() == (ROOT / "macr_local" / "models.toml").read_bytes()


def test_without_downloads_the_default_pool_says_what_to_do() -> None:
    with pytest.raises(ConfigError) as caught:
        load_pool()
    assert "qwen3-vl-8b, internvl3.5-8b, minicpm-v-4.5" in caught.value.found
    assert caught.value.fix.splitlines() == [
        "Download them: macr-local download default",
        "or ask three tiny models that come along: --pool tiny",
    ]


HUB = '[pools.h]\nmembers = ["m"]\n[models.m]\nrepo = "o/r"\nmodel = "*Q4*.gguf"\nprojector = "mm.gguf"\n'


def test_downloaded_files_are_found_by_name_and_by_pattern(tmp_path: Path) -> None:
    snapshot = cached(tmp_path / "hub", "o/r", "x-Q4_K_M.gguf", "x-Q8_0.gguf", "mm.gguf")
    (member,) = load_pool(write(tmp_path, HUB)).members
    assert (member.model, member.projector) == (snapshot / "x-Q4_K_M.gguf", snapshot / "mm.gguf")


def test_only_what_is_missing_is_asked_for(tmp_path: Path) -> None:
    cached(tmp_path / "hub", "o/r", "x-Q4_K_M.gguf")
    path = write(tmp_path, HUB)
    assert isinstance(refusal(path), NotDownloaded)
    assert f"macr-local download '{path}#h'" in refusal(path).fix
    (member,) = find_pool(path).members
    assert member.locate()[1] == ("mm.gguf",)


def test_a_pattern_that_fits_two_files_is_refused(tmp_path: Path) -> None:
    cached(tmp_path / "hub", "o/r", "x-Q4_0.gguf", "x-Q4_K_M.gguf", "mm.gguf")
    assert "fits 2 downloaded files of o/r: x-Q4_0.gguf, x-Q4_K_M.gguf" in refusal(write(tmp_path, HUB)).found


def test_a_file_of_an_older_snapshot_is_found_but_not_against_a_pinned_revision(tmp_path: Path) -> None:
    old = cached(tmp_path / "hub", "o/r", "x-Q4_0.gguf", commit="0ld")
    new = cached(tmp_path / "hub", "o/r", "mm.gguf", commit="new")
    (member,) = load_pool(write(tmp_path, HUB)).members
    assert (member.model, member.projector) == (old / "x-Q4_0.gguf", new / "mm.gguf")
    pinned = write(tmp_path, HUB + 'revision = "0ld"\n')
    (member,) = find_pool(pinned).members
    assert member.locate()[1] == ("mm.gguf",)


def test_files_of_members_left_out_may_be_absent(tmp_path: Path) -> None:
    path = write(tmp_path, HUB.replace('["m"]', '["m", "a"]') + '[models.a]\nmodel = "a.gguf"\n')
    assert [member.name for member in load_pool(path, ["a"]).members] == ["a"]


def test_a_calibration_that_is_not_placed_lies_with_the_users_data(tmp_path: Path) -> None:
    assert find_pool(write(tmp_path, GOOD)).calibration == tmp_path / "data" / "calibration" / "p"
