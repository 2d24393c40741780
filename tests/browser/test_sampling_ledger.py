"""The sampling ledger in a browser: its columns against torch, its draws, its sliders, and the
token that is taken.

What leads from a payload to the screen is tested on a page of its own (`mounted`), what takes the
server on the app (`visit`).
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Callable
from typing import Any
from urllib.parse import parse_qsl, urlparse
from xml.etree import ElementTree

import numpy as np
import pytest
import torch
from playwright.sync_api import Page, expect
from scipy import special, stats

import gptviz
from gptviz.components import kit
from gptviz.components.kit.command import ViewCommand
from gptviz.components.kit.modules import join_modules
from gptviz.components.sampling_ledger import Payload, payload
from gptviz.generate.sampling import Sampling, choose_tokens, draw, ledger, uniform
from tests.browser.contrast import faint
from tests.browser.files import code, csv_rows
from tests.browser.machinery import HOSTILE, Visit, box_of
from tests.browser.mounting import Mounted
from tests.browser.pictures import faults, saved, words

pytestmark = pytest.mark.browser

PLACE = 5
DRAWS = 10_000
# An error once in ten thousand runs; draws from a slightly wrong distribution are rejected all the
# same.
RARE = 1e-4


def extreme() -> np.ndarray:
    logits = np.random.default_rng(3).standard_normal(40).astype(np.float32)
    logits[[3, 17, 18]] = (3e4, -3e4, -np.inf)
    logits[20:24] = np.finfo(np.float32).min
    return logits


def tied() -> np.ndarray:
    """Every value several times, so that every cut falls among equals."""
    return np.random.default_rng(4).integers(0, 4, 30).astype(np.float32)


CASES: dict[str, np.ndarray] = {
    "characters": np.float32(3) * np.random.default_rng(0).standard_normal(65, np.float32),
    "tied": tied(),
    "equal": np.zeros(20, np.float32),  # ten times a twentieth falls short of a half by rounding
    "extreme": extreme(),
    "two": np.array([0.25, 1.0], np.float32),
    "one": np.array([7.5], np.float32),
    "equals": np.zeros(3_000, np.float32),
    "long": np.float32(2) * np.random.default_rng(5).standard_normal(3_000, np.float32),
    "words": np.float32(4) * np.random.default_rng(1).standard_normal(50_257, np.float32),
}
Mount = Callable[..., Mounted]


def labels_of(case: str) -> list[str]:
    labels = [f"t{i}" for i in range(len(CASES[case]))]
    if case == "long":
        labels = [label[:1] if i % 2 else label + "w" * 20 for i, label in enumerate(labels)]
    if case == "characters":
        labels[: len(HOSTILE)] = HOSTILE
    return labels


def payload_of(case: str, **changes: Any) -> Payload:
    numbers = np.array([uniform(seed, PLACE).item() for seed in range(100)])
    usual = {
        "about": case,
        "title": f"the case {case}",
        "code": ("a", "b"),
        "numbers": numbers,
        "true": 0,
        "takes": True,
    }
    return payload(changes.pop("logits", CASES[case]), labels_of(case), **usual | changes)


@pytest.fixture
def ledger_of(mounted: Mount) -> Mount:
    """Shows a case: `ledger_of("two", temperature=0.1)`, what follows being in the page's
    address.
    """

    def show(case: str, *, changes: dict[str, Any] | None = None, **page: object) -> Mounted:
        view = mounted("sampling_ledger", payload_of(case, **changes or {}).data, **page)
        expect(view.page.locator(".token-row").first).to_be_visible()
        return view

    return show


def columns(page: Page) -> dict[str, list[str]]:
    """The columns of the file that "Numbers" offers, by their names."""
    rows = csv_rows(page)
    return {name: [row[name] for row in rows] for name in rows[0]}


def read(text: str) -> dict[str, list[str]]:
    """The columns of a CSV text, by their names."""
    names, *rows = csv.reader(io.StringIO(text.removeprefix("\ufeff"), newline=""))
    return dict(zip(names, map(list, zip(*rows, strict=True)), strict=True))


def address(page: Page) -> dict[str, str]:
    """What the page's address says: a link to what is shown."""
    return dict(parse_qsl(urlparse(page.url).query))


def numbers(column: list[str]) -> np.ndarray:
    return np.array([float(value) for value in column])


