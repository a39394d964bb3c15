"""Is this file a whole 8-bit picture of the right size? Used by the checks and, at every read, by the loader."""

import io
import struct
from pathlib import Path
from typing import NamedTuple

from PIL import Image

from lvit_dense.datasets.checks.finding import DataError, Finding

# Modes that are read as 8-bit RGB without loss of brightness: grey, palette, with alpha, CMYK.
EIGHT_BIT_MODES = frozenset({"1", "L", "LA", "P", "PA", "RGB", "RGBA", "RGBX", "CMYK", "YCbCr"})
# What Pillow raises for files that are broken in one way or another.
DECODE_ERRORS = (OSError, SyntaxError, ValueError, EOFError, struct.error, Image.DecompressionBombError)
_ORIENTATION = 0x0112
_ASK_FOR_NEW_COPY = "fetch the file again, or leave it out with --skip-bad"


class Header(NamedTuple):
    """Facts from a picture's first bytes; width and height in pixels as it is shown, after its EXIF orientation."""

    width: int
    height: int
    mode: str
    orientation: int


def read_header(file: str, content: bytes) -> Header:
    """Look at a picture without decoding it.

    Args:
        file: its name, for messages.

    Raises:
        DataError: empty, no picture, or more than 8 bits per channel.
    """
    if not content:
        raise _bad("empty-file", file, "0 bytes", "a picture", _ASK_FOR_NEW_COPY)
    try:
        picture = Image.open(io.BytesIO(content))
    except DECODE_ERRORS as error:
        value = (
            f"{len(content)} bytes that begin with {content[:12]!r} are no readable picture ({type(error).__name__})"
        )
        expected = "JPEG, PNG or another format that Pillow reads"
        raise _bad("undecodable", file, value, expected, _ASK_FOR_NEW_COPY) from error
    raw = picture.tile[0][3] if picture.tile else ""
    raw_mode = raw if isinstance(raw, str) else str(raw[0]) if raw else ""
    if picture.mode not in EIGHT_BIT_MODES or ";16" in raw_mode:
        value = f"{picture.format} with mode {picture.mode}{f' ({raw_mode})' if ';16' in raw_mode else ''}"
        cure = "convert it to 8 bits with the scaling that suits the sensor; none is guessed here"
        raise _bad("deep-picture", file, value, "8 bits per channel", cure)
    # getexif of a PNG without EXIF data would decode the whole picture
    orientation = int(picture.getexif().get(_ORIENTATION, 1) or 1) if "exif" in picture.info else 1
    width, height = picture.size[::-1] if orientation >= 5 else picture.size
    return Header(width, height, picture.mode, orientation)


def is_cut_off(content: bytes) -> bool:
    """Whether a JPEG or PNG lacks its end mark after its last data (decoders fill the rest with grey, silently).

    0xFFDA begins and 0xFFD9 ends the data of a JPEG, and neither can occur within it.
    """
    if content[:2] == b"\xff\xd8":
        return content.rfind(b"\xff\xd9") < content.rfind(b"\xff\xda")
    return content[:4] == b"\x89PNG" and b"IEND" not in content[-64:]


def check_whole(file: str, content: bytes) -> None:
    """Raise DataError for a picture that ends early; one that only lacks its end mark passes."""
    if not is_cut_off(content):
        return
    try:
        Image.open(io.BytesIO(content)).load()
    except DECODE_ERRORS as error:
        value = f"the picture ends early after {len(content)} bytes ({error})"
        raise _bad("cut-off", file, value, "a whole picture", _ASK_FOR_NEW_COPY) from error


def check_picture(file: str, size: tuple[int, int] | None = None, owner: str = "") -> list[Finding]:
    """Open and decode one picture.

    Args:
        size: ``(width, height)`` that ``owner`` states for it.
        owner: who states it, such as the JSON's name.
    """
    try:
        content = Path(file).read_bytes()
    except OSError as error:
        return [missing_file(file, error)]
    try:
        header = read_header(file, content)
        check_whole(file, content)
        Image.open(io.BytesIO(content)).load()
    except DataError as error:
        return error.findings
    except DECODE_ERRORS as error:
        return _bad("undecodable", file, str(error), "a picture that decodes", _ASK_FOR_NEW_COPY).findings
    findings = []
    if size is not None and size != (header.width, header.height):
        turned = f", turned by its EXIF orientation {header.orientation}" if header.orientation > 1 else ""
        value = f"the picture is {header.width}x{header.height}{turned}"
        cure = "correct the sizes and boxes, or save the picture upright without EXIF orientation"
        findings += _bad("size-differs", file, value, f"{size[0]}x{size[1]} as {owner} says", cure).findings
    if header.mode != "RGB":
        value = f"mode {header.mode}"
        findings.append(Finding("colour-mode", file, value, "RGB", "Nothing to do: it is read as RGB", fatal=False))
    return findings


def missing_file(file: str, error: OSError | None = None) -> Finding:
    """The finding for a picture that is not there or cannot be opened."""
    why = (error.strerror or str(error)) if error is not None else "no such file"
    cure = "Complete the download, correct data_root or data_prefix, or leave it out with --skip-bad"
    return Finding("missing-file", file, why.lower(), "a readable file", cure, picture=file)


def _bad(kind: str, file: str, value: str, expected: str, cure: str) -> DataError:
    return DataError([Finding(kind, file, value, expected, cure[0].upper() + cure[1:], picture=file)])
