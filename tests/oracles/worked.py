"""Questions about scenes, read and answered anew from their English alone; worked answers, read naively.

Nothing here knows how the package words or works out anything: sentences are taken apart by what they mean.
"""

from __future__ import annotations

import re
from collections.abc import Generator, Sequence
from dataclasses import dataclass, field

Things = dict[str, dict[str, str]]
"""What is at each place that is not empty: size, color, shape and digit, by the place's name."""

ATTRIBUTES = ("size", "color", "shape", "digit")
ROW_OF = {"top": ("top left", "top right"), "bottom": ("bottom left", "bottom right")}
COLUMN_OF = {"left": ("top left", "bottom left"), "right": ("top right", "bottom right")}
PLACES = (*ROW_OF["top"], *ROW_OF["bottom"])
LINES = {"top row": ROW_OF["top"], "bottom row": ROW_OF["bottom"]}
LINES |= {"left column": COLUMN_OF["left"], "right column": COLUMN_OF["right"]}
BESIDE = {
    ("top left", "right"): "top right",
    ("top left", "below"): "bottom left",
    ("top right", "left"): "top left",
    ("top right", "below"): "bottom right",
    ("bottom left", "right"): "bottom right",
    ("bottom left", "above"): "top left",
    ("bottom right", "left"): "bottom left",
    ("bottom right", "above"): "top right",
}
ENGLISH = [
    *("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven"),
    *("twelve", "thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen", "twenty"),
]
COLORS = ["red", "green", "blue", "yellow", "purple", "white"]
SHAPES = ["circle", "square", "triangle", "cross"]
WORDS = {"size": ["small", "large"], "color": COLORS, "shape": SHAPES, "digit": ENGLISH[1:6]}


def things(scene: Sequence[object]) -> Things:
    """A scene as plain words."""
    return {
        name: {attribute: getattr(thing, attribute) for attribute in ATTRIBUTES}
        for name, thing in zip(PLACES, scene, strict=True)
        if thing is not None
    }


# Questions.


@dataclass(frozen=True)
class Asked:
    """What a question asks for."""

    family: str
    first: dict[str, str] = field(default_factory=dict)
    second: dict[str, str] = field(default_factory=dict)
    places: tuple[str, ...] = PLACES
    side: str = ""
    attribute: str = ""


_C, _S, _Z = "|".join(COLORS), "|".join(SHAPES), "small|large"
_MANY = rf"(?:(?:{_Z}) )?(?:(?:{_C}) )?(?:circles|squares|triangles|crosses|objects)"
_SENTENCES = {
    "count": rf"how many (?P<first>{_MANY}) are there\?",
    "exist": rf"is there an? (?P<first>(?:{_C}) (?:{_S}))\?",
    "none": rf"is there no (?P<first>(?:{_C}) (?:{_S}))\?",
    "row": r"what is in the (?P<line>top row|bottom row|left column|right column)\?",
    "compare": rf"are there more (?P<first>{_MANY}) than (?P<second>{_MANY})\?",
    "sum": rf"what is the sum of the digits on the (?P<first>{_MANY})\?",
    "largest": r"which object has the largest digit\?",
    "side": rf"what (?P<what>color|shape) is (?P<side>left of|right of|above|below) "
    rf"the (?P<first>(?:{_C}) object|{_S})\?",
}


def asked(question: str) -> Asked:
    """Take a question apart; only whole sentences of one family are understood."""
    found = [(name, m) for name, sentence in _SENTENCES.items() if (m := re.fullmatch(sentence, question))]
    assert len(found) == 1, f"{len(found)} ways to read: {question}"
    family, match = found[0]
    parts = match.groupdict()
    return Asked(
        family,
        _named(parts.get("first", "")),
        _named(parts.get("second", "")),
        LINES[parts["line"]] if family == "row" else PLACES,
        parts.get("side", "").removesuffix(" of"),
        parts.get("what", ""),
    )