def check(found: dict[str, list[str]], logits: np.ndarray, setting: dict[str, Any]) -> None:
    """The columns of the page are those of the library."""
    top_k = setting["top_k"]
    top_p = setting["top_p"]
    stages = ledger(
        torch.from_numpy(logits),
        Sampling(temperature=setting["temperature"], top_k=top_k, top_p=top_p),
    )
    np.testing.assert_array_equal(numbers(found["logit"]), logits.astype(np.float64))
    np.testing.assert_allclose(numbers(found["before"]), stages.before, rtol=1e-9, atol=1e-300)
    np.testing.assert_allclose(numbers(found["scaled"]), stages.scaled, rtol=1e-12)
    np.testing.assert_allclose(numbers(found["after"]), stages.after, rtol=1e-9, atol=1e-300)
    assert found["in top-k"] == [str(kept).lower() for kept in stages.in_top_k.tolist()]
    assert found["in top-p"] == [str(kept).lower() for kept in stages.in_top_p.tolist()]
    ends = stages.after.cumsum(0).numpy()
    np.testing.assert_allclose(numbers(found["to"]), ends / ends[-1], rtol=1e-9, atol=1e-15)
    assert found["from"] == ["0", *found["to"][:-1]]
    assert np.isfinite(numbers(found["after"])).all()
    assert numbers(found["after"]).sum() == pytest.approx(1)


# Makes `window.tables`: the CSV text of the columns at each of many settings, by the view's own
# modules. Its button, which the tests below press, does the same, but draws the table first: that
# takes ten times as long.
TABLES = """
window.tables = (logits, labels, settings) => {
    const stages = new Stages(Float32Array.from(logits, Number));
    const of = ({ top_k, ...chosen }) => ({ stages, header: { labels }, chosen: { ...chosen, top_k: top_k ?? 0 }, seeds: [] });
    return settings.map((one) => $kit_details.csv($sampling_ledger_numbers.columnsOf(of(one))));
};"""


@pytest.mark.parametrize("case", ["characters", "tied", "equal", "extreme", "two", "one"])
def test_every_column_is_torchs_at_the_edges_of_every_setting(ledger_of: Mount, case: str) -> None:
    logits = CASES[case]
    size = len(logits)
    settings = [
        {"temperature": temperature, "top_k": top_k, "top_p": top_p}
        for temperature in (0, 0.01, 0.5, 1, 2)
        for top_k in [*sorted({k for k in (1, 2, size - 1) if 0 < k < size}), None]
        for top_p in (0.05, 0.5, 0.999, 1)
    ]
    page = ledger_of(case).page
    folder = kit.FOLDER.parent / "sampling_ledger"
    modules = join_modules(folder / "stages.js", folder / "numbers.js", kit.FOLDER / "details.js")
    page.add_script_tag(content=modules + TABLES, type="module")
    page.wait_for_function("() => window.tables")  # a module within the page runs later
    asked = [
        [str(z).replace("inf", "Infinity") for z in logits.tolist()],
        labels_of(case),
        settings,
    ]
    tables = page.evaluate("(asked) => window.tables(...asked)", asked)
    for found, setting in zip(map(read, tables), settings, strict=True):
        check(found, logits, setting)


def test_unused_tokens_come_last_with_the_models_probability_and_are_never_drawn_nor_taken(
    ledger_of: Mount,
) -> None:
    used = 60
    size = 65
    logits = CASES["characters"].copy()
    logits[used:] += 20  # the likeliest of all
    view = ledger_of("characters", changes={"used": used, "logits": logits})
    page = view.page
    expect(page.locator(".facts")).to_contain_text("Never drawn 5 unused")
    page.locator(".list").focus()
    page.keyboard.press("End")
    row = page.locator(".token-row.current")
    expect(row).to_have_attribute("aria-label", re.compile("an unused token, never drawn"))
    page.keyboard.press("Enter")
    page.keyboard.press("Home")
    page.keyboard.press("Enter")
    assert [value["token"] for _, name, value in view.sent if name == "take"] == [
        int(logits[:used].argmax())
    ]
    for setting in (dict[str, Any](), {"temperature": 2, "top_k": 5, "top_p": 0.5}):
        found = columns(
            ledger_of("characters", changes={"used": used, "logits": logits}, **setting).page
        )
        stages = ledger(torch.from_numpy(logits), Sampling(**setting), range(used, size))
        np.testing.assert_allclose(numbers(found["before"]), stages.before, rtol=1e-9)
        np.testing.assert_allclose(numbers(found["after"]), stages.after, rtol=1e-9)


def test_the_columns_are_torchs_over_a_vocabulary_of_gpt2s_size(ledger_of: Mount) -> None:
    setting = {"temperature": 2, "top_p": 0.5}
    check(columns(ledger_of("words", **setting).page), CASES["words"], setting | {"top_k": None})


