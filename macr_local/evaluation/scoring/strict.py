"""Our own reading: the place that is marked as the result, and nothing that is not certain."""

from __future__ import annotations

from macr_local.evaluation.item import Item
from macr_local.evaluation.score import Score
from macr_local.evaluation.scoring import values
from macr_local.evaluation.scoring.reading import cue, plain, spoken


def score(item: Item, text: str) -> Score:
    """Judge an answer.

    Thoughts are left out; of the rest, the last place that is marked as the result is read, or else the last
    line, as the kind of answer demands. Nothing is guessed: what names two options is unread.

    Returns:
        The rule is the mark that was found ("boxed", "tag", "answer-line", "answer-is", "last-line",
        "first-line"), or why nothing was read: "empty", "unfinished-thought", or the mark and "-unread".
    """
    said = spoken(text)
    if said is None:
        return Score(False, None, "unfinished-thought")
    place = cue(said)
    if place is None:
        return Score(False, None, "empty")
    found = read(item, place.text)
    if found is None and place.rule == "last-line" and (found := _first(item, said)) is not None:
        return Score(_right(item, found), found, "first-line")
    if found is None:
        return Score(False, None, f"{place.rule}-unread")
    return Score(_right(item, found), found, place.rule)


def read(item: Item, said: str) -> str | None:
    """What stands in the place of the result, as the item's kind of answer is compared."""
    match item.answer_type:
        case "mcq":
            return values.letter(said, item.options)
        case "letters":
            return values.letters(said)
        case "yesno":
            return values.yes_or_no(said)
        case "int" | "float":
            number = values.number(said)
            precision = item.precision if item.answer_type == "float" else None
            return None if number is None else values.rounded(number, precision)
        case "list":
            found = values.items(said)
            return None if found is None else str(found)
        case "text":
            return values.words(said)


def gold(item: Item) -> str | None:
    """The right answer, as it is compared."""
    if item.answer_type == "mcq":
        return item.answer.strip().upper()
    return read(item, item.answer)


def _right(item: Item, found: str) -> bool:
    wanted = gold(item)
    if item.answer_type == "mcq" and wanted is not None and wanted in item.options:
        return item.options.get(found) == item.options[wanted]  # some data sets have an option twice
    return found == wanted


def _first(item: Item, said: str) -> str | None:
    """A letter, or yes or no, alone in the first line, with an explanation behind it."""
    first = next((plain(line) for line in said.splitlines() if plain(line)), "")
    alone = len(first.split()) == 1 and item.answer_type in ("mcq", "yesno")
    return read(item, first) if alone else None
