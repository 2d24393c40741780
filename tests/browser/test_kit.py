"""The browser's half of what the hand-made views share, on a blank page without a server."""

from __future__ import annotations

import base64
import csv
import io
import re
from collections.abc import Iterator
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
from PIL import Image
from playwright.sync_api import Browser, Page, Route, expect

from gptviz.components import kit
from gptviz.components.kit.modules import join_modules
from gptviz.figures.kit import theme
from tests.browser.files import MENU, tool
from tests.browser.machinery import box_of
from tests.browser.pictures import faults, keep_drawing, names, unknown_to_svg_1_1, words

pytestmark = pytest.mark.browser

NASTY = [
    'a,"b"',
    "two\r\nlines",
    "שלום",
    "\u202eabc",
    "=1+1",
    "<img src=x onerror=alert(1)>",
    "",
    " ",
]


ORIGIN = "http://kit.test"
MODULES = [file.name for file in sorted(kit.FOLDER.glob("*.js"))]


def opened(page: Page, query: str = "") -> Page:
    """A page with the kit's functions as globals, from its modules as they are, and a root to put
    things in.
    """

    def answer(route: Route) -> None:
        name = route.request.url.removeprefix(f"{ORIGIN}/")
        if name in MODULES:
            route.fulfill(path=kit.FOLDER / name, content_type="text/javascript")
        else:
            route.fulfill(body='<div class="root"></div>', content_type="text/html")

    page.route(f"{ORIGIN}/**", answer)
    page.goto(f"{ORIGIN}/{query}")
    page.evaluate(
        "async (names) => { for (const name of names) Object.assign(window, await "
        "import(`/${name}`)); }",
        MODULES,
    )
    page.evaluate("window.root = document.querySelector('.root')")
    return page


@pytest.fixture(scope="module")
def page(browser: Browser) -> Iterator[Page]:
    context = browser.new_context(accept_downloads=True)
    yield opened(context.new_page())
    context.close()


def ground(page: Page, colour: str) -> None:
    page.evaluate("colour => root.style.setProperty('--st-background-color', colour)", colour)


@pytest.mark.parametrize("kind", kit.ARRAY_KINDS)
def test_the_browser_reads_the_numbers_that_were_packed(page: Page, kind: str) -> None:
    if kind == "float16":
        numbers = np.arange(65536, dtype=np.uint16).view(np.float16)  # every number there is
    elif kind.startswith("float"):
        numbers = np.random.default_rng(0).normal(size=(7, 3)).astype(kind)
    else:
        info = np.iinfo(kind)
        numbers = np.array([[info.min, 0, 1, info.max]], dtype=kind)
    packed = base64.b64encode(
        kit.pack({"name": "שלום \ud800"}, odd=np.zeros(3, np.uint8), numbers=numbers)
    ).decode()
    # At an odd place in its buffer, as a message from the server may lie.
    read = page.evaluate(
        """async (packed) => {
            const bytes = Uint8Array.from(atob(packed), (c) => c.charCodeAt(0));
            const moved = new Uint8Array(bytes.length + 1);
            moved.set(bytes, 1);
            const { name, arrays } = unpack(moved.subarray(1));
            const numbers = Array.from(arrays.numbers, (x) => (Number.isNaN(x) ? "nan" : Number.isFinite(x) ? x : String(x)));
            return { length: name.length, shape: arrays.numbers.shape, numbers };
        }""",
        packed,
    )
    assert read["length"] == 6, "a half of a pair is one character"
    assert read["shape"] == list(numbers.shape)
    found = np.array([float(str(number).replace("Infinity", "inf")) for number in read["numbers"]])
    np.testing.assert_array_equal(found, numbers.astype(np.float64).ravel())


@pytest.mark.parametrize("look", [theme.LIGHT, theme.DARK], ids=["light", "dark"])
def test_the_scale_with_two_ends_is_that_of_the_figures(page: Page, look: theme.Theme) -> None:
    ground(page, look.background)
    ours = np.array(page.evaluate("Array.from(diverging(root))")).reshape(256, 3)
    places, stops = zip(*theme.diverging(look), strict=True)
    colours = np.array([[int(stop[i : i + 2], 16) for i in (1, 3, 5)] for stop in stops])
    theirs = np.stack(
        [np.interp(np.linspace(0, 1, 256), places, channel) for channel in colours.T], axis=1
    )
    assert np.abs(ours - theirs).max() <= 1


