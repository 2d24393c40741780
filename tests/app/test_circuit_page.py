"""The Circuit page as a reader meets it, without a browser."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from streamlit.testing.v1 import AppTest

import gptviz
from gptviz.components.circuit_graph import FORMAT, read_file
from gptviz.figures.kit.format import brief, format_signed
from gptviz.interp.explaining.circuit import MOST_NODES, Circuit
from gptviz.text.datasets.sentences import Sentences
from gptviz.ui.pages.circuit import graph as page_code
from gptviz.ui.pages.circuit import saved
from gptviz.ui.views.which_logit import ALONE, MINUS, OF
from tests.app.opening import in_sight, opened, page_at, payload, ran, views
from tests.tiny import TinyModel
from tests.waiting import wait_until

PROMPT = "the fox"


@pytest.fixture(autouse=True)
def _tiny(tiny_model: TinyModel) -> None:
    tiny_model()


page = page_at("pages/circuit.py", model="tiny", prompt=PROMPT)


def shown(at: AppTest) -> dict[str, Any]:
    return payload(at, "circuit graph")[0]


def edges_of(found: Circuit) -> list[tuple[str, str, str, float]]:
    return [(edge.source.name, edge.target.name, edge.kind, edge.value) for edge in found.edges]


def sent_edges(sent: dict[str, Any]) -> list[tuple[str, str, str, float]]:
    name = [node["name"] for node in sent["nodes"]]
    return [
        (name[edge["from"]], name[edge["to"]], edge["kind"], edge["value"])
        for edge in sent["edges"]
    ]


def usual(**changes: Any) -> Circuit:
    """The graph of a page that is asked for nothing: the likeliest token minus the next one."""
    lm = gptviz.load("tiny")
    first, second = lm.model(lm.encode(PROMPT)[None])[0, -1].topk(2).indices.tolist()
    asked = {"against": second, "share": page_code.SHARE, "most": page_code.BOXES}
    return lm.circuit(PROMPT, first, **asked | changes)


def test_the_page_shows_what_decides_between_the_two_likeliest_tokens_in_few_boxes() -> None:
    found = usual()
    sent = shown(page())
    assert sent_edges(sent) == edges_of(found)
    assert 2 < len(sent["nodes"]) <= page_code.BOXES
    assert sent_edges(shown(page(minus=ALONE))) == edges_of(usual(against=None))
    assert sent_edges(shown(page(against="nothing"))) == edges_of(usual(against=None)), (
        "a link of an earlier version"
    )


def test_there_are_as_many_boxes_as_the_address_says_or_as_the_share_needs_that_it_asks_for() -> (
    None
):
    assert sent_edges(shown(page(boxes="20"))) == edges_of(usual(most=20))
    assert sent_edges(shown(page(share="0.9"))) == edges_of(usual(share=0.9, most=MOST_NODES))
    assert sent_edges(shown(page(share="0.9", boxes="9"))) == edges_of(usual(share=0.9, most=9))
    at = page()
    at.slider(key="share").set_value(0.9).run()
    assert at.select_slider(key="boxes").value == MOST_NODES
    at.select_slider(key="boxes").set_value(9).run()
    at.slider(key="share").set_value(0.5).run()
    assert at.select_slider(key="boxes").value == 9, "it was chosen"


def test_a_link_from_before_there_were_few_boxes_opens_its_box_in_the_graph_of_the_logit_alone() -> (
    None
):
    of_the_logit = usual(against=None, most=MOST_NODES)
    name = next(node.name for node in of_the_logit.nodes if node not in usual().nodes)
    at = page(node=name)
    assert sent_edges(shown(at)) == edges_of(of_the_logit)
    assert shown(at)["nodes"][shown(at)["opened"]]["name"] == name


def test_the_code_below_gives_the_numbers_of_the_graph() -> None:
    sent = shown(page(share="0.6"))
    lines = ran(sent["code"])
    for (source, target, kind, value), expected in zip(
        lines["numbers"], sent_edges(sent), strict=True
    ):
        assert (source, target, kind) == expected[:3]
        assert value == pytest.approx(expected[3], abs=1e-6)
    assert lines["checked"].whole == pytest.approx(lines["result"].total, abs=1e-4)


def test_a_small_model_is_checked_at_once_and_a_large_one_when_it_is_asked_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    kept = gptviz.load("tiny").check_circuit(usual())
    small = page()
    monkeypatch.setattr(page_code, "MOST", 0)
    large = page()
    wait_until(lambda: any(view.proto.id.endswith("-circuit graph") for view in views(large.run())))
    assert sent_edges(shown(large)) == edges_of(usual()), "the search went on by itself"
    assert any("Not checked yet" in one.value for one in large.caption)
    assert not any("Checked:" in one.value for one in large.markdown)
    large.button(key="check the graph").click().run()
    assert large.query_params["check"] == "true"
    for visit in (small, large):
        (said,) = (one.value for one in visit.markdown if "Checked:" in one.value)
        assert f"**{brief(kept.kept)}** instead of {brief(kept.whole)}" in said
        assert f"keeps **{100 * kept.share:.3g} %** of the answer".replace("-", "−") in said
        beside = f"random lines instead keep **{100 * kept.random.median:.3g} %**"
        assert beside.replace("-", "−") in said


@pytest.mark.parametrize(
    ("model", "query"),
    [
        ("induction", {"position": "62"}),
        ("induction", {"against": "nothing", "share": "0.75", "position": "62"}),
        ("addition", {}),
        ("sentences", {}),
    ],
)
def test_where_the_check_keeps_much_less_than_the_share_the_page_says_so_beside_the_share(
    model: str, query: dict[str, str]
) -> None:
    at = opened("pages/circuit.py", model=model, **query)
    sent = shown(at)
    lines = dict[str, Any]()
    exec(sent["code"], lines)
    kept = lines["checked"].share
    share = sent["share"]
    warned = [one for one in at.warning if "The check disagrees" in one.value]
    assert len(warned) == (kept < page_code.MUCH_LESS * share) == (model != "sentences")
    (checked,) = (one.value for one in at.markdown if "Checked:" in one.value)
    assert (f"much more than the {100 * share:.3g} % that" in checked) == (
        share < page_code.MUCH_LESS * kept
    )
    for one in warned:
        assert f"traces {100 * share:.3g} % back" in one.value
        assert f"{100 * kept:.3g} % of the answer is left".replace("-", "−") in one.value
        seen = list(in_sight(at))
        names = [getattr(getattr(node, "proto", None), "id", "") for node in seen]
        graph = next(i for i, name in enumerate(names) if name.endswith("-circuit graph"))
        (pointer,) = (
            i
            for i, node in enumerate(seen)
            if str(getattr(node, "value", "")).endswith("see below the graph.")
        )
        assert pointer < graph < next(i for i, node in enumerate(seen) if node is one)


def test_an_open_head_leads_to_its_pattern_and_can_be_switched_off() -> None:
    found = usual()
    head = next(node for node in found.nodes if node.unit is not None and node.unit.is_head)
    at = page(box=head.name)
    assert any(
        one.value.startswith(f"**{head.unit.title[0].upper()}{head.unit.title[1:]}**")
        for one in at.markdown
    )  # type: ignore[union-attr]
    links = {link.proto.label: link.proto.query_string for link in at.main.get("page_link")}
    assert f"block={head.unit.block}" in links["What it looks at"]  # type: ignore[union-attr]
    assert f"head={head.unit.index}" in links["What it looks at"]  # type: ignore[union-attr]
    at.button(key="switch off the node").click().run()
    assert head.unit.name not in [node["name"].split("@")[0] for node in shown(at)["nodes"]]  # type: ignore[union-attr]


def test_an_open_head_says_what_it_reads_mostly_even_where_that_takes_away() -> None:
    found = usual(most=MOST_NODES)
    read = {
        node: [edge for edge in found.edges if edge.target == node and edge.kind == "value"]
        for node in found.nodes
    }
    most = {
        node: max(edges, key=lambda edge: abs(edge.value)) for node, edges in read.items() if edges
    }
    node, edge = next(
        (node, edge)
        for node, edge in most.items()
        if edge.value < 0 < max(one.value for one in read[node])
    )
    assert node.unit is not None
    title = f"**{node.unit.title.capitalize()}** at position {node.position}"
    (said,) = (
        one.value for one in page(box=node.name, boxes="60").markdown if one.value.startswith(title)
    )
    assert (
        f"({format_signed(edge.value)})."
        in said.partition("It reads mostly")[2].partition("It looks")[0]
    )


def test_a_node_of_another_graph_is_closed() -> None:
    at = page(box="<b>no such node</b>")
    assert any("Choose a box" in one.value for one in at.caption)


def test_a_model_of_nothing_but_an_embedding_has_a_circuit_too(tiny_model: TinyModel) -> None:
    tiny_model(n_layer=0)
    assert {edge[2] for edge in sent_edges(shown(page()))} == {"logit"}


def test_the_model_of_sentences_is_asked_what_decides_between_right_and_wrong() -> None:
    at = opened("pages/circuit.py", model="sentences")
    lm = gptviz.load("sentences")
    mary = "When Mary and John went to the shop, John gave a book to"
    found = lm.circuit(mary, "Mary", against="John", share=page_code.SHARE, most=page_code.BOXES)
    assert sent_edges(shown(at)) == edges_of(found), (
        "at once: John is the known wrong answer, though another token is likelier"
    )
    assert int(lm.model(lm.encode(mary)[None])[0, -1].topk(2).indices[1]) != lm.token("John")
    at = opened("pages/circuit.py", model="sentences", prompt="Mary")
    at.button(key=f"try {Sentences().contrasts()[0].title}").click().run()
    assert sent_edges(shown(at)) == edges_of(found)


@pytest.mark.parametrize("model", ["sentences", "addition", "shakespeare", "quotes", "induction"])
def test_a_path_is_named_where_the_graph_explains_enough_else_the_part_that_attribution_names(
    model: str,
) -> None:
    at = opened("pages/circuit.py", model=model)
    found = ran(shown(at)["code"])["result"]
    begins = ("**The strongest path", "**No short path")
    (said,) = (one.value for one in at.markdown if one.value.startswith(begins))
    main = [edge for edge in shown(at)["edges"] if edge["main"]]
    links = {link.proto.label for link in at.main.get("page_link")}
    if found.share >= page_code.LITTLE_EXPLAINED:
        assert said.startswith("**The strongest path to this guess: ")
        assert said.count("→") == len(found.main_path) - 1 == len(main)
        assert f"Its last line adds {format_signed(found.main_edges[-1].value)} to " in said
        return
    asked = {"token": found.token, "position": found.position, "against": found.against}
    lm = gptviz.load(model)
    added = lm.attribute(lm.tokenizer.decode(list(found.ids)), **asked).values
    best = max((name for name in added if not name.endswith("bias")), key=added.__getitem__)
    assert said.startswith("**No short path makes this guess: many parts share it. ")
    assert {shown(at)["nodes"][edge["from"]]["name"].split("@")[0] for edge in main} <= {best}
    page = opened("pages/attribution.py", model=model)
    title = next(one.value for one in page.markdown if "speaks most for" in one.value)
    assert f"{title.split(' speaks most')[0].strip('*')} adds most." in said
    assert {"Attribution", "Patching"} <= links


SAVED = {
    "model": "tiny",
    "step": None,
    "prompt": "the dog ran",
    "edits": None,
    "edit_text": None,
    "position": 4,
    "token": 3,
    "against": 5,
    "share": 0.6,
    "boxes": 20,
    "beyond_mean": False,
    "nodes": "parts",
}


def content(**changes: Any) -> bytes:
    """A saved graph."""
    return json.dumps(
        {"format": FORMAT, "choices": SAVED, "pinned": "embed@3", "groups": None} | changes
    ).encode()


def with_file(at: AppTest, **changes: Any) -> AppTest:
    """The page after a saved graph was opened."""
    at.get("file_uploader")[0].upload("my graph.json", content(**changes))
    return at.run()


def test_a_link_and_a_saved_graph_open_what_they_ask_for_the_latter_with_its_pins() -> None:
    first = shown(
        page(
            prompt=SAVED["prompt"],
            position="4",
            boxes="20",
            share="0.6",
            beyond_mean="false",
            **{OF: "i", MINUS: "u"},
        )
    )
    assert first["choices"] | {"token": 3, "against": 5} == SAVED, "what the address asks for"
    token, against = map(gptviz.load("tiny").token, "iu")
    assert (first["choices"]["token"], first["choices"]["against"]) == (token, against)
    assert "beyond_mean=False" in first["code"]
    lm = gptviz.load("tiny")
    at = with_file(page(box="logit@6"))
    assert sent_edges(shown(at)) == edges_of(
        lm.circuit("the dog ran", 3, 4, 5, 0.6, beyond_mean=False, most=20)
    )
    assert shown(at)["choices"] == SAVED
    assert shown(at)["asked"] == {"pinned": "embed@3", "groups": None}
    assert shown(at)["choices"].keys() == first["choices"].keys()
    assert any(
        "my graph.json: this is the saved graph" in one.value.replace("\\", "")
        for one in at.success
    )
    assert "box" not in at.query_params
    again = with_file(page(), choices=first["choices"])
    assert sent_edges(shown(again)) == sent_edges(first)
    assert not any("saved graph" in one.value for one in again.run().success), "it is said once"


NO_GRAPHS: list[tuple[dict[str, Any], str]] = [
    ({"format": "x"}, "no graph that this page saved"),
    ({"choices": 3}, "“choices” are missing"),
    (
        {"choices": SAVED | {"model": "<b>gone</b>"}},
        "a graph of the model “<b>gone</b>”, which is not here",
    ),
    ({"choices": SAVED | {"position": True}}, "“position” is no whole number"),
    ({"choices": SAVED | {"boxes": 61}}, "“boxes” is no whole number from 4 to 60"),
    ({"choices": SAVED | {"share": float("nan")}}, "“share” is no number from 0.3 to 0.95"),
    ({"choices": SAVED | {"beyond_mean": "yes"}}, "neither true nor false"),
    ({"choices": SAVED | {"prompt": 3}}, "“prompt” is no text"),
    ({"pinned": ["embed@3"]}, "“pinned” is no text"),
    ({"groups": "x" * 5_000}, "“groups” is no text of at most 4,000 characters"),
    ({"nodes": [0] * 20_001}, "20,000 is the most"),
]


def test_a_file_that_is_no_saved_graph_changes_nothing_and_is_refused_in_words() -> None:
    for changes, said in NO_GRAPHS:
        with pytest.raises(ValueError, match=re.escape(said)):
            saved.check(read_file(content(**changes))[0])
    at = with_file(page(), choices=3)
    (error,) = (one.value for one in at.error)
    assert error.replace("\\", "").startswith("my graph.json: its “choices” are missing")
    assert sent_edges(shown(at)) == edges_of(usual())


def test_what_a_file_asks_for_and_the_page_does_not_have_is_named() -> None:
    at = with_file(page(), choices=SAVED | {"position": 100, "token": 10**6})
    assert any("not available here: position, token" in one.value for one in at.warning)


def test_the_boxes_of_mlps_are_features_with_what_they_speak_for_and_an_error() -> None:
    at = opened("pages/circuit.py", model="sentences", nodes="features", boxes="20")
    lm = gptviz.load("sentences")
    sent = payload(at, "circuit graph")[0]
    parts = {node["part"] for node in sent["nodes"]}
    assert {"dictionary", "missed"} <= parts
    assert "mlp" not in parts
    feature = next(node for node in sent["nodes"] if node["part"] == "dictionary")
    spoken = lm.promoted(feature["name"].partition("@")[0], 2).axes[0].labels
    assert feature["says"] == f"{feature['index']}: {spoken[0]}"
    assert all(f"“{token}”" in feature["title"] for token in spoken[:2])
    said = next(text.value for text in at.caption if "what the transcoders miss" in text.value)
    assert "between whole parts trace" in said
    # a feature that is open can be switched off, and leads to its page
    at = opened(
        "pages/circuit.py", model="sentences", nodes="features", boxes="20", box=feature["name"]
    )
    assert any("It speaks for" in text.value for text in at.markdown)
    at.button(key="switch off the node").click().run()
    assert not at.exception


def test_without_a_transcoder_there_is_no_choice_of_boxes() -> None:
    assert not [one for one in page().segmented_control if one.key == "nodes"]