def _named(phrase: str) -> dict[str, str]:
    found = {}
    for word in phrase.split():
        singular = {"crosses": "cross"}.get(word, word.removesuffix("s") if word != "cross" else word)
        for attribute, words in WORDS.items():
            if singular in words:
                found[attribute] = singular
    return found


def is_one(thing: dict[str, str], named: dict[str, str]) -> bool:
    return all(thing[attribute] == value for attribute, value in named.items())


def solved(question: str, scene: Things) -> str:
    """The right answer, by looking at everything."""
    ask = asked(question)
    those = [thing for thing in scene.values() if is_one(thing, ask.first)]
    match ask.family:
        case "count":
            return ENGLISH[len(those)]
        case "exist":
            return "yes" if those else "no"
        case "none":
            return "no" if those else "yes"
        case "row":
            said = [scene[place] for place in ask.places if place in scene]
            return ", ".join(f"{t['color']} {t['shape']} {t['digit']}" for t in said) or "nothing"
        case "compare":
            others = [thing for thing in scene.values() if is_one(thing, ask.second)]
            return "yes" if len(those) > len(others) else "no"
        case "sum":
            return ENGLISH[sum(ENGLISH.index(thing["digit"]) for thing in those)]
        case "largest":
            by_digit = sorted(scene.values(), key=lambda thing: ENGLISH.index(thing["digit"]))
            assert by_digit[-1]["digit"] != by_digit[-2]["digit"], "the question has no one answer"
            return f"{by_digit[-1]['color']} {by_digit[-1]['shape']}"
        case "side":
            (here,) = [place for place, thing in scene.items() if is_one(thing, ask.first)]
            there = BESIDE.get((here, ask.side))
            return scene[there][ask.attribute] if there in scene else "nothing"
    raise AssertionError(ask.family)


# Worked answers.

_MARKS = {
    "size": "the size is|size|being",
    "color": "the color is|color|paint",
    "shape": "the shape is|shape|form",
    "digit": "the digit is|digit|mark",
    "therefore": "so it is|that makes|therefore",
    "flag": "match|that fits|so",
    "tally": "tally|the score is|now stands",
    "versus": "against|over|to(?! its)",
    "total": "total|which gives|sum",
    "most": "the most is|at best|most",
    "left": "left of it|to its left is|going left",
    "right": "right of it|to its right is|going right",
    "above": "above it|higher up is|going up",
    "below": "below it|lower down is|going down",
}
_VALUE = "|".join([*PLACES, *ENGLISH, *COLORS, *SHAPES, "small", "large", "yes", "no", "nothing"])
_STEP = re.compile(
    "|".join(rf"(?P<{name}>\b(?:{words})\b)" for name, words in _MARKS.items())
    + rf"|(?P<value>\b(?:{_VALUE})\b)"
)
_GLUE = re.compile(r"\b(?:and|with|at the|now)\b|[,;:.]|</think>|\s")


@dataclass(frozen=True)
class Statement:
    """A value, what the words before it say that it is (empty: nothing does), and where it ends."""

    about: str
    value: str
    start: int
    end: int


def statements(text: str) -> list[Statement]:
    """What a worked answer states before its last line; every word of it must be understood."""
    body = text.partition("\nAnswer:")[0]
    found, about = [], ""
    for match in _STEP.finditer(body):
        kind = match.lastgroup
        if kind == "value":
            found.append(Statement(about, match.group(), match.start(), match.end()))
            about = ""
        else:
            about = str(kind)
    left = _GLUE.sub("", _STEP.sub("", body))
    assert not left, f"not understood: {left!r} in {body!r}"
    return found


Step = tuple[str, str, tuple[str, ...]]
"""The kind of a value, the one that is right by what was said so far, and what may stand before it."""


