"""The Circuit page as a reader meets it, without a browser."""

from __future__ import annotations

from typing import Any

import pytest
from streamlit.testing.v1 import AppTest

import gptviz
from gptviz.figures.kit.format import signed
from gptviz.interp.explaining.circuit import Circuit
from gptviz.ui.pages.circuit import show as page_code
from gptviz.ui.pages.circuit.tries import CORE
from tests.app.opening import opened, page_at, payload, views
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
    return [(name[edge["from"]], name[edge["to"]], edge["kind"], edge["value"]) for edge in sent["edges"]]


def test_the_page_shows_the_circuit_of_the_likeliest_token_at_once() -> None:
    found = gptviz.load("tiny").circuit(PROMPT, share=page_code.SHARE)
    assert sent_edges(shown(page())) == edges_of(found)


def test_position_token_share_and_the_other_token_of_a_link_are_those_of_the_graph() -> None:
    lm = gptviz.load("tiny")
    likely = lm.model(lm.encode(PROMPT)[None])[0, 2].topk(3).indices.tolist()
    names = [lm.tokenizer.label(token) for token in likely]
    at = page(position="2", token=names[1], against=names[2], share="0.5")
    assert sent_edges(shown(at)) == edges_of(lm.circuit(PROMPT, likely[1], 2, likely[2], share=0.5))


def test_the_token_goes_along_with_the_likeliest_until_another_one_is_chosen() -> None:
    lm = gptviz.load("tiny")
    likeliest = lm.model(lm.encode(PROMPT)[None])[0].argmax(-1).tolist()
    other = next(place for place, token in enumerate(likeliest) if token != likeliest[-1])
    at = page()
    assert at.selectbox(key="token").value == str(likeliest[-1])
    there = at.selectbox(key="token").options
    at.query_params["position"] = str(other)
    assert at.run().selectbox(key="token").value == str(likeliest[other])
    box = at.selectbox(key="token")
    chosen = next(label for label in box.options[1:] if label in there[1:])
    box.select_index(box.options.index(chosen)).run()
    at.query_params["position"] = str(len(likeliest) - 1)
    assert lm.tokenizer.label(int(at.run().selectbox(key="token").value)) == chosen, "it was chosen, and is offered here too"


def test_beside_the_likeliest_tokens_the_one_that_really_comes_next_is_offered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(page_code, "OFFERED", 1)
    lm = gptviz.load("tiny")
    likeliest = int(lm.model(lm.encode(PROMPT)[None])[0, 1].argmax())
    assert page(position="1").selectbox(key="token").options == [lm.tokenizer.label(likeliest), PROMPT[2]]


def test_without_the_mean_all_that_parts_add_counts() -> None:
    found = gptviz.load("tiny").circuit(PROMPT, share=page_code.SHARE, beyond_mean=False)
    sent = shown(page(beyond_mean="false"))
    assert sent_edges(sent) == edges_of(found)
    assert "beyond_mean=False" in sent["code"]
    assert sent_edges(sent) != sent_edges(shown(page()))


def test_the_code_below_gives_the_numbers_of_the_graph() -> None:
    sent = shown(page(share="0.6"))
    lines: dict[str, Any] = {}
    exec(sent["code"], lines)
    for (source, target, kind, value), expected in zip(lines["numbers"], sent_edges(sent), strict=True):
        assert (source, target, kind) == expected[:3]
        assert value == pytest.approx(expected[3], abs=1e-6)
    assert lines["checked"].whole == pytest.approx(lines["found"].total, abs=1e-4)


def test_the_check_says_what_is_left_and_stays_in_the_address() -> None:
    at = page()
    at.button(key="check the graph").click().run()
    assert at.query_params["check"] == "true"
    lm = gptviz.load("tiny")
    kept = lm.check_circuit(lm.circuit(PROMPT, share=page_code.SHARE))
    for visit in (at, page(check="true")):
        (said,) = (one.value for one in visit.markdown if "Checked:" in one.value)
        assert f"**{kept.kept:.3g}** instead of {kept.whole:.3g}" in said
        assert f"keeps **{100 * kept.share:.3g} %** of the answer" in said