def test_the_buttons_give_numbers_code_and_pictures(page: Page) -> None:
    page.evaluate(
        """(nasty) => root.append(tools(root, {
            name: "view",
            numbers: () => ({ columns: ["token", "p,b"], rows:
                Array.from({ length: 500 }, (_, i) => [nasty[i % nasty.length], i / 499]) }),
            code: () => "print('<b>x</b>')",
            picture: () => shape("svg", { width: 30, height: 20, viewBox: "0 0 30 20" },
                shape("rect", { width: 30, height: 20, fill: "#CC3311" }), shape("text", { y: 10 }, nasty[5])),
        }))""",
        NASTY,
    )
    tool(page, "Numbers").click()
    window = page.get_by_role("dialog", name="Numbers")
    assert window.locator("tr").count() == 201
    assert "500" in window.locator("p").inner_text()
    assert page.locator("img").count() == 0
    with page.expect_download() as download:
        window.get_by_role("button", name="Download CSV").click()
    text = Path(download.value.path()).read_bytes().decode("utf-8-sig")
    columns, *rows = csv.reader(io.StringIO(text, newline=""))
    assert columns == ["token", "p,b"]
    # A text that a spreadsheet would take for a formula has a mark before it.
    assert [row[0] for row in rows[:8]] == [
        f"'{text}" if text.startswith("=") else text for text in NASTY
    ]
    assert [float(row[1]) for row in rows] == [i / 499 for i in range(500)], (
        "numbers keep all their digits"
    )
    page.keyboard.press("Escape")
    assert page.get_by_role("dialog").count() == 0

    tool(page, "Code").click()
    assert page.get_by_role("dialog").locator("pre").inner_text() == "print('<b>x</b>')"
    page.get_by_role("dialog").get_by_role("button", name="Close").click()

    with page.expect_download() as download:
        tool(page, "SVG").click()
    drawing = ElementTree.parse(download.value.path()).getroot()
    assert drawing.tag.endswith("svg")
    assert NASTY[5] in "".join(drawing.itertext())
    keep_drawing(page)
    with page.expect_download() as download:
        tool(page, "PNG").click()
    picture = Image.open(download.value.path())
    assert picture.size == (60, 40)
    assert picture.convert("RGB").getpixel((55, 35)) == (0xCC, 0x33, 0x11)


def test_the_menu_is_walked_by_keys_and_shut_by_escape_or_a_press_beside_it_and_no_frame_cuts_it_off(
    page: Page,
) -> None:
    page.evaluate(
        """() => {
            root.style.cssText = "height: 30px; overflow: hidden; position: fixed; bottom: 0";
            root.replaceChildren(tools(root, { name: "x", code: () => "one" }));
        }"""
    )
    button = page.locator(MENU)
    menu = page.get_by_role("menu")
    items = page.get_by_role("menuitem")
    assert button.get_attribute("aria-label") == "More: Numbers, Code, PNG, SVG, Full screen"
    expect(button).to_have_attribute("aria-expanded", "false")
    button.press("Enter")
    expect(button).to_have_attribute("aria-expanded", "true")
    for key, at in (("ArrowDown", 1), ("End", 4), ("ArrowDown", 0), ("ArrowUp", 4), ("Home", 0)):
        page.keyboard.press(key)
        expect(items.nth(at)).to_be_focused()
    for item in items.all():
        box = box_of(item)
        middle = [box["x"] + box["width"] / 2, box["y"] + box["height"] / 2]
        assert item.evaluate(
            "(item, [x, y]) => document.elementFromPoint(x, y) === item", middle
        ), "it is seen and can be pressed"
    page.keyboard.press("Escape")
    expect(menu).to_be_hidden()
    expect(button).to_be_focused()
    expect(button).to_have_attribute("aria-expanded", "false")
    for shut in (
        lambda: button.click(),
        lambda: page.mouse.click(5, 5),
        lambda: page.keyboard.press("Tab"),
    ):
        button.click()
        expect(menu).to_be_visible()
        shut()
        expect(menu).to_be_hidden()
    page.evaluate("root.style.cssText = ''")


