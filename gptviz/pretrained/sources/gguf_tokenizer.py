"""The tokenizer in the header of a GGUF file."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from gptviz.text import Tokenizer
from gptviz.text.chat import ChatTemplate
from gptviz.text.tokenizers.bpe import BPETokenizer
from gptviz.text.tokenizers.byte_pairs import CUTS, GPT2, Cut, byte_pairs
from gptviz.text.tokenizers.sentencepiece import PieceKind, Pieces, SpaceBefore, from_pieces

from ..families import ImportRefusedError

# Families whose files may not say how texts are split into words: old converters knew only one way.
CUT_AS_GPT2 = ("gpt2", "gptneox")
# The name of a token in a chat template → the name of its id in the header.
NAMED = {
    "bos_token": "tokenizer.ggml.bos_token_id",
    "eos_token": "tokenizer.ggml.eos_token_id",
    "unk_token": "tokenizer.ggml.unknown_token_id",
    "pad_token": "tokenizer.ggml.padding_token_id",
}
# For a vocabulary that merges nothing: llama.cpp asks for merges, and a list of GGUF has entries.
# No text has these two bytes.
NO_MERGE = "þ ÿ"
ENDS = ("tokenizer.ggml.eos_token_id", "tokenizer.ggml.eot_token_id")


class HeaderTokens:
    """The description of tokens in a GGUF header; `setting` returns a value of it by its name, or
    None if it is missing.
    """

    def __init__(self, setting: Callable[[str], Any]) -> None:
        self._setting = setting
        self.tokens: list[str] = self._list("tokenizer.ggml.tokens", str)

    def _list(self, name: str, kind: type) -> list[Any]:
        values = self._setting(name)
        if values is None:
            return []
        if not isinstance(values, list) or not all(isinstance(value, kind) for value in values[:1]):
            raise ImportRefusedError(f"{name} is not a list as it should be")
        return values

    def _id(self, name: str) -> int | None:
        """The token whose id the header gives under this name, or None if there is no such
        token.
        """
        value = self._setting(name)
        if (
            not isinstance(value, int)
            or isinstance(value, bool)
            or not 0 <= value < len(self.tokens)
        ):
            return None
        return value

    def tokenizer(self) -> Tokenizer | None:
        """The tokenizer, or None if the file has none."""
        kind = self._setting("tokenizer.ggml.model")
        if kind is None:
            return None
        kinds: dict[str, Callable[[], Tokenizer]] = {
            "gpt2": self._byte_pairs,
            "llama": self._sentencepiece,
        }
        if not isinstance(kind, str) or kind not in kinds:
            raise ImportRefusedError(
                f"its tokenizer is of kind {kind!r:.40}; of GGUF files gptviz reads "
                f"{' and '.join(map(repr, kinds))}"
            )
        return kinds[kind]()

    def _cut_settings(self) -> Cut:
        name = self._setting("tokenizer.ggml.pre")
        architecture = self._setting("general.architecture")
        if name is None and architecture in CUT_AS_GPT2:
            return GPT2
        if name is None:
            raise ImportRefusedError(
                "it does not say how a text is cut into tokens (tokenizer.ggml.pre is missing): "
                "convert the model again with a newer llama.cpp"
            )
        if not isinstance(name, str) or name not in CUTS:
            raise ImportRefusedError(
                f"a text is cut into tokens as {name!r:.40} says (tokenizer.ggml.pre); gptviz "
                f"knows {', '.join(CUTS)}"
            )
        return CUTS[name]

    def _byte_pairs(self) -> Tokenizer:
        cut = self._cut_settings()
        kinds = self._list("tokenizer.ggml.token_type", int)
        special, whole = (
            [place for place, kind in enumerate(kinds[: len(self.tokens)]) if kind == wanted]
            for wanted in (PieceKind.CONTROL, PieceKind.USER_DEFINED)
        )
        merges = [merge for merge in self._list("tokenizer.ggml.merges", str) if merge != NO_MERGE]
        return self._frame_tokenizer(
            byte_pairs(self.tokens, merges, special, whole, cut), start=cut.start
        )

    def _sentencepiece(self) -> Tokenizer:
        space_before = self._setting("tokenizer.ggml.add_space_prefix")
        pieces = Pieces(
            self.tokens,
            self._list("tokenizer.ggml.scores", float),
            self._list("tokenizer.ggml.token_type", int),
            space_before=SpaceBefore.NOTHING if space_before is False else SpaceBefore.EVERY_PART,
        )
        return self._frame_tokenizer(from_pieces(pieces), start=True)

    def _frame_tokenizer(self, tokenizer: BPETokenizer, *, start: bool) -> Tokenizer:
        """The tokenizer with the tokens that the header puts before and after a text; `start` is
        the default for the first.
        """
        adds_start = self._setting("tokenizer.ggml.add_bos_token")
        if start if adds_start is None else adds_start is True:
            before = self._id(NAMED["bos_token"])
        else:
            before = None
        if self._setting("tokenizer.ggml.add_eos_token") is True:
            after = self._id(NAMED["eos_token"])
        else:
            after = None
        if before is None and after is None:
            return tokenizer
        return tokenizer.with_frame(
            [] if before is None else [before], [] if after is None else [after]
        )

    def end_tokens(self) -> tuple[int, ...]:
        """The tokens that end a text."""
        ends = (self._id(name) for name in ENDS)
        return tuple(dict.fromkeys(place for place in ends if place is not None))

    def chat(self) -> ChatTemplate | None:
        """The chat template, or None if there is none."""
        template = self._setting("tokenizer.chat_template")
        if not isinstance(template, str) or not template:
            return None
        places = {name: self._id(setting) for name, setting in NAMED.items()}
        chat = ChatTemplate(
            template,
            {name: self.tokens[place] for name, place in places.items() if place is not None},
        )
        chat.check_length()
        return chat