def test_an_open_head_leads_to_its_pattern_and_can_be_switched_off() -> None:
    found = gptviz.load("tiny").circuit(PROMPT, share=page_code.SHARE)
    head = next(node for node in found.nodes if node.unit is not None and node.unit.is_head)
    at = page(node=head.name)
    assert any(one.value.startswith(f"**{head.unit.title[0].upper()}{head.unit.title[1:]}**") for one in at.markdown)  # type: ignore[union-attr]
    links = {link.proto.label: link.proto.query_string for link in at.main.get("page_link")}
    assert f"block={head.unit.block}" in links["What it looks at"]  # type: ignore[union-attr]
    assert f"head={head.unit.index}" in links["What it looks at"]  # type: ignore[union-attr]
    at.button(key="switch off the node").click().run()
    assert head.unit.name not in [node["name"].split("@")[0] for node in shown(at)["nodes"]]  # type: ignore[union-attr]


def test_an_open_head_says_what_it_reads_mostly_even_where_that_takes_away() -> None:
    found = gptviz.load("tiny").circuit(PROMPT, share=page_code.SHARE)
    read = {node: [edge for edge in found.edges if edge.target == node and edge.kind == "value"] for node in found.nodes}
    most = {node: max(edges, key=lambda edge: abs(edge.value)) for node, edges in read.items() if edges}
    node, edge = next((node, edge) for node, edge in most.items() if edge.value < 0 < max(one.value for one in read[node]))
    assert node.unit is not None
    title = f"**{node.unit.title.capitalize()}** at position {node.position}"
    (said,) = (one.value for one in page(node=node.name).markdown if one.value.startswith(title))
    assert f"({signed(edge.value)})." in said.partition("It reads mostly")[2].partition("It looks")[0]


def test_a_node_of_another_graph_is_closed() -> None:
    at = page(node="<b>no such node</b>")
    assert any("Choose a box" in one.value for one in at.caption)


def test_what_is_suggested_is_true_of_the_model() -> None:
    at = page(share="0.9")
    labels = [button.label for button in at.button]
    if "Its core alone" in labels:
        core = gptviz.load("tiny").circuit(PROMPT, share=CORE)
        assert any(one.value.startswith(f"{len(core.nodes)} of the ") for one in at.caption)
        at.button(key="try Its core alone").click().run()
        assert sent_edges(shown(at)) == edges_of(core)
    at.button(key="try Why not the second one?").click().run()
    assert shown(at)["against"] is not None


def test_a_model_of_nothing_but_an_embedding_has_a_circuit_too(tiny_model: TinyModel) -> None:
    tiny_model(n_layer=0)
    assert {edge[2] for edge in sent_edges(shown(page()))} == {"logit"}


def test_the_search_in_a_large_model_goes_on_by_itself_and_gives_the_same_graph(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(page_code, "MOST", 0)
    at = page(share="0.7")
    wait_until(lambda: any(view.proto.id.endswith("-circuit graph") for view in views(at.run())))
    assert sent_edges(shown(at)) == edges_of(gptviz.load("tiny").circuit(PROMPT, share=0.7))


def test_the_model_of_sentences_is_asked_what_decides_between_right_and_wrong() -> None:
    at = opened("pages/circuit.py", model="sentences")
    at.button(key="try Mary or John?").click().run()
    sent = shown(at)
    assert (sent["answer"], sent["against"]) == ("Mary", "John")
    lm = gptviz.load("sentences")
    found = lm.circuit("When Mary and John went to the shop, John gave a book to", "Mary", against="John", share=CORE)
    assert sent_edges(sent) == edges_of(found)
    assert any(f"ahead of John by {found.total:.3g}" in one.value for one in at.caption)