def test_the_code_is_copied_where_there_is_no_clipboard(page: Page) -> None:
    assert page.evaluate("navigator.clipboard === undefined"), "only https and localhost have one"
    page.evaluate("() => root.replaceChildren(tools(root, { name: 'x', code: () => 'one\\ntwo' }))")
    tool(page, "Code").click()
    page.get_by_role("button", name="Copy").click()
    page.get_by_role("button", name="Copied").wait_for()
    assert pasted(page) == "one\ntwo"
    page.evaluate("document.execCommand = () => false")
    page.get_by_role("button", name="Copied").click()
    page.get_by_role("button", name="Selected: press Ctrl+C").wait_for()
    assert page.evaluate("String(getSelection())") == "one\ntwo"
    page.evaluate("delete document.execCommand")
    page.keyboard.press("Escape")


def pasted(page: Page) -> str:
    """What the keys for pasting give."""
    page.evaluate(
        "() => (document.querySelector('dialog') ?? "
        "document.body).append(document.createElement('textarea'))"
    )
    field = page.locator("textarea")
    field.press("ControlOrMeta+v")
    text = field.input_value()
    field.evaluate("one => one.remove()")
    return text


def test_what_asks_the_browser_for_a_clipboard_has_one_on_a_page_from_http(
    browser: Browser,
) -> None:
    context = browser.new_context()
    page = opened(context.new_page())
    page.add_script_tag(
        content=f"{join_modules(kit.FOLDER.parent / 'page_helpers' / 'clipboard.js')}\nwindow.offer = "
        "clipboard;",
        type="module",
    )
    page.wait_for_function("() => window.offer")
    page.evaluate("offer({ root })")
    page.evaluate(
        """() => {
            const button = make("button", "", "Copy it");
            button.onclick = () => navigator.clipboard.writeText("  a\\n\\nb ").then(() => "copied", () => "not copied")
                .then((said) => { button.textContent = said; });
            root.append(button);
        }"""
    )
    page.get_by_role("button", name="Copy it").click()
    page.get_by_role("button", name="copied", exact=True).click()
    assert pasted(page) == "  a\n\nb "
    assert page.locator("pre").count() == 0
    page.evaluate("document.execCommand = () => false")
    page.get_by_role("button", name="copied").click()
    expect(page.get_by_role("dialog", name="Press Ctrl+C to copy")).to_be_visible()
    expect(page.get_by_text("not copied")).to_be_visible()
    assert page.evaluate("String(getSelection())") == "  a\n\nb "
    context.close()


def test_a_picture_that_cannot_be_made_is_reported(page: Page) -> None:
    page.evaluate(
        """() => root.replaceChildren(tools(root, {
            name: "x", picture: () => shape("svg", { width: 1e6, height: 1e6, viewBox: "0 0 9 9" }),
        }))"""
    )
    tool(page, "PNG").click()
    assert "could not make a PNG" in page.get_by_role("alert").inner_text()
    page.keyboard.press("Escape")


def test_a_table_says_what_it_is_of(page: Page) -> None:
    page.evaluate(
        "() => root.replaceChildren(tableOf({ columns: ['a', 'b'], rows: [[1, 0.12345], ['x', "
        "null]] }, 'All of it'))"
    )
    table = page.get_by_role("table", name="All of it")
    assert table.get_by_role("columnheader").all_inner_texts() == ["a", "b"]
    assert table.get_by_role("cell").all_inner_texts() == ["1", "0.123", "x", ""]


