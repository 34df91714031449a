"""Sentences on how images were converted."""

from collections.abc import Mapping

from unweave.data.user.image_io import MAX_16_BIT, Preprocessing
from unweave.data.user.wording import count_text

_FITS = {
    "crop": "the middle is kept; fit=pad keeps the whole image with margins, fit=stretch distorts it",
    "pad": "margins in {background} are added; fit=crop keeps the middle only, fit=stretch distorts the image",
    "stretch": "distorted to a square; fit=crop keeps the middle, fit=pad adds margins",
}
STORED_IN_COLOUR = "no image has colour, although some are stored in colour: one channel is kept"


def conversion_notes(preprocessing: Preprocessing, traits: Mapping[str, int], max_16_bit: int) -> list[str]:
    """Return one sentence for each trait that images have; `traits` has the number of images with each of them."""
    size, background = preprocessing.size, preprocessing.background
    texts = {
        "not square": ("is not square", "are not square", _FITS[preprocessing.fit].format(background=background)),
        "small": (f"is smaller than {size} pixels", f"are smaller than {size} pixels", "enlarged"),
        "transparent": ("has transparent parts", "have transparent parts", f"shown on {background}"),
        "16 bits": ("has 16 bits", "have 16 bits", depth_text(preprocessing.white, max_16_bit)),
        "frames": ("has several frames", "have several frames", "the first is used"),
        "rotated": ("is rotated", "are rotated", "turned upright, as noted by the camera"),
    }
    return [
        f"{count_text(traits[trait], one, many)}: {result}"
        for trait, (one, many, result) in texts.items()
        if traits.get(trait)
    ]


def depth_text(white: int, highest: int) -> str:
    """Say how 16-bit values are reduced to 8 bits, with a warning if all of them are dark."""
    text = f"reduced to 8, {white} is white"
    if highest and highest < white // 3:
        full = (1 << int(highest).bit_length()) - 1  # 4095 for 12 bits
        return f"{text}; but the largest value is {highest}, so images will be dark: use white={full}"
    return text


def values_note(dtype: str, white: int, highest: int) -> str:
    """Say which value of integer or boolean arrays is white; "" for bytes, of which 255 is white."""
    if dtype == "bool":
        return "True is white"
    if highest > white:
        return f"{white} and larger values are white"
    if white == 1:
        return "pixels are 0 and 1: 1 is white"
    if dtype == "uint8":
        return "" if white == 255 else f"{white} is white"
    if white == 255:
        return f"no value is above 255: 255 is white{f'; for 16 bits use white={MAX_16_BIT}' * (dtype == 'uint16')}"
    return f"16 bits are {depth_text(white, highest)}"


def channels_note(count: int, background: str, alpha: bool) -> str:
    """Say what became of the channels of arrays; "" for grey and colour."""
    if alpha:
        return f"the last of {count} channels is transparency: shown on {background}"
    return f"{count} channels are kept; use alpha=True if the last is transparency" if count in (2, 4) else ""
