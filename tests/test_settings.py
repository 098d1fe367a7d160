"""Settings that no relay could follow are refused where they are made, with what may be said instead."""

from __future__ import annotations

import json
import math
from dataclasses import asdict, replace
from typing import Any

import pytest
from click.testing import CliRunner

from macr_local.cli.main import cli
from macr_local.errors import ConfigError
from macr_local.settings import RelaySettings, Sampling

NO_NUMBER: tuple[Any, ...] = (True, "1", None, b"1", [1], 1j, math.nan, math.inf, -math.inf, 10**400)
REALS = ("threshold", "hysteresis", "deadline", "temperature", "top_p", "min_p", "repeat_penalty")
WHOLES = ("window", "cooldown", "max_relays", "max_tokens", "seed", "top_k", "repeat_last_n")
NONE_IS_A_VALUE = ("deadline", "max_relays")


def made(name: str, value: Any) -> Sampling | RelaySettings:
    return Sampling(**{name: value}) if hasattr(Sampling(), name) else RelaySettings(**{name: value})


@pytest.mark.parametrize("value", NO_NUMBER, ids=lambda value: repr(value)[:8])
@pytest.mark.parametrize("name", REALS + WHOLES)
def test_what_is_no_finite_number_is_refused_by_name(name: str, value: Any) -> None:
    if value is None and name in NONE_IS_A_VALUE:
        assert getattr(made(name, value), name) is None
        return
    with pytest.raises(ConfigError, match=f"^{name} is ") as raised:
        made(name, value)
    assert raised.value.fix.startswith("Use ")
    assert len(str(raised.value)) < 200


@pytest.mark.parametrize("name", WHOLES)
def test_a_count_is_a_whole_number(name: str) -> None:
    with pytest.raises(ConfigError, match=rf"{name} is 2\.0"):
        made(name, 2.0)
    assert getattr(made(name, 2), name) == 2


@pytest.mark.parametrize(
    ("name", "inside", "outside"),
    [
        ("temperature", (0, 1e-300, 100), (-1e-300, 100.001)),
        ("top_p", (1e-300, 1), (0, 1.001)),
        ("min_p", (0, 0.999), (-0.1, 1)),
        ("repeat_penalty", (0.01, 100), (0, 1e-300, 0.009, 1e300)),
        ("top_k", (0, 2**31 - 1), (-1, 2**31)),
        ("window", (1,), (0, 10**30)),
        ("seed", (-(2**63), 2**64 - 1), (2**64,)),
        ("threshold", (-1e300, 1e300), ()),
        ("hysteresis", (0,), (-0.1,)),
        ("deadline", (1e-9,), (0, -1)),
    ],
)
def test_bounds_are_where_they_are_said_to_be(
    name: str, inside: tuple[float, ...], outside: tuple[float, ...]
) -> None:
    for value in inside:
        assert getattr(made(name, value), name) == value
    for value in outside:
        with pytest.raises(ConfigError, match=f"^{name} is "):
            made(name, value)


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("keep_trial", (1, None, "yes")),
        ("prune", (0, "false")),
        ("trigger", ("always", None, ["never"])),
        ("selection", ("worst", 1)),
        ("bids", ("both", True)),
        ("initiation", ("", None, 3, "\udce9")),
        ("stop", ("END", b"END", None, 3, ("",), ("a", 1), ("\ud800",))),
        ("sampling", (None, {"temperature": 1.0})),
    ],
)
def test_other_kinds_are_refused_by_name(name: str, values: tuple[Any, ...]) -> None:
    for value in values:
        with pytest.raises(ConfigError, match=f"^{name} is "):
            made(name, value)


def test_the_same_number_is_the_same_setting_however_it_is_written() -> None:
    assert json.dumps(asdict(Sampling(temperature=1))) == json.dumps(asdict(Sampling(temperature=1.0)))
    assert RelaySettings(stop=["a", "b"]) == RelaySettings(stop=("a", "b"))  # type: ignore[arg-type]
    assert hash(replace(RelaySettings(), stop=["a"]))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "option",
    ["--temperature=inf", "--repeat-penalty=1e300", "--repeat-penalty=1e-300", "--threshold=nan",
     "--hysteresis=inf", "--deadline=nan", "--seed=99999999999999999999999"],
)  # fmt: skip
def test_the_command_line_says_so_before_anything_is_loaded(option: str) -> None:
    result = CliRunner().invoke(cli, ["ask", "--pool", "tiny", option, "what is it?"])
    assert result.exit_code == 4
    assert option[2:].split("=")[0].replace("-", "_") in result.stderr
    assert result.stdout == ""