def test_chips_flow_in_words_and_are_cut_off_anywhere(page: Page) -> None:
    labels = ["To", "␣", "be,", "⏎", "or", "␣not", "aaaaaa", "bbbbbb"]
    page.evaluate(
        """(labels) => {
            window.text = document.createElement("div");
            root.replaceChildren(text);
            window.flow = new Flow(text, { longest: 12 });
            window.chips = labels.map((label) => {
                const one = chip(label);
                flow.add(one, label);
                return one;
            });
        }""",
        labels,
    )
    words = (
        "[...text.children].map((word) => word.textContent + (word.querySelector('br') ? '|' : ''))"
    )
    assert page.evaluate(words) == ["To␣", "be,⏎|", "or", "␣notaaaaaa", "bbbbbb"]
    page.evaluate("flow.cut(chips[6])")
    assert page.evaluate(words) == ["To␣", "be,⏎|", "or", "␣not"]
    page.evaluate("flow.cut(chips[3])")
    assert page.evaluate(words) == ["To␣", "be,"]
    page.evaluate("flow.add(chips[3], '⏎')")
    assert page.evaluate(words) == ["To␣", "be,⏎|"]


def test_the_tab_key_stops_at_one_of_many_and_only_the_box_scrolls(page: Page) -> None:
    page.evaluate(
        """() => {
            root.replaceChildren();
            root.style.cssText = "height: 60px; width: 60px; overflow: auto";
            document.body.style.height = "5000px";
            window.stop = new TabStop();
            window.buttons = Array.from({ length: 20 }, (_, i) => {
                const button = make("button", "", String(i), { tabindex: "-1" });
                button.style.cssText = "display: block; height: 30px; width: 30px";
                root.append(button);
                return button;
            });
            stop.focus(buttons[3], root);
            stop.focus(buttons[15], root);
        }"""
    )
    assert page.evaluate("buttons.flatMap((button, i) => (button.tabIndex === 0 ? [i] : []))") == [
        15
    ]
    assert page.evaluate("document.activeElement === buttons[15]")
    seen = """() => {
        const inner = buttons[15].getBoundingClientRect(), outer = root.getBoundingClientRect();
        return inner.top >= outer.top && inner.bottom <= outer.bottom && scrollY === 0;
    }"""
    assert page.evaluate(seen)
    page.evaluate("stop.focus(null, root)")
    assert page.evaluate("document.activeElement === buttons[15]"), "nothing to go to"
    page.evaluate(
        "root.removeAttribute('style'), root.replaceChildren(), "
        "document.body.removeAttribute('style')"
    )


def test_a_payload_that_comes_again_is_read_once(page: Page) -> None:
    counted = page.evaluate(
        """(payloads) => {
            const shown = [];
            class Shown { show(payload) { shown.push(payload); } }
            const mount = view(Shown);
            const parentElement = { querySelector: () => root };
            for (const data of payloads) mount({ data: Uint8Array.from(data), parentElement });
            return [new Set(shown).size, shown.map(({ size }) => size)];
        }""",
        [list(kit.pack({"size": size})) for size in (1, 1, 2, 3, 3)],
    )
    assert counted == [3, [1, 1, 2, 3, 3]]


@pytest.mark.parametrize("early", [True, False], ids=["script first", "numbers first"])
def test_a_view_waits_for_its_script(page: Page, early: bool) -> None:
    shown = page.evaluate(
        """async ([name, early]) => {
            const shown = [], host = make("div");
            root.replaceChildren(host);
            const parentElement = host.attachShadow({ mode: "open" });
            parentElement.append(make("div", "root", "x"));
            const mount = ({ data }) => {
                shown.push(data);
                return () => shown.push("closed");
            };
            const give = () => provide(name, mount, ".root { color: #010203 }");
            if (early) give();
            const leaves = [1, 2].map((data) => mounted({ name, data, parentElement }));
            await new Promise((done) => setTimeout(done, 20));
            const before = shown.length;
            if (!early) give();
            (await Promise.all(leaves)).at(-1)();
            const { color: colour } = getComputedStyle(parentElement.lastChild);
            return { before, shown, colour, sheets: parentElement.adoptedStyleSheets.length };
        }""",
        [f"view {early}", early],
    )
    assert shown == {
        "before": 2 * early,
        "shown": [1, 2, "closed"],
        "colour": "rgb(1, 2, 3)",
        "sheets": 1,
    }


