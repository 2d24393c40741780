"""The page Embeddings."""

from gptviz.ui.page import DETAILS_BELOW, Page

MAP = "Map"
WAVES = "Waves"

PAGE = Page(
    name="embeddings",
    title="Embeddings",
    icon=":material/scatter_plot:",
    group="What it is made of",
    place=10,
    question="Which tokens look alike to the model?",
    caption=(
        "Each token is a point, placed by its vector, a list of numbers. Rings mark the "
        "prompt's tokens, lines the chosen token's true neighbours, however far apart."
    ),
    sentence="The map of all tokens, as the model knows them.",
    step="Inside the model a token first becomes a vector: see which tokens lie close together.",
    reads_prompt=False,
    words=("token", "vector", "embedding", "unembedding", "cosine", "projection"),
    tour=(
        (
            "At the top: the **Model**, and its **Training step** where it has snapshots. "
            "**Vectors** and **Projection** say "
            "what is drawn, and how."
        ),
        "The map: each point is a token. Points that are near each other have similar vectors, as "
        "far as a plane can show it.",
        "Beside it: the tokens that are nearest to the chosen **Token**, measured in all "
        "dimensions.",
        DETAILS_BELOW,
    ),
    opens_on="sentences",
)
