"""Model and projector files, checked before llama.cpp sees them.

llama.cpp answers most damage with a null pointer and some with the end of the process. Here each kind of
damage, mix-up and omission has its own message, and the header decides: no weights are read, except to hash
them where the pool file gives a sha256.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from macr_local.config import MemberSpec
from macr_local.engine import encoder
from macr_local.engine.ggml import FILE_TYPES
from macr_local.engine.gguf import read_header, shown
from macr_local.engine.hashes import model_sha256, sha256_of
from macr_local.engine.header import Header, Strings, TensorInfo
from macr_local.engine.projectors import (
    PROJECTOR_TYPES,
    embedding_width,
    input_width,
    missing_markers,
    projector_type,
)
from macr_local.errors import ModelFileError

__all__ = ["Header", "Strings", "TensorInfo", "check_model", "check_projector", "quantization", "read_header"]

_SPLIT_NAME = re.compile(r"^(?P<stem>.+)-(?P<number>\d{5})-of-(?P<count>\d{5})\.gguf$")
_OTHER_PROJECTOR = "Use the projector that was made for this model"


def check_model(spec: MemberSpec) -> Header:
    """Check a member's language model.

    Returns:
        Its header, with those of its siblings where the model is split into several files.

    Raises:
        ModelFileError: The file is missing, damaged or cut; it is a projector or a bare vocabulary; a sibling
            is missing; the architecture or the sha256 is not what the specification says; or its vocabulary
            would end the process.
    """
    with _naming(spec):
        header = read_header(spec.model)
        if header.architecture == "clip" or projector_type(header):
            raise ModelFileError(
                f"{spec.model} is a projector ({projector_type(header) or 'clip'}), not a language model",
                "Name the language model as the model, and this file as its projector",
            )
        if not header.architecture:
            raise ModelFileError(f"{spec.model} does not say of which architecture it is", "Use another file")
        if spec.architecture is not None and header.architecture != spec.architecture:
            raise ModelFileError(
                f"{spec.model} is of the architecture {shown(header.architecture)}, "
                f'and the pool file wants "{spec.architecture}"',
                "Name the right file, or correct the architecture in the pool file",
            )
        header = _with_siblings(header)
        if not header.by_name:
            raise ModelFileError(f"{spec.model} holds a vocabulary without weights", "Use the whole model")
        _check_vocabulary(header)
        if spec.model_sha256 is not None:
            _same_sha256(spec.model, model_sha256(header), spec.model_sha256)
        return header


def check_projector(spec: MemberSpec, model: Header) -> Header | None:
    """Check a member's projector, alone and against the model it is to see for.

    Args:
        spec: The member.
        model: The header that `check_model` gave.

    Returns:
        The projector's header; None where the member has no projector.

    Raises:
        ModelFileError: The file is missing, damaged or cut; it is no vision projector, of an unknown type, or
            not of the type that the specification says; it belongs to another model (its mark tokens are not
            in the vocabulary, or its embeddings have another width); or its sha256 is another.
    """
    if spec.projector is None:
        return None
    with _naming(spec):
        header = read_header(spec.projector)
        kind = _vision_type(header)
        if spec.projector_type is not None and kind != spec.projector_type:
            raise ModelFileError(
                f'{spec.projector} is a projector of type "{kind}", '
                f'and the pool file wants "{spec.projector_type}"',
                "Name the projector that was made for this model, or correct projector_type in the pool file",
            )
        _check_pair(header, kind, model)
        if spec.projector_sha256 is not None:
            # The very file that somebody vouches for is not damaged, whatever is thought of its shapes.
            _same_sha256(spec.projector, sha256_of(spec.projector), spec.projector_sha256)
        elif (fault := encoder.fault(header, kind)) is not None:
            raise ModelFileError(
                f'{spec.projector} (of type "{kind}") is damaged or unknown to this llama.cpp: it {fault}',
                "Download it again and compare its sha256 with the publisher's; if they agree, give it as "
                "projector_sha256 in the pool file, and its shapes are not checked",
            )
        return header


def quantization(header: Header) -> str:
    """The name of a model's quantization, for instance ``Q4_K_M``.

    Where the header does not say, it is the type that most of the weights' bytes have.
    """
    kind = header.metadata.get("general.file_type")
    if isinstance(kind, int) and kind in FILE_TYPES:
        return FILE_TYPES[kind]
    bytes_of: dict[str, int] = {}
    for tensor in header.by_name.values():
        bytes_of[tensor.type] = bytes_of.get(tensor.type, 0) + tensor.size
    return max(bytes_of, key=lambda name: bytes_of[name], default="unknown")


@contextmanager
def _naming(spec: MemberSpec) -> Iterator[None]:
    """Put the member's name before whatever is wrong with one of its files."""
    try:
        yield
    except ModelFileError as error:
        raise ModelFileError(f"{spec.name}: {error.found}", error.fix) from None