def test_of_a_vocabulary_of_gpt2s_size_only_the_lines_in_sight_exist(ledger_of: Mount) -> None:
    page = ledger_of("words", temperature=2).page
    rows = page.locator(".token-row")
    order = np.argsort(-CASES["words"], kind="stable")
    assert rows.count() < 60
    assert int(rows.first.get_attribute("data-token") or -1) == order[0]
    page.locator(".list").focus()
    page.keyboard.press("End")
    expect(page.locator(f'.token-row[data-token="{order[-1]}"]')).to_be_visible()
    expect(page.get_by_role("option", name=re.compile(f"^t{order[-1]},"))).to_be_visible()
    assert rows.count() < 60
    page.get_by_role("searchbox", name="Find a token").fill("t5025")
    matching = page.locator(".token-row:not([hidden])")
    expected = [i for i in order if f"t{i}".startswith("t5025")]
    expect(matching).to_have_count(len(expected))
    assert matching.evaluate_all("rows => rows.map(row => Number(row.dataset.token))") == expected
    page.get_by_role("combobox", name="Order of the tokens").select_option("by vocabulary")
    expect(page.locator(".token-row").first).to_have_attribute("data-token", "5025")


def test_each_seed_draws_what_the_library_draws(ledger_of: Mount) -> None:
    page = ledger_of("characters", temperature=1.3, top_k=30, top_p=0.9).page
    logits = torch.from_numpy(CASES["characters"])
    interval = page.locator(".interval")
    for seed in range(12):
        sampling = Sampling(temperature=1.3, top_k=30, top_p=0.9, seed=seed)
        token = choose_tokens(logits[None], sampling, PLACE).item()
        expect(interval).to_have_attribute("data-drawn", str(token))
        assert float(interval.get_attribute("data-number") or 0) == uniform(seed, PLACE).item()
        assert token == draw(ledger(logits[None], sampling).after, uniform(seed, PLACE)).item()
        page.get_by_role("button", name="Next seed").click()
    page.wait_for_url(re.compile("seed=12"))


def drawn_many(page: Page) -> dict[str, list[str]]:
    page.get_by_role("button", name=re.compile("Draw 10")).click()
    expect(page.locator(".verdict")).to_contain_text("χ²")
    return columns(page)


