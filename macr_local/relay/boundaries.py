"""Where a sentence or a word ends, as the text and the piece that follows show."""

from __future__ import annotations

import re
import unicodedata

_CLOSERS = "\"'”’»)\\]*_」』】〉》）"
_LATIN_END = re.compile(rf"[.!?…][{_CLOSERS}]*$")
_CJK_END = re.compile(rf"[。！？｡][{_CLOSERS}]*$")
_NOT_AFTER_CJK = re.compile(rf"[.!?…。！？｡{_CLOSERS}\s]")


def begins_sentence(written: bytes, piece: bytes) -> bool:
    """Whether a sentence ends where ``written`` ends, as the piece that follows shows.

    ``.``, ``!``, ``?`` or an ellipsis, with closing quotes and brackets, ends a sentence when white space
    follows: at the end of what is written, or at the beginning of the piece. A tokenizer puts the space
    before the next word into that word's token, so the end of a sentence often shows only there. The CJK
    full stop, exclamation and question mark need no space; the piece must not be a part of the same ending.
    The piece belongs to the next sentence. A piece that holds both an end and a beginning is passed over.
    """
    text = written.decode("utf-8")
    after = piece.decode("utf-8", "ignore")
    if not after:
        return False
    ended = text.rstrip()
    if len(ended) < len(text):
        return bool((_LATIN_END.search(ended) or _CJK_END.search(ended)) and not after[:1].isspace())
    if _LATIN_END.search(text):
        return after[:1].isspace()
    return bool(_CJK_END.search(text)) and not _NOT_AFTER_CJK.match(after)


_SPACELESS = re.compile(
    "["
    "\u0e00-\u0eff"  # Thai, Lao
    "\u1000-\u109f\ua9e0-\ua9ff\uaa60-\uaa7f"  # Burmese, Shan and their neighbours
    "\u1780-\u17ff"  # Khmer
    "\u1950-\u19df\u1a20-\u1aaf\uaa80-\uaadf\U00011700-\U0001174f"  # the Tai scripts, Ahom
    "\u1b00-\u1b7f\ua980-\ua9df"  # Balinese, Javanese
    "\u3005-\u3007\u3021-\u3029\u3031-\u303c"  # ideographic iteration marks and numerals
    "\u3040-\u312f\u31a0-\u31bf\u31f0-\u31ff\uff66-\uff9f\U0001aff0-\U0001b16f"  # kana, bopomofo
    "\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"  # ideographs, also those beyond the first plane
    "\ua000-\ua4cf\U00016fe0-\U00018d8f\U0001b170-\U0001b2ff"  # Yi, Tangut, Khitan, Nushu
    "]"
)
"""Scripts written without spaces between words: any of their letters may begin one.

They are those whose lines Unicode (UAX #14) breaks by a dictionary, at a syllable, or at any character, not
at a space. Hangul and Tibetan, which separate their words or syllables, are not among them.
"""
_IN_WORD = re.compile(r"['’]?\w")


def goes_on(written: bytes, piece: bytes) -> bool:
    """Whether a piece goes on with the word that ``written`` ends in the middle of.

    Letters, digits and their marks make a word, and an apostrophe between two of them.
    """
    text = written.decode("utf-8")
    after = piece.decode("utf-8", "ignore")
    if not text or not after or _SPACELESS.match(text[-1]) or _SPACELESS.match(after[0]):
        return False
    if not _is_letter(text[-1]):
        return False
    return bool(_IN_WORD.match(after)) or unicodedata.category(after[0]).startswith("M")


def _is_letter(character: str) -> bool:
    return character.isalnum() or character == "_" or unicodedata.category(character).startswith("M")
