"""The loss of a model on a text, the same number everywhere."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional as F

from gptviz.model import Transformer

MOST_LOGITS = 2**26  # at a time: a quarter of a gigabyte


@torch.inference_mode()
def evaluate(model: Transformer, ids: Tensor, batch_tokens: int = 8_192) -> tuple[float, int]:
    """Mean cross-entropy in nats per token over all of `ids` [N], and over how many predictions.

    The text is cut into consecutive windows of the context length (the last may be shorter); in each, every token is
    predicted from those before it within the window. Dropout is off, the weights' own precision is used.

    Raises:
        ValueError: fewer than two tokens, so that there is nothing to predict.
    """
    if len(ids) < 2:
        raise ValueError(f"a loss needs at least 2 tokens, the text has {len(ids)}")
    device = model.embed.weight.device
    context = model.config.context_length
    whole = (len(ids) - 1) // context * context
    inputs = ids[:whole].view(-1, context)  # [windows, T]
    targets = ids[1 : whole + 1].view(-1, context)  # [windows, T]
    rows = max(min(batch_tokens, MOST_LOGITS // model.config.vocab_size) // context, 1)
    batches = list(zip(inputs.split(rows), targets.split(rows), strict=True)) if whole else []
    if whole < len(ids) - 1:
        batches.append((ids[None, whole:-1], ids[None, whole + 1 :]))
    was_training = model.training
    model.eval()
    total = 0.0
    for x, y in batches:
        logits = model(x.to(device))  # [rows, T, vocab_size]
        total += F.cross_entropy(logits.flatten(0, 1).float(), y.to(device).flatten(), reduction="sum").item()
    model.train(was_training)
    return total / (len(ids) - 1), len(ids) - 1