def pooled(counts: np.ndarray, expected: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Counts and what is expected of them, from the rarest on gathered until 5 are expected."""
    bins: list[list[float]] = []
    open_ = [0.0, 0.0]
    for i in sorted(np.flatnonzero(expected), key=lambda i: (expected[i], -i)):
        open_ = [open_[0] + counts[i], open_[1] + expected[i]]
        if open_[1] >= 5:
            bins.append(open_)
            open_ = [0.0, 0.0]
    bins[-1] = [bins[-1][0] + open_[0], bins[-1][1] + open_[1]]
    observed, wanted = np.array(bins).T
    return observed, wanted


@pytest.mark.parametrize(
    ("case", "setting"),
    [("characters", {"temperature": 1.3, "top_k": 30, "top_p": 0.9}), ("words", {})],
)
def test_ten_thousand_draws_have_torchs_frequencies_and_the_view_says_how_well(
    ledger_of: Mount, case: str, setting: dict[str, Any]
) -> None:
    page = ledger_of(case, **setting).page
    found = drawn_many(page)
    counts = numbers(found[f"drawn of {DRAWS}"])
    assert counts.sum() == DRAWS
    logits = torch.from_numpy(CASES[case])
    after = ledger(logits, Sampling(**setting)).after.numpy()
    assert not counts[after == 0].any(), "what was cut is never drawn"
    observed, wanted = pooled(counts, DRAWS * after)
    right = stats.chisquare(observed, wanted)
    assert right.pvalue > RARE
    verdict = page.locator(".verdict")
    assert float(verdict.get_attribute("data-statistic") or 0) == pytest.approx(
        right.statistic, rel=1e-6
    )
    assert int(verdict.get_attribute("data-freedom") or 0) == len(observed) - 1

    wrong = ledger(
        logits, Sampling(**setting | {"temperature": setting.get("temperature", 1) * 1.1})
    ).after.numpy()
    assert stats.chisquare(*pooled(counts, DRAWS * wrong)).pvalue < RARE, (
        "the test would see a temperature a tenth too high"
    )


def test_draws_are_forgotten_when_what_they_were_drawn_from_changes(ledger_of: Mount) -> None:
    page = ledger_of("characters").page
    for name in ("Temperature", "Top-k", "Top-p"):
        page.get_by_role("button", name=re.compile("Draw 10")).click()
        expect(page.locator(".verdict")).to_contain_text("χ²")
        expect(page.locator(".seen:not([hidden])").first).to_be_visible()
        page.get_by_role("slider", name=name).press("ArrowLeft")
        expect(page.locator(".seen:not([hidden])")).to_have_count(0)
        expect(page.locator(".verdict")).not_to_contain_text("χ²")
    page.get_by_role("slider", name="Temperature").press("Home")
    page.get_by_role("button", name=re.compile("Draw 10")).click()
    expect(page.locator(".verdict")).to_contain_text("nothing to test")  # of one token


def test_what_is_cut_is_seen_being_cut(ledger_of: Mount) -> None:
    page = ledger_of("characters", top_k=6, top_p=0.6).page
    stages = ledger(torch.from_numpy(CASES["characters"]), Sampling(top_k=6, top_p=0.6))
    left = int(stages.in_top_p.sum())
    assert 1 < left < 6
    reasons = [row.get_attribute("data-cut") for row in page.locator(".token-row").all()[:8]]
    assert reasons == [""] * left + ["top-p"] * (6 - left) + ["top-k"] * 2
    order = CASES["characters"].argsort()[::-1]
    kept_by_k = stages.before[order[:6].copy()].sum().item()
    expect(page.locator(".sum.top-k")).to_have_text(f"kept {kept_by_k:.3f}, so ÷ {kept_by_k:.3f}")
    expect(page.locator(".end-of-k")).to_have_attribute("data-token", str(order[5]))
    expect(page.locator(".end-of-p")).to_have_attribute("data-token", str(order[left - 1]))
    expect(page.locator(".sum.top-p")).to_contain_text(f"reached after {left}")
    expect(page.locator(".sum.token")).to_have_text(f"{left} of 65 left")


def three(number: float) -> str:
    """Three significant digits, the last of which may be a zero."""
    return f"{number:#.3g}".rstrip(".")


def test_the_facts_are_those_of_a_loop(ledger_of: Mount) -> None:
    page = ledger_of("characters", temperature=0.5, top_k=4).page
    stages = ledger(torch.from_numpy(CASES["characters"]), Sampling(temperature=0.5, top_k=4))
    nats = [-sum(x * np.log(x) for x in p.tolist() if x > 0) for p in (stages.before, stages.after)]
    rank = 1 + int((CASES["characters"] > CASES["characters"][0]).sum())
    facts = page.locator(".facts")
    bits = [three(x / np.log(2)) for x in nats]
    expect(facts).to_contain_text(f"{' → '.join(bits)} bits ({' → '.join(map(three, nats))} nats)")
    expect(facts).to_contain_text(f"Perplexity {' → '.join(three(np.exp(x)) for x in nats)}")
    expect(facts).to_contain_text(f"rank {rank}")


def test_a_tiny_sum_is_not_said_to_be_nothing(ledger_of: Mount) -> None:
    page = ledger_of("equals", top_k=1).page
    kept = float(1 / len(CASES["equals"]))
    mantissa, exponent = f"{kept:.2e}".split("e")
    said = (
        f"{mantissa} · "
        f"10⁻{str(abs(int(exponent))).translate(str.maketrans('0123456789', '⁰¹²³⁴⁵⁶⁷⁸⁹'))}"
    )
    expect(page.locator(".sum.top-k")).to_have_text(f"kept {said}, so ÷ {said}")


# Where everything below the facts is, at many settings, after each of which two frames were drawn.
PLACES = """async (root) => {
    const places = new Set();
    for (let i = 0; i < 60; i++) {
        for (const slider of root.querySelectorAll('input[type=range]')) {
            const { key } = slider.dataset;
            const share = { temperature: i % 5 / 4, top_k: i % 3 / 2, top_p: i % 2, seed: i / 60 }[key];
            slider.value = Number(slider.min) + share * (slider.max - slider.min);
            slider.dispatchEvent(new Event('input', { bubbles: true }));
        }
        for (let frame = 0; frame < 2; frame++) await new Promise((done) => requestAnimationFrame(done));
        const parts = ['.titles', '.list', '.interval', '.below'].map((part) => root.querySelector(part).offsetTop);
        places.add(parts.join(' '));
    }
    return [...places];
}"""


@pytest.mark.parametrize("width", [1280, 800, 390])
def test_nothing_moves_while_a_slider_does(ledger_of: Mount, width: int) -> None:
    page = ledger_of("long", width=width).page
    assert len(page.locator(".root").evaluate(PLACES)) == 1


def test_what_a_link_made_up_stays_named_until_it_is_closed(ledger_of: Mount) -> None:
    page = ledger_of("characters", temperature=5).page
    note = page.get_by_role("status").filter(has_text="the view began with 1.00")
    page.get_by_role("slider", name="Temperature").press("ArrowLeft")
    expect(page.get_by_role("slider", name="Temperature")).to_have_attribute(
        "aria-valuetext", "0.99"
    )
    expect(note).to_be_visible()
    page.get_by_role("button", name="Close").click()
    expect(note).not_to_be_visible()


@pytest.mark.parametrize("temperature", ["0.001", "1e-8"])
def test_a_tiny_temperature_is_not_said_to_be_none_and_can_be_reopened(
    ledger_of: Mount, temperature: str
) -> None:
    page = ledger_of("characters", temperature=temperature).page
    slider = page.get_by_role("slider", name="Temperature")
    expect(slider).to_have_attribute("aria-valuetext", temperature)
    page.get_by_role("button", name="log bars").click()
    page.wait_for_url(re.compile("log=true"))
    page = ledger_of("characters", **address(page)).page
    expect(page.get_by_role("slider", name="Temperature")).to_have_attribute(
        "aria-valuetext", temperature
    )
    expect(page.get_by_text("The link asks for")).to_have_count(0)


def move(page: Page, times: int) -> None:
    """So many moves of the sliders, as fast as they come, and the frame after them."""
    page.locator(".root").evaluate(
        """async (root, times) => {
            const sliders = [...root.querySelectorAll('input[type=range]')];
            const frame = () => new Promise((done) => requestAnimationFrame(done));
            for (let i = 0; i < times; i++) {
                const slider = sliders[i % sliders.length];
                const share = (i * 0.618) % 1;
                slider.value = Number(slider.min) + share * (slider.max - slider.min);
                slider.dispatchEvent(new Event('input', { bubbles: true }));
                if (i % 5 === 4) await frame();
            }
            await frame();
            await frame();
        }""",
        times,
    )


def test_moving_hovering_scrolling_walking_and_drawing_send_nothing(ledger_of: Mount) -> None:
    view = ledger_of("words")
    page = view.page
    move(page, 40)
    for row in page.locator(".token-row").all()[:5]:
        row.hover()
    reading = page.locator(".reading")
    expect(reading).to_contain_text("softmax")
    page.mouse.wheel(0, 4_000)
    page.locator(".interval").hover()
    page.locator(".list").focus()
    for key in ("ArrowDown", "PageDown", "End", "Home", "ArrowUp"):
        page.keyboard.press(key)
    page.get_by_role("button", name=re.compile("Draw 10")).click()
    page.get_by_role("button", name="log bars").click()
    page.get_by_role("searchbox", name="Find a token").fill("t12")
    expect(page.locator(".token-row").first).to_contain_text("t12")
    assert view.sent == []


def taken(view: Mounted) -> list[int]:
    """The tokens that the view has asked for, of the text that it shows."""
    assert {(name, value["generation"]) for _, name, value in view.sent} <= {
        ("take", payload_of("two").generation)
    }
    return [value["token"] for _, _, value in view.sent]


def test_a_click_and_enter_and_the_button_of_the_draw_take_the_token(ledger_of: Mount) -> None:
    view = ledger_of("two", temperature=0.1)
    page = view.page
    page.locator('.token-row[data-token="0"]').click()
    assert taken(view) == [0]
    page.locator(".list").focus()
    page.keyboard.press("Home")
    page.keyboard.press("Enter")
    assert taken(view) == [0, 1]
    page.keyboard.press("ArrowDown")
    page.keyboard.press(" ")
    assert taken(view) == [0, 1, 0]
    page.get_by_role("button", name="Take it").click()
    assert taken(view) == [0, 1, 0, 1]
    page.locator(".list").focus()
    for _ in range(4):
        page.keyboard.down("Enter")  # held
    page.keyboard.up("Enter")
    assert taken(view) == [0, 1, 0, 1, 0]


def test_where_nothing_can_be_taken_the_view_does_not_say_so(ledger_of: Mount) -> None:
    view = ledger_of("two", changes={"takes": False})
    assert "click" not in (view.page.locator(".title.token").get_attribute("title") or "")
    view.page.locator(".token-row").first.click()
    assert view.sent == []
    expect(view.page.get_by_role("button", name="Take it")).to_have_count(0)
    view = ledger_of("two")
    assert "click" in (view.page.locator(".title.token").get_attribute("title") or "")


def test_of_a_finger_the_first_tap_shows_and_the_second_takes(ledger_of: Mount) -> None:
    view = ledger_of("two", width=390, height=844)
    row = view.page.locator('.token-row[data-token="0"]')
    tap = (
        "row => row.dispatchEvent(new PointerEvent('click', { bubbles: true, pointerType: 'touch' "
        "}))"
    )
    row.evaluate(tap)
    expect(view.page.locator(".reading")).to_contain_text("tap again to take it")
    assert taken(view) == []
    row.evaluate(tap)
    assert taken(view) == [0]


def test_a_smaller_vocabulary_gives_up_the_top_k_it_cannot_have(ledger_of: Mount) -> None:
    view = ledger_of("long", top_k=1500, temperature=0.7)
    top_k = view.page.get_by_role("slider", name="Top-k")
    expect(top_k).to_have_attribute("aria-valuetext", "1\u202f500")
    view.show(payload_of("characters").data)
    expect(top_k).to_have_attribute("aria-valuetext", "off")
    view.page.wait_for_url(re.compile("^(?!.*top_k=).*temperature=0.7"))


def test_labels_come_once_and_are_asked_for_where_they_are_missing(ledger_of: Mount) -> None:
    view = ledger_of("two")
    names = view.page.locator(".token-row .chip")
    expect(names.first).to_have_text("t1")
    first = payload_of("two")
    other = payload_of("two", about="another text", true=None)
    view.show(other.bare)
    expect(view.page.locator(".facts")).to_contain_text("unknown")
    expect(names.first).to_have_text("t1")
    view.replace()
    view.show(first.bare)
    expect(names.first).to_have_text("t1")
    assert view.sent == []
    foreign = payload_of("characters")
    for _ in range(2):
        view.show(foreign.bare)
    assert [(name, value) for _, name, value in view.sent] == [
        ("lost", {"generation": foreign.generation})
    ], "once"
    view.show(foreign.data)
    expect(view.page.locator(".sum.token")).to_contain_text("65")


def test_a_command_is_obeyed_once_even_by_a_view_put_in_the_place_of_another(
    ledger_of: Mount,
) -> None:
    view = ledger_of("characters")
    slider = view.page.get_by_role("slider", name="Temperature")
    asked = payload_of("characters", command=ViewCommand({"temperature": 1.5, "top_k": 10}, 7))
    view.show(asked.data)
    expect(slider).to_have_attribute("aria-valuetext", "1.50")
    slider.press("Home")
    view.show(asked.data)
    expect(slider).to_have_attribute("aria-valuetext", "0.00")
    view.page.wait_for_url(re.compile("temperature=0(&|$)"))
    view.replace()
    view.show(asked.data)
    expect(slider).to_have_attribute("aria-valuetext", "0.00")


def test_a_link_reopens_the_view_and_plain_choices_stay_out_of_it(ledger_of: Mount) -> None:
    chosen = {
        "temperature": 0.7,
        "top_k": 12,
        "top_p": 0.85,
        "seed": 9,
        "tokens": "All, by vocabulary",
        "log": "true",
    }
    page = ledger_of("characters", **chosen).page
    for name, text in (("Temperature", "0.70"), ("Top-k", "12"), ("Top-p", "0.85"), ("Seed", "9")):
        expect(page.get_by_role("slider", name=name)).to_have_attribute("aria-valuetext", text)
    expect(page.get_by_role("button", name="log bars")).to_have_attribute("aria-pressed", "true")
    expect(page.locator(".token-row").first).to_have_attribute("data-token", "0")
    page.get_by_role("slider", name="Temperature").press("End")
    page.wait_for_url(re.compile("temperature=2(&|$)"))
    page.get_by_role("button", name="log bars").click()
    page.wait_for_url(re.compile(r"^(?!.*log=)"))
    page = ledger_of("characters", **address(page)).page
    expect(page.get_by_role("slider", name="Temperature")).to_have_attribute(
        "aria-valuetext", "2.00"
    )
    expect(page.get_by_role("slider", name="Top-k")).to_have_attribute("aria-valuetext", "12")


@pytest.mark.parametrize(
    ("case", "setting"),
    [
        ("characters", {"top_k": 3, "tokens": "All, by vocabulary"}),
        ("words", {"top_p": 0.4, "temperature": 1.7, "log": "True"}),
    ],
)
def test_a_picture_has_a_heading_the_lines_in_sight_and_the_draw(
    ledger_of: Mount, case: str, setting: dict[str, Any]
) -> None:
    page = ledger_of(case, **setting, seed=7, changes={"prompt": "To be, or"}).page
    drawn = saved(page)
    assert faults(page, drawn) == []
    texts = words(drawn)
    said = "".join("".join(texts).split())
    shown = [
        *page.locator(".sum").all_inner_texts(),
        *page.locator(".fact").all_inner_texts(),
        "Seed 7",
        "Prompt: “To be, or”",
    ]
    assert [text for text in shown if "".join(text.split()) not in said] == []
    assert f"the case {case}" in texts[0]
    number = page.locator(".interval").get_attribute("data-number") or ""
    assert f"{float(number):.3f} falls on " in texts
    assert "▲" in texts or case == "words", "the true token is marked, however long its name is"


@pytest.mark.parametrize("width", [390, 1280])
def test_a_picture_has_all_bars_at_their_lengths_whatever_the_window_shows(
    ledger_of: Mount, width: int
) -> None:
    page = ledger_of("characters", top_p=0.8, width=width).page
    page.locator(".list").evaluate("list => { list.scrollTop = 30; }")
    seen = page.locator(".list").evaluate(
        "list => [list.clientHeight, list.clientWidth, list.scrollTop]"
    )
    drawn = saved(page)
    assert (
        page.locator(".list").evaluate(
            "list => [list.clientHeight, list.clientWidth, list.scrollTop]"
        )
        == seen
    )
    assert faults(page, drawn) == []
    # of the model's own probabilities
    grey = {"fill": "rgb(138, 143, 152)", "fill-opacity": "0.18"}
    looks = [one.attrib for one in ElementTree.fromstring(drawn).iter() if one.tag.endswith("rect")]
    bars = [float(look["width"]) for look in looks if grey.items() <= look.items()]
    shares = np.sort(special.softmax(CASES["characters"].astype(float)))[::-1][1 : 1 + len(bars)]
    assert len(bars) >= 16, "the first line is scrolled away"
    assert bars == pytest.approx(shares / shares[0] * bars[0], abs=0.1)
    lines = [float(look["width"]) for look in looks if look.get("stroke-width") == "1.5"]
    assert lines == pytest.approx(np.array(bars) - 1.5, abs=0.01), (
        "the line around a bar lies within it"
    )


def test_without_top_p_no_line_marks_its_limit(ledger_of: Mount) -> None:
    for setting, strength in (({}, "0"), ({"top_p": 0.8}, "0.55")):
        page = ledger_of("characters", top_k=3, **setting).page
        assert (
            page.locator(".lane.top-p").first.evaluate(
                "lane => getComputedStyle(lane, '::after').opacity"
            )
            == strength
        )


# How many animations of the number begin until the second frame after the button was clicked.
FALLING = """async (root) => {
    let count = 0;
    root.querySelector('.fallen').animate = () => count++;
    [...root.querySelectorAll('button')].find((one) => one.textContent === 'Next seed').click();
    for (let frame = 0; frame < 2; frame++) await new Promise((done) => requestAnimationFrame(done));
    return count;
}"""


def test_the_number_falls_unless_the_reader_wants_no_motion(ledger_of: Mount) -> None:
    page = ledger_of("characters").page
    assert page.locator(".root").evaluate(FALLING) == 1
    page.emulate_media(reduced_motion="reduce")
    assert page.locator(".root").evaluate(FALLING) == 0


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_every_text_can_be_read_after_draws(ledger_of: Mount, dark: bool) -> None:
    page = ledger_of("characters", dark=dark, top_k=6, top_p=0.6, temperature=1.3).page
    assert page.locator(".token-row[data-cut='top-k']").count()
    drawn_many(page)
    assert faint(page) == []


def test_bars_keep_their_colours_where_the_system_chooses_colours(ledger_of: Mount) -> None:
    page = ledger_of("characters", top_k=6).page
    colours = "bars => bars.map((bar) => getComputedStyle(bar).background)"
    before = page.locator(".token-row .bar").evaluate_all(colours)
    page.emulate_media(forced_colors="active")
    assert page.locator(".token-row .bar").evaluate_all(colours) == before


# On the page

PROMPTS = {"shakespeare": "ROMEO:\nWhat is", "bpe": "ROMEO:\nWhat is the"}


def prompt_of(page: Page) -> str:
    return page.get_by_role("textbox", name=re.compile("Prompt")).input_value()


@pytest.mark.parametrize("model", ["shakespeare", "bpe"])
def test_a_click_appends_exactly_that_token(standing: Visit, model: str) -> None:
    page = standing.go("next_token", model=model, prompt=PROMPTS[model], temperature=0.5)
    lm = gptviz.load(model)
    ids = lm.tokenizer.encode(PROMPTS[model]).ids
    for place in (0, 3):
        row = page.locator(".token-row").nth(place)
        expect(row).to_be_visible()
        ids.append(int(row.get_attribute("data-token") or -1))
        row.click()
        expect(page.locator(".st-key-tokens-strip button.chip")).to_have_count(len(ids))
        standing.settle()
        assert lm.tokenizer.encode(prompt_of(page)).ids == ids
    expect(page.get_by_role("slider", name="Temperature")).to_have_attribute(
        "aria-valuetext", "0.50"
    )
    assert "temperature=0.5" in page.url


# Clicks the first line, and once more in the moment when the next text is shown: the two halves of
# a double click.
TWICE = """async () => {
    const root = [...document.querySelectorAll('*')].map((e) => e.shadowRoot).find((s) => s?.querySelector('.list'));
    const click = (detail) => root.querySelector('.token-row').dispatchEvent(new MouseEvent('click', { bubbles: true, detail }));
    const interval = root.querySelector('.interval');
    const before = interval.dataset.number;
    const shown = new Promise((done) => {
        const look = () => interval.dataset.number !== before && done();
        new MutationObserver(look).observe(interval, { attributeFilter: ['data-number'] });
    });
    click(1);
    await shown;
    click(2);
}"""


def test_a_double_click_takes_one_token(standing: Visit) -> None:
    page = standing.go("next_token", prompt="ROMEO:\n")
    expect(page.locator(".token-row").first).to_be_visible()
    chips = page.locator(".st-key-tokens-strip button.chip")
    page.evaluate(TWICE)
    standing.settle()
    expect(chips).to_have_count(8)
    standing.settle()
    assert len(prompt_of(page)) == 8
    page.locator(".token-row").first.click()
    expect(chips).to_have_count(9)
    standing.settle()


@pytest.mark.full
def test_a_step_back_takes_back_the_token_and_keeps_the_sliders(visit: Visit) -> None:
    page = visit.open("next_token", prompt="ROMEO:\n", temperature=0.5)
    chips = page.locator(".st-key-tokens-strip button.chip")
    page.locator(".token-row").first.click()
    expect(chips).to_have_count(8)
    visit.settle()
    slider = page.get_by_role("slider", name="Temperature")
    slider.press("ArrowRight")
    page.wait_for_url(re.compile("temperature=0.51"))
    page.go_back()
    expect(chips).to_have_count(7)
    visit.settle()
    expect(slider).to_have_attribute("aria-valuetext", "0.51")
    page.wait_for_url(re.compile("temperature=0.51"))


def test_the_last_move_of_a_slider_is_in_the_address_that_a_link_leads_away_from(
    standing: Visit,
) -> None:
    page = standing.go("next_token")
    expect(page.locator(".token-row").first).to_be_visible()
    box = box_of(page.locator(".ends"))
    assert box["y"] + box["height"] <= 722, "the view is seen without scrolling"
    page.evaluate(
        """() => {
            const root = [...document.querySelectorAll('*')].map((e) => e.shadowRoot).find((s) => s?.querySelector('.list'));
            const slider = root.querySelector('input[data-key=temperature]');
            for (const value of [0.9, 0.8, 0.7]) {
                slider.value = value;
                slider.dispatchEvent(new Event('input', { bubbles: true }));
            }
            document.querySelector('[data-testid=stSidebar] a[href*=lessons]').click();
        }"""
    )
    expect(page).to_have_title("Lessons · gptviz")
    standing.settle()
    page.go_back()
    expect(page.get_by_role("slider", name="Temperature")).to_have_attribute(
        "aria-valuetext", "0.70"
    )
    standing.settle()


def test_the_code_on_the_page_computes_its_columns_and_its_draw(standing: Visit) -> None:
    page = standing.go(
        "next_token",
        prompt="ROMEO:\nWhat is",
        position=9,
        temperature=0.7,
        top_k=20,
        top_p=0.9,
        seed=3,
    )
    expect(page.locator(".token-row").first).to_be_visible()
    found = columns(page)
    lines = code(page)
    assert "temperature=0.7, top_k=20, top_p=0.9, seed=3" in lines
    computed: dict[str, Any] = {}
    exec(lines, computed)
    stages = computed["stages"]
    token = int(computed["token"])
    np.testing.assert_allclose(numbers(found["before"]), stages.before[0], atol=1e-6)
    np.testing.assert_allclose(numbers(found["scaled"]), stages.scaled[0], rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(numbers(found["after"]), stages.after[0], atol=1e-6)
    assert [text == "true" for text in found["in top-k"]] == stages.in_top_k[0].tolist()
    assert [text == "true" for text in found["in top-p"]] == stages.in_top_p[0].tolist()
    assert int(page.locator(".interval").get_attribute("data-drawn") or -1) == token
