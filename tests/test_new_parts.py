"""A new part is one class and one entry in its table: whatever offers, draws, builds or describes
parts then has it too.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

import pytest
import streamlit as st
import torch
from streamlit.testing.v1 import AppTest
from torch import Tensor, nn
from torch.nn import functional as F

from gptviz.__main__ import main
from gptviz.interp.explaining.circuit_reads import Frozen
from gptviz.interp.explaining.decomposition import HEAD, Stream
from gptviz.interp.explaining.through_norms import read_through, written_through
from gptviz.interp.reading import gradients, positions
from gptviz.interp.reading.anatomy import anatomy
from gptviz.interp.reading.gradients import compare_untrained
from gptviz.interp.trace import run
from gptviz.model import Config, build, describe, parameter_count
from gptviz.model.parts.activations import ACTIVATIONS, Activation
from gptviz.model.parts.norms import NORMS, Norm
from gptviz.model.parts.part import Settings, distances
from gptviz.model.parts.positions import POSITIONS, PositionEncoding
from gptviz.model.parts.residuals import RESIDUALS, NormedResidual
from gptviz.model.tap import Tap
from gptviz.settings.fields import field_infos
from gptviz.streamlit_internals import READ_AS_A_WHOLE
from tests.app.opening import opened
from tests.command_line import Capture, output
from tests.tiny import TinyModel, scrambled, some_ids, tiny


class Swish(Activation):
    """x · σ(β · x) with a learned β."""

    title = "Swish"
    equation = "x · σ(beta · x)"
    about = "Each number times a share of it that grows with the number."

    def __init__(self) -> None:
        super().__init__()
        self.beta = nn.Parameter(torch.ones(()))

    def forward(self, x: Tensor) -> Tensor:
        return x * torch.sigmoid(self.beta * x)


class Centre(Norm):
    """x - mean."""

    title = "Centring"
    equation = "(x − mean)"
    about = "Subtracts the mean of a vector's numbers."

    def linear(self, x: Tensor) -> Tensor:
        return x - x.mean(-1, keepdim=True)

    def scale(self, x: Tensor) -> Tensor:
        return torch.ones_like(x[..., :1])


class Steps(Centre):
    """The difference of neighbouring numbers: turned around, it is another map."""

    title = "Steps"
    equation = "x − x of the neighbour"

    def linear(self, x: Tensor) -> Tensor:
        return x - x.roll(1, -1)


class Silent(Norm):
    """3 · tanh(x), which does not say what is linear in it."""

    title = "Silent"
    equation = "3 · tanh(x)"
    about = "Bends every number."

    def forward(self, x: Tensor) -> Tensor:
        return 3 * torch.tanh(x)


class Halved(NormedResidual):
    """½ · x + norm(f(x))."""

    title = "Halved"
    equation = "½ · x + norm(f(x))"
    steps = ("sublayer", "norm", "add")
    about = "Half of the stream is kept, and the sublayer's output is normalised."

    def forward(self, x: Tensor, sublayer: Callable[[Tensor], Tensor]) -> Tensor:
        return 0.5 * x + self.norm(self.dropout(sublayer(x)))


class Ramp(PositionEncoding):
    """x + t / context_length: every number of a vector grows with its position."""

    title = "Ramp"
    equation = "positions[t] = t / context_length"
    acts_on = "embedding"
    about = "A number that grows from place to place, so that the model can tell order."

    def __init__(self, settings: Settings) -> None:
        super().__init__(settings)
        self.length = settings.context_length

    def embed(self, x: Tensor, at: slice, tap: Tap) -> Tensor:
        ramp = torch.arange(at.start, at.stop, device=x.device, dtype=x.dtype) / self.length
        return x + tap("positions", ramp[:, None].expand(-1, x.shape[-1]))


class Near(PositionEncoding):
    """scores - |query - key|, in every head."""

    title = "Near"
    equation = "−|query − key|"
    acts_on = "scores"
    about = "A score falls by 1 with every step between two tokens."

    def weigh(self, scores: Tensor, q: Tensor, at: slice) -> Tensor:
        return scores - distances(at, scores.shape[-1], scores.device).abs().to(scores.dtype)


NEW: dict[str, tuple[str, Any]] = {
    "activation": ("swish", Swish),
    "norm": ("centre", Centre),
    "residual": ("halved", Halved),
    "positions": ("ramp", Ramp),
}
CHANGES = {field: name for field, (name, _) in NEW.items()}


@pytest.fixture(autouse=True)
def _new_parts(monkeypatch: pytest.MonkeyPatch) -> Any:
    tables: dict[str, Any] = {
        "activation": ACTIVATIONS,
        "norm": NORMS,
        "residual": RESIDUALS,
        "positions": POSITIONS,
    }
    for field, (name, part) in NEW.items():
        monkeypatch.setitem(tables[field], name, part)
    monkeypatch.setitem(POSITIONS, "near", Near)
    monkeypatch.setitem(NORMS, "silent", Silent)
    yield
    st.cache_data.clear()  # what pages computed with them


@pytest.mark.parametrize("field", NEW)
def test_a_config_takes_it_and_names_it_among_the_choices(field: str) -> None:
    name = NEW[field][0]
    config = tiny(**{field: name})
    assert Config.from_dict(json.loads(json.dumps(config.to_dict()))) == config
    with pytest.raises(ValueError, match=f"{field} is 'other'; it must be one of .*{name}"):
        tiny(**{field: "other"})


@pytest.mark.parametrize(
    "changes",
    [
        *({field: name} for field, (name, _) in NEW.items()),
        CHANGES,
        CHANGES | {"positions": "near"},
    ],
)
def test_the_model_builds_learns_and_is_described(changes: dict[str, str]) -> None:
    config = tiny(**changes)
    model = build(config, seed=0)
    assert sum(parameter.numel() for parameter in model.parameters()) == parameter_count(config)
    ids = some_ids(batch=8)
    optimiser = torch.optim.Adam(model.parameters(), lr=0.02)
    losses = []
    for _ in range(30):
        loss = F.cross_entropy(model(ids[:, :-1]).flatten(0, 1), ids[:, 1:].flatten())
        optimiser.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        optimiser.step()
        losses.append(loss.item())
    assert losses[-1] < losses[0] - 0.2
    kinds = {layer.kind for layer in describe(config)}
    assert ("Centre" in kinds) == ("norm" in changes)
    assert ("Swish" in kinds) == ("activation" in changes)


def test_the_map_draws_it_with_its_name_its_equation_and_its_weights() -> None:
    config = tiny(**CHANGES)
    drawn = anatomy(config, 5)
    assert sum(box.parameters for box in drawn.boxes) == parameter_count(config)
    boxes = {box.path.removeprefix("blocks.0."): box for box in drawn.boxes}
    neurons = boxes["mlp.neurons"]
    norm = boxes["attention.norm_after"]
    joined = boxes["resid_mid"]
    assert neurons.equation == "neurons = up · σ(beta · up)"
    assert [piece.symbol for piece in neurons.pieces] == ["neurons", "beta", "resid_mid"]
    assert f"Swish: {Swish.about}" in neurons.about
    assert norm.equation == "norm(out) = (out − mean) · gain + bias"
    assert f"Centring: {Centre.about}" in norm.about
    assert joined.equation == "resid_mid = ½ · resid_pre + norm(out)"
    assert f"Halved: {Halved.equation}" in joined.about
    assert {arrow.start for arrow in drawn.arrows if arrow.end == joined.path} == {
        "blocks.0.resid_pre",
        norm.path,
    }
    assert boxes["positions"].equation == Ramp.equation
    assert boxes["positions"].about == Ramp.about
    scores = anatomy(tiny(positions="near"), 5).box("blocks.0.attention.scores")
    assert scores.equation == "scores = q · kᵀ / √4 − |query − key|"


def test_the_map_shows_every_value_of_a_pass() -> None:
    config = tiny(**CHANGES)
    trace = run(build(config, seed=0), some_ids(5, 1))
    taps = {piece.name: piece.shape for box in anatomy(config, 5).boxes for piece in box.taps}
    assert taps == {name: tuple(value.shape[-len(taps[name]) :]) for name, value in trace.items()}


class Gated(NormedResidual):
    """x + σ(x) · f(norm(x)), which is no sum of x and f."""

    title = "Gated by the stream"
    equation = "x + σ(x) · f(norm(x))"
    steps = ("norm", "sublayer", "add")
    about = "The stream decides how much of the sublayer's output is added."

    def forward(self, x: Tensor, sublayer: Callable[[Tensor], Tensor]) -> Tensor:
        return x + torch.sigmoid(x) * self.dropout(sublayer(self.norm(x)))


def test_a_new_residual_is_taken_apart_where_it_is_linear_and_a_norm_that_does_not_say_how_is_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    ids = some_ids()[0].tolist()
    asked = torch.ones(8, 12, dtype=torch.float64)
    stream = Stream(scrambled(tiny(residual="halved", positions="ramp", activation="swish")), ids)
    added = stream.added_by_parts(stream.pull(HEAD, asked))
    assert sum(float(values[-1]) for values in added.values()) == pytest.approx(
        float(stream.final.sum()), abs=1e-4
    )
    frozen = Frozen(scrambled(tiny(residual="halved", norm="centre")), some_ids()[0], 4)
    top = frozen.logit(3, 5)
    for reads in (
        top,
        *frozen.inputs_of(frozen.units[-1], 4, top.directions[frozen.units[-1].layer][0]),
    ):
        assert float(reads.adds.sum()) + reads.rest == pytest.approx(reads.total, abs=1e-4)
    with pytest.raises(
        ValueError, match="the norm “Silent” does not say how it acts on the parts of a sum"
    ):
        Stream(scrambled(tiny(norm="silent")), ids)
    monkeypatch.setitem(RESIDUALS, "gated", Gated)
    with pytest.raises(
        ValueError, match="the residual “Gated by the stream” is not linear in the stream"
    ):
        Stream(scrambled(tiny(residual="gated")), ids).pull(HEAD, asked)


def test_the_page_attribution_takes_a_new_residual_apart_and_names_a_norm_that_it_cannot_follow(
    tiny_model: TinyModel,
) -> None:
    tiny_model(residual="halved", positions="ramp", activation="swish")
    tiny_model("centred", norm="centre")
    tiny_model("silent", norm="silent")
    for name in ("tiny", "centred"):
        page = opened("pages/attribution.py", model=name)
        assert not page.exception
        assert any(":green-badge" in markdown.value for markdown in page.markdown)
    silent = opened("pages/attribution.py", model="silent")
    assert not silent.exception
    assert "This model cannot be taken apart: the norm “Silent”" in silent.info[-1].value.replace(
        "\\", ""
    )


@pytest.mark.parametrize("kind", [Centre, Steps])
def test_weights_are_read_and_written_through_a_new_norm(kind: type[Norm]) -> None:
    """Their scale is 1, so that these norms are nothing but linear."""
    norm = kind(6, gain=True, bias=False)
    generator = torch.Generator().manual_seed(0)
    torch.nn.init.normal_(norm.get_parameter("weight"), generator=generator)
    rows, columns, x, y = (
        torch.randn(shape, generator=generator) for shape in ((4, 6), (6, 3), (6,), (3,))
    )
    with torch.no_grad():
        torch.testing.assert_close(read_through(norm, rows) @ x, rows @ norm(x))
        torch.testing.assert_close(written_through(norm, columns) @ y, norm(columns @ y))


def test_gradients_compares_a_new_residual_and_offers_a_new_activation() -> None:
    chosen = {"depth": 2, "width": 16, "seed": 97, "activation": "swish"}
    asked = {key: str(value) for key, value in (chosen | {"every": True}).items()}
    at = opened("pages/gradients.py", **asked)
    assert not at.exception
    assert not at.warning
    for chart in at.get("plotly_chart"):
        assert "halved" in [line["name"] for line in json.loads(chart.proto.spec)["data"]]
    assert any(f"halved, `{Halved.equation}`" in caption.value for caption in at.caption)
    assert "swish" in at.selectbox(key="activation").options
    assert "halved" in gradients.reaching(compare_untrained(**chosen))


@pytest.mark.parametrize(("kind", "part"), [("ramp", Ramp), ("near", Near)])
def test_positions_shows_a_new_kind_of_a_model_and_beside_another(
    tiny_model: TinyModel, kind: str, part: Any
) -> None:
    tiny_model(positions=kind, d_head=4)
    tiny_model("other", positions="learned", d_head=4)
    own = opened("pages/positions.py", model="tiny")
    assert not own.exception
    assert any(caption.value.startswith(part.about) for caption in own.caption)
    other = opened("pages/positions.py", model="other", beside=kind)
    assert not other.exception
    # of the prompt, for so small a model
    assert all("vocabulary" in warning.value for warning in other.warning)
    assert any(caption.value.startswith(part.about) for caption in other.caption)


def test_the_numbers_of_a_new_kind_are_its_own() -> None:
    ramp = build(tiny(positions="ramp"), seed=0)
    near = build(tiny(positions="near"), seed=0)
    assert positions.vectors(ramp, "ramp").values[:, 0] == pytest.approx([t / 8 for t in range(8)])
    assert (positions.score_bias(near, "near").values == [[-float(d) for d in range(8)]] * 3).all()


def _form() -> None:
    from gptviz.model import PRESETS, Config
    from gptviz.settings.fields import field_infos
    from gptviz.ui.pages.train.rules import architecture_values, field_controls

    field_controls(field_infos(Config), architecture_values(PRESETS["generator"]), ("n_layer",))


def test_the_train_form_offers_and_explains_it() -> None:
    at = AppTest.from_function(_form)
    at.session_state[READ_AS_A_WHOLE] = True
    assert not at.run().exception
    for field, (name, part) in NEW.items():
        control = at.selectbox(key=f"run_{field}")
        assert name in control.options
        assert part.about in control.help
        assert part.equation in control.help


@pytest.mark.usefixtures("home")
def test_the_command_line_trains_with_it_describes_it_and_names_it_in_the_help(
    capsys: Capture,
) -> None:
    sizes = {"n_layer": 1, "n_head": 2, "d_model": 8}
    changes = [
        word for field, value in (CHANGES | sizes).items() for word in ("--set", f"{field}={value}")
    ]
    quick = (
        "--steps",
        "2",
        "--batch-size",
        "2",
        "--evaluations",
        "1",
        "--snapshots",
        "0",
        "--device",
        "cpu",
    )
    assert main(["train", "copy", "--name", "new", *quick, *changes]) == 0
    capsys.readouterr()
    described = output(capsys, "describe", "new")
    assert re.search(r"blocks.0.attention_residual.norm +Centre ", described)
    assert re.search(r"blocks.0.mlp.activation +Swish ", described)
    with pytest.raises(SystemExit):
        main(["train", "--help"])
    help_text = " ".join(capsys.readouterr().out.split())
    for name, part in NEW.values():
        assert f"- {name}: {part.about} {part.equation}" in help_text


def test_every_field_of_a_config_says_what_it_is() -> None:
    for name, info in field_infos(Config).items():
        assert info.label
        assert info.help.endswith("."), name
        assert set(info.about_choices) == set(info.choices)