def _with_siblings(header: Header) -> Header:
    count = header.number("split.count", 1)
    if count <= 1:
        return header
    path, number = header.path, header.number("split.no") + 1
    match = _SPLIT_NAME.match(path.name)
    if match is None or int(match["count"]) != count or int(match["number"]) != number:
        raise ModelFileError(
            f"{path} is part {number} of {count} of a split model, and its name does not say so",
            f"Rename the parts to NAME-00001-of-{count:05}.gguf and so on, as they were published",
        )
    parts = [path.with_name(f"{match['stem']}-{part:05}-of-{count:05}.gguf") for part in range(1, count + 1)]
    if number != 1:
        raise ModelFileError(f"{path} is part {number} of {count} of a split model", f"Name {parts[0].name}")
    siblings = []
    for part, sibling in enumerate(parts[1:], 2):
        if not sibling.exists():
            raise ModelFileError(
                f"{path} is part 1 of {count} of a split model, and part {part} is missing ({sibling.name})",
                "Download all parts into the same folder",
            )
        siblings.append(read_header(sibling))
        if siblings[-1].number("split.no", -1) != part - 1:
            raise ModelFileError(f"{sibling} is not part {part} of {path.name}", "Download the parts again")
    return replace(header, siblings=tuple(siblings))


def _check_vocabulary(header: Header) -> None:
    path, tokens = header.path, header.tokens
    if tokens is None or not len(tokens):
        raise ModelFileError(f"{path} has no vocabulary", "Use a text model")
    for key, what in (("scores", "scores"), ("token_type", "token types")):
        values = header.metadata.get(f"tokenizer.ggml.{key}")
        if values is not None and (not hasattr(values, "__len__") or len(values) < len(tokens)):
            found = len(values) if hasattr(values, "__len__") else 1
            raise ModelFileError(
                f"{path} is damaged: {len(tokens):,} tokens and {found:,} {what}", "Download it again"
            )
    if (pair := tokens.repeated) is not None:
        text = shown(tokens[pair[0]].decode("utf-8", "backslashreplace"))
        raise ModelFileError(
            f"{path} is damaged: the tokens {pair[0]:,} and {pair[1]:,} are the same text {text}",
            "Download it again and compare its sha256 with the publisher's",
        )


def _vision_type(header: Header) -> str:
    if header.architecture != "clip":
        raise ModelFileError(
            f"{header.path} is not a projector but a model of the architecture {shown(header.architecture)}",
            "Name the mmproj file as the projector",
        )
    kind = projector_type(header)
    if header.metadata.get("clip.has_vision_encoder") is not True:
        raise ModelFileError(
            f"{header.path} is a projector ({shown(kind)}) without a vision encoder", "Use a vision projector"
        )
    if kind not in PROJECTOR_TYPES:
        raise ModelFileError(
            f"{header.path} is a projector of type {shown(kind)}, which this llama.cpp does not know",
            "Use a newer macr-local, or another projector",
        )
    return kind


def _check_pair(projector: Header, kind: str, model: Header) -> None:
    if missing := missing_markers(kind, model):
        raise ModelFileError(
            f'{projector.path} is a projector of type "{kind}", which marks images by {_list(missing)}, and '
            f"{model.path} ({model.architecture}) does not have "
            + ("this token" if len(missing) == 1 else "these tokens"),
            _OTHER_PROJECTOR,
        )
    made, taken = embedding_width(kind, projector), input_width(model)
    if made is not None and taken is not None and made != taken:
        raise ModelFileError(
            f'{projector.path} (of type "{kind}") makes embeddings of {made:,} numbers, '
            f"and {model.path} ({model.architecture}) takes {taken:,}",
            _OTHER_PROJECTOR,
        )


def _list(texts: tuple[str, ...]) -> str:
    return " and ".join((", ".join(texts[:-1]), texts[-1])) if len(texts) > 1 else texts[0]


def _same_sha256(path: Path, found: str, expected: str) -> None:
    if found != expected:
        raise ModelFileError(
            f"{path} has the sha256 {found[:12]}..., and was published with {expected[:12]}...",
            "Download it again (macr-local download), or correct the sha256 if the pool file gives it",
        )
