"""The pixels that a view has drawn, and the colours that numbers should have there."""

from __future__ import annotations

import io

import numpy as np
import numpy.typing as npt
from PIL import Image
from playwright.sync_api import Locator, Page

from gptviz.figures.kit import theme

# How far a colour may be from the one of the scale, of 255: both are rounded.
ROUNDING = 4


def pixels(canvas: Locator) -> npt.NDArray[np.uint8]:
    """The pixels of a canvas [row, column, 4]: red, green, blue, and how opaque each is."""
    height, width, *numbers = canvas.evaluate(
        "one => [one.height, one.width, ...one.getContext('2d').getImageData(0, 0, one.width, "
        "one.height).data]"
    )
    return np.array(numbers, np.uint8).reshape(height, width, 4)


def screenshot(page: Page, box: dict[str, float]) -> npt.NDArray[np.float64]:
    """What is seen on a part of the page [row, column, 3]."""
    return np.asarray(Image.open(io.BytesIO(page.screenshot(clip=box))).convert("RGB"), float)


def colours(places: npt.ArrayLike, colour: str, *, dark: bool = False) -> npt.NDArray[np.float64]:
    """The colours of places on a role's scale for 0 … 1 [..., 3], each 0 … 255; NaN where the place
    is NaN.
    """
    stops = theme.sequential(colour, theme.DARK if dark else theme.LIGHT)
    at = [place for place, _ in stops]
    return np.stack(
        [np.interp(places, at, [int(stop[i : i + 2], 16) for _, stop in stops]) for i in (1, 3, 5)],
        axis=-1,
    )


def check_pixels(
    canvas: Locator, places: npt.ArrayLike, colour: str, *, dark: bool = False
) -> None:
    """Each pixel of the canvas has the colour of its place [row, column] on a role's scale for 0 …
    1; where that is NaN it is blank.
    """
    drawn = pixels(canvas)
    blank = np.isnan(places)
    np.testing.assert_array_equal(drawn[..., 3], np.where(blank, 0, 255))
    expected = colours(places, colour, dark=dark)
    np.testing.assert_allclose(drawn[~blank][:, :3], expected[~blank], rtol=0, atol=ROUNDING)
