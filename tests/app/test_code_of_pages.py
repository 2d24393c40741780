"""The code that a page prints, run as a reader runs it, gives the numbers that the page shows."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from gptviz.labelled_array import LabelledArray
from gptviz.ui.menu import PAGES
from gptviz.ui.records import classify, compare, stream
from gptviz.ui.records.features import SUPERPOSITION
from gptviz.ui.records.gradients import STEP
from gptviz.ui.records.heads import READS
from gptviz.ui.records.translate import BEAM_SEARCH
from gptviz.ui.views.texts import OWN
from gptviz.ui.views.where_most import WRITTEN
from tests.app.conftest import OF_KIND
from tests.app.opening import last_value, opened

# Pages, and what is chosen on them besides the model.
STATES: list[tuple[str, dict[str, str]]] = [
    ("attribution", {}),
    ("attribution", {"position": "1", "minus": "none: its logit alone"}),
    ("context", {"how": "removed"}),
    ("embeddings", {}),
    ("embeddings", {"space": "unembedding", "dimensions": "3-D"}),
    ("features", {"view": SUPERPOSITION, "sparsity": "98%"}),
    (
        "gradients",
        {"depth": "3", "std": "0.08", "shrink": "false", "seed": "2", "activation": "gelu"},
    ),
    ("gradients", {"view": STEP, "model": OF_KIND["decoder"]}),
    *(
        ("heads", {"over": over, "prompt": "the the film"})
        for over in ("Repeated random tokens", "The prompt")
    ),
    *(("heads", {"stack": stack}) for stack in ("encoder", "decoder", "cross")),
    ("heads", {"view": READS, "reads": "query"}),
    ("lens", {}),
    ("lens", {"rows": "every block"}),
    *(("neurons", {"text": text, "own": "the film 'was' good"}) for text in (OWN, WRITTEN)),
    ("patching", {}),
    ("patching", {"of": "Values (v)", "wrong": "e"}),
    ("positions", {}),
    ("positions", {"model": "ladder-8", "beside": "ALiBi"}),
    *(("stream", {"view": view, "position": "1"}) for view in (stream.MAP, stream.WRITTEN)),
    ("stream", {"view": stream.WRITTEN}),
    ("switch_off", {}),
    ("switch_off", {"edits": "blocks.0.mlp=mean,blocks.1.attention.head.0"}),
    *(("compare", {"compared": view, "b_edits": "blocks.0.mlp"}) for view in compare.VIEWS),
    ("compare", {"compared": compare.ANSWERS, "sentences": "How\nlove", "answer_words": "n,m"}),
    *(
        ("classify", {"view": view, "prompt": "the film wasn't 'good'"})
        for view in (classify.WORDS, classify.OWN)
    ),
    ("translate", {"view": BEAM_SEARCH}),
    ("translate", {"view": BEAM_SEARCH, "width": "2", "penalty": "0.5"}),
]


@pytest.mark.usefixtures("one_of_each")
@pytest.mark.parametrize(
    ("name", "chosen"),
    STATES,
    ids=lambda one: one if isinstance(one, str) else " ".join(one.values()),
)
def test_the_code_gives_the_numbers_of_the_page(name: str, chosen: dict[str, str]) -> None:
    page = PAGES[name]
    for kind in page.kinds:
        at = opened(page.path, **{"model": OF_KIND[kind]} | chosen)
        at.session_state[f"{name} numbers"] = True
        shown = at.run().dataframe[-1].value
        code = next(one.value for one in reversed(at.code) if "gptviz." in one.value)
        computed = last_value(code)
        assert isinstance(computed, LabelledArray)
        expected = pd.DataFrame(computed.records()).head(len(shown))
        last, same = (table.iloc[:, -1].to_numpy(float) for table in (shown, expected))
        np.testing.assert_allclose(last, same, rtol=1e-5, atol=1e-6, err_msg=kind)