def test_the_address_keeps_what_a_view_shows_and_makes_no_history(browser: Browser) -> None:
    page = opened(browser.new_page(), "?prompt=a%20b&block=1")
    before = page.evaluate("history.length")
    page.evaluate("toAddress({ block: 3, head: 2, prompt: null })")
    assert page.evaluate("[inAddress('block'), inAddress('head'), inAddress('prompt')]") == [
        "3",
        "2",
        None,
    ]
    stands, *told = page.evaluate("""() => {
        toAddress({ head: 0 });
        for (let i = 0; i < 100; i++) toAddress({ head: i, [`k${i % 2}`]: i });
        return [location.search, ...["head", "k0", "k1"].map(inAddress)];
    }""")
    assert "head=99" not in stands, "what follows at once waits a little"
    assert told == ["99", "98", "99"], "who asks is told of it all the same"
    page.wait_for_url(re.compile("head=99.*k0=98.*k1=99"))
    assert page.evaluate("history.length") == before
    page.close()


# The heading of a picture, with a drawing of one text below it.
PICTURE = """({ heading, size }) => {
    const drawing = shape("text", { x: 0, y: 14, "font-size": 14 }, "the drawing");
    return svgFile(picture(root, heading, { drawing, ...size }));
}"""
SCALE = {
    "stops": [[0, "#FFFFFF"], [1, "#EE3377"]],
    "low": "0 %",
    "high": "100 %",
    "unit": "share; blank: not read",
}


@pytest.mark.parametrize("width", [100, 1500])
@pytest.mark.parametrize(
    "prompt", ["To be", "x" * 9_000, "to be or not to be " * 300, *NASTY], ids=range(3 + len(NASTY))
)
def test_the_heading_of_a_picture_says_all_and_nothing_overlaps(
    page: Page, prompt: str, width: int
) -> None:
    heading = {
        "title": "What each head of a model with a long name reads, and how much of what it could "
        "read " * 2,
        "model": "shakespeare, step 5000",
        "prompt": prompt,
        "settings": ["mean of all heads", "log colours"],
        "scale": SCALE,
    }
    drawn = page.evaluate(PICTURE, {"heading": heading, "size": {"width": width, "height": 20}})
    assert faults(page, drawn) == []
    said = " ".join(words(drawn))
    expected = [
        "Model: shakespeare, step 5000 · mean of all heads · log colours",
        "0 %",
        "100 %",
        SCALE["unit"],
        "the drawing",
    ]
    assert all(one in said for one in [heading["title"].strip(), *expected])  # type: ignore[attr-defined]
    if len(prompt) > 1_000:
        assert f"{len(prompt)} characters" in said
    elif prompt.strip():
        assert "".join(prompt.split()) in "".join(said.split())


def test_a_picture_without_more_has_its_title_alone(page: Page) -> None:
    drawn = page.evaluate(
        PICTURE, {"heading": {"title": "A tree"}, "size": {"width": 90, "height": 20}}
    )
    assert words(drawn) == ["A tree", "the drawing"]


# A page's own part: words in two lines, a chip on a stripe, a canvas, a drawing, a box that cuts
# its text, what is left out.
PART = """() => {
    root.innerHTML = `<div class="part" style="width: 220px; font: 14px sans-serif; color: rgb(31, 41, 51)">
        <p>some words that need <b>two</b> or three lines of this width</p>
        <span style="background: linear-gradient(to right, rgb(255, 0, 0) 0%, rgb(0, 0, 255) 100%)">chip</span>
        <div style="width: 60px; overflow: hidden; white-space: nowrap">cut off where it ends</div>
        <canvas width="2" height="2"></canvas>
        <svg width="50" height="20"><path d="M0 0H50" style="stroke: currentColor"/></svg>
        <button class="tool">Close</button><span hidden>not seen</span><i class="aloud">aloud</i></div>`;
    const copy = copyOf([root.querySelector('.part')], '.tool');
    const heights = [...root.querySelectorAll('p')].map((one) => one.getBoundingClientRect().height);
    const text = svgFile(picture(root, { title: "A part" }, copy));
    root.replaceChildren();
    return { text, width: copy.width, height: copy.height, heights };
}"""