def working(question: str, scene: Things) -> Generator[Step, str, str]:
    """Work a question through, value by value; send what was said at each, and the answer comes of that.

    What is seen is right if it is there; what follows is right if it follows from what was said.
    """
    ask = asked(question)
    family, seen = ask.family, dict[str, dict[str, str]]()
    named = [attribute for attribute in ATTRIBUTES if attribute in ask.first]
    look = {"row": ["color", "shape", "digit"], "largest": ["digit", "color", "shape"]}.get(family, named)
    look = ["color", "shape"] if family in ("side", "compare") else look
    wanted: list[str] = []
    scores, total, most = ["zero", "zero"], "zero", "zero"
    for place in (place for place in ask.places if place in scene):
        yield "place", place, ("",)
        here = seen[place] = {}
        for attribute in look:
            here[attribute] = yield attribute, scene[place][attribute], (attribute, "")
        if family in ("count", "exist", "none", "side", "sum"):
            said = yield "flag", "yes" if is_one(here, ask.first) else "no", ("flag",)
            if said == "yes":
                wanted.append(place)
                if family == "sum":
                    digit = yield "digit", scene[place]["digit"], ("digit", "")
                    total = yield "total", _plus(total, digit), ("total",)
        elif family == "compare":
            for number, named_here in enumerate((ask.first, ask.second)):
                more = "one" if is_one(here, named_here) else "zero"
                marks = ("tally",) if number == 0 else ("versus",)
                scores[number] = yield "tally", _plus(scores[number], more), marks
        elif family == "largest":
            most = yield "most", max(most, here["digit"], key=ENGLISH.index), ("most",)
    if family == "row":
        return ", ".join(f"{t['color']} {t['shape']} {t['digit']}" for t in seen.values()) or "nothing"
    if family == "count":
        return (yield "count", ENGLISH[len(wanted)], ("therefore",))
    if family == "sum":
        return (yield "copy", total, ("therefore",))
    if family == "side":
        there = BESIDE.get((wanted[0], ask.side)) if wanted else None
        if there is not None:
            yield "place", there, (ask.side,)
        if there in seen:
            return (yield "copy", seen[there][ask.attribute], (ask.attribute,))
        return (yield "copy", "nothing", (ask.side, ""))
    if family == "largest":
        best = next((t for t in seen.values() if t["digit"] == most), None)
        if best is None:  # Nothing has the number that was said; the largest that was.
            best = max(seen.values(), key=lambda thing: ENGLISH.index(thing["digit"]))
        yield "copy", best["digit"], ("therefore",)
        color = yield "copy", best["color"], ("color",)
        return f"{color} " + (yield "copy", best["shape"], ("shape",))
    if family == "compare":
        holds = ENGLISH.index(scores[0]) > ENGLISH.index(scores[1])
    else:
        holds = bool(wanted) != (family == "none")
    return (yield "verdict", "yes" if holds else "no", ("therefore",))


def _plus(first: str, second: str) -> str:
    """There is no word above twenty."""
    return ENGLISH[min(20, ENGLISH.index(first) + ENGLISH.index(second))]


@dataclass(frozen=True)
class Checked:
    """One statement of a worked answer, with the kind and the value that belong there."""

    kind: str
    said: str
    right: str
    start: int
    end: int


def checked(text: str, question: str, scene: Things) -> tuple[list[Checked], str]:
    """Follow a whole worked answer: each statement with what is right there, and the answer that follows."""
    steps, done = working(question, scene), []
    said: str | None = None
    for statement in [*statements(text), None]:
        try:
            kind, right, marks = steps.send(said)  # type: ignore[arg-type]
        except StopIteration as end:
            assert statement is None, f"too much is said: {text}"
            return done, end.value
        assert statement is not None, f"too little is said: {text}"
        assert statement.about in marks, (statement, kind, text)
        done.append(Checked(kind, statement.value, right, statement.start, statement.end))
        said = statement.value
    raise AssertionError("unreachable")