def test_a_part_of_a_page_is_copied_word_by_word_and_shape_by_shape(page: Page) -> None:
    part = page.evaluate(PART)
    assert part["width"] == 220
    assert faults(page, part["text"]) == []
    said = words(part["text"])
    assert (
        "".join(said).replace(" ", "")
        == "Apartsomewordsthatneedtwoorthreelinesofthiswidthchipcutoffwhereitends"
    )
    assert len(said) > 5, "a text for each line"
    kinds = [one.tag.split("}")[1] for one in ElementTree.fromstring(part["text"]).iter()]
    assert kinds.count("image") == 1
    assert kinds.count("linearGradient") == 1
    assert kinds.count("path") == 1


# A box and a text in it that are each see-through.
FAINT = """() => {
    root.innerHTML = `<div class="part" style="opacity: 0.5">
        <p style="opacity: 0.4; background: rgb(0, 128, 0); color: rgb(31, 41, 51)">faint</p></div>`;
    const { drawing } = copyOf([root.querySelector('.part')]);
    root.replaceChildren();
    return [...drawing.querySelectorAll('rect, text')].map((one) => Number(one.getAttribute('fill-opacity')));
}"""


def test_what_is_faint_within_what_is_faint_is_copied_as_faint_as_it_is_seen(page: Page) -> None:
    ground, text = page.evaluate(FAINT)
    assert [ground, text] == pytest.approx([0.2, 0.2])


# Colours as a theme or a style sheet may have them.
COLOURS = (
    *(
        "rgb(31 41 51)",
        "rgb(31 41 51 / 25%)",
        "rgba(0, 119, 187, 0.5)",
        "color(srgb 0.2 0.4 0.6 / 0.5)",
        "hsl(200 50% 40%)",
    ),
    *(
        "oklch(60% 0.15 250)",
        "oklch(60% 0.15 250 / 0.5)",
        "color-mix(in srgb, red 30%, blue)",
        "#0af8",
        "#CC331180",
        "teal",
    ),
    *("transparent", "none", "#ABC"),
)
# The drawing of one rectangle with a fill, as a file, and the pixel in the middle of it before and
# after.
FILLED = """async (fill) => {
    const drawing = shape("svg", { width: 9, height: 9, viewBox: "0 0 9 9", xmlns: SVG },
        shape("rect", { width: 9, height: 9, fill, "fill-opacity": 0.8 }));
    const pixel = async (text) => {
        const image = new Image();
        image.src = `data:image/svg+xml,${encodeURIComponent(text)}`;
        await image.decode();
        const context = document.createElement("canvas").getContext("2d");
        context.fillStyle = "#fff";
        context.fillRect(0, 0, 9, 9);
        context.drawImage(image, 0, 0);
        return [...context.getImageData(4, 4, 1, 1).data];
    };
    const before = await pixel(drawing.outerHTML), text = svgFile(drawing);
    return { text, before, after: await pixel(text) };
}"""


@pytest.mark.parametrize("colour", COLOURS)
def test_every_colour_is_written_as_svg_1_1_has_it_and_looks_the_same(
    page: Page, colour: str
) -> None:
    filled = page.evaluate(FILLED, colour)
    assert unknown_to_svg_1_1(filled["text"]) == []
    assert np.abs(np.subtract(filled["before"], filled["after"])).max() <= 2


def test_the_parts_of_a_drawing_are_found_by_names_that_no_other_has(page: Page) -> None:
    files = page.evaluate("""() => [1, 2].map((width) => svgFile(shape("svg", {},
        shape("clipPath", { id: "a" }, shape("rect", { width, height: 2 })),
        shape("g", { "clip-path": 'url("#a")', mask: "url(http://kit.test/?x=1#a)" }, "url(#a)"))))""")
    assert [unknown_to_svg_1_1(file) for file in files] == [[], []]
    assert not names(files[0]) & names(files[1])
    assert all(">url(#a)<" in file for file in files), "a text is no reference"
