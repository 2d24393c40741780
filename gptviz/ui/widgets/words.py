"""The words of the field, each explained in a sentence, in one place."""

from __future__ import annotations

import re

from gptviz.languages import translate

MEANINGS = {
    "token": (
        "A piece of text that the model reads or writes as one: depending on the model a letter, "
        "a part of a word or a word."
    ),
    "prompt": "The text that the model is given to read.",
    "vector": "A list of numbers. What the model knows about a token at some place is a vector.",
    "embedding": "The vector that a token is read as. It was learned.",
    "unembedding": "The vector that the model's last state is compared with, to find out how "
    "likely a token is.",
    "cosine": "How far two vectors point the same way: 1 the same, 0 at right angles, −1 the "
    "opposite.",
    "projection": "A picture in two or three dimensions of vectors that have many more. Something "
    "is always lost.",
    "residual stream": "The vector of a token on its way through the model: every block reads it "
    "and adds something to it.",
    "block": "A layer of the model: attention, then an MLP. Blocks are numbered from 0.",
    "MLP": (
        "The part of a block that works on each token by itself (multi-layer perceptron): two "
        "matrices with a curved function "
        "between them."
    ),
    "expert": "One of several small MLPs that stand side by side in a block: each token passes "
    "only a few of them.",
    "router": "The matrix that chooses the experts of a token, and weighs what they give.",
    "norm": "A step that brings a vector to a usual size, so that numbers neither grow nor shrink "
    "from block to block.",
    "attention": "The part of a block in which tokens read each other: each takes from some others "
    "what it needs.",
    "induction head": (
        "A head that finds where the current token stood before, and reads what followed it, so "
        "that it can be written again."
    ),
    "sink": "A token, mostly the first, that heads look at when they find nothing to read.",
    "eigenvalue": "By how much a matrix stretches one of its own directions: below 0, it turns "
    "that direction around.",
    "circuit": "The few parts of a model that together do one thing, and how they read each other.",
    "mean ablation": "Replacing what a part computes by what it computes on average, so that it "
    "says nothing about this text.",
    "composition": "One head reads what another one has written into the stream: two heads then do "
    "what one cannot.",
    "activation": "The value of a neuron at a token.",
    "head": "One of several attentions that run side by side in a block, each with a pattern of "
    "its own.",
    "query": "What a token looks for: the vector of the token that reads.",
    "key": "What a token offers to be found by: the vector of a token that may be read.",
    "value": "What is taken from a token when it is read.",
    "pattern": "How a token shares its attention among the tokens it may read: each row sums to "
    "100 %.",
    "mask": "It decides which tokens are hidden from a token: a causal mask hides those that come "
    "later, a full mask hides none.",
    "patching": "Putting a piece of what a model computed for one text into what it computes for "
    "another one.",
    "LoRA": (
        "Training small factors beside a model's matrices, while its own weights stay as they are "
        "(low-rank adaptation)."
    ),
    "adapter": "What LoRA trains: a small change of a model's weights, kept apart from them and "
    "added with any strength.",
    "rank": "In how many directions a matrix, or a change of one, can act. An adapter has few, a "
    "whole matrix has many.",
    "cross-attention": "Attention from the output into the source: what a model reads in one text "
    "while it writes another.",
    "encoder": "The part of a model that reads a text as a whole and writes nothing.",
    "decoder": "The part of a model that writes, token by token, and reads what it has written.",
    "beam search": (
        "A search that keeps several beginnings of an output at once, to find the one that is "
        "likeliest as a whole."
    ),
    "position encoding": "How a model is told where a token stands: attention by itself sees no "
    "order.",
    "learned positions": "A vector for each place, found by training.",
    "sinusoidal positions": "A vector for each place made of sine waves, slow ones and fast ones.",
    "rotary positions": "Queries and keys are turned by an angle that grows with the place, so "
    "that distance counts.",
    "ALiBi": "A score is lowered in proportion to the distance, with another factor for each head.",
    "logit": (
        "The number that the model gives a token before softmax turns the numbers into "
        "probabilities: the higher, the likelier."
    ),
    "softmax": "The step that turns any numbers into probabilities: all above 0, and together 100 "
    "%.",
    "temperature": "What logits are divided by before a draw: below 1 the likely become likelier, "
    "above 1 less so.",
    "top-k, top-p": (
        "Ways to leave unlikely tokens out: top-k keeps the k likeliest, top-p the fewest that "
        "together reach the probability p."
    ),
    "nat": "The unit of surprise: a token of probability p costs −ln p nats. 0.69 nats are one "
    "bit.",
    "bit": "The answer to one question with yes or no. A token of probability p costs −log2 p "
    "bits.",
    "entropy": "How uncertain a guess is: the surprise to expect on average, in nats or bits.",
    "perplexity": (
        "The model is as uncertain as if it chose among this many equally likely tokens: e to the "
        "power of the loss in nats."
    ),
    "speculative decoding": (
        "A fast drafter proposes tokens, and one pass of a large model accepts or refuses them: "
        "the text stays the large model's."
    ),
    "drafter": "What proposes tokens in speculative decoding: a small model, or a copy of what "
    "followed earlier in the text.",
    "log-probability": "The logarithm of a probability. Those of a text's tokens add up to that of "
    "the text.",
    "loss": "The mean surprise at the right token, in nats: what training lowers.",
    "standard error": "How far a mean, or a share, would move only by chance if it were counted "
    "again on other rows.",
    "interval": "The shares that could lie behind one that was counted: 95 % of all counts lie "
    "within what chance allows.",
    "training data": "The texts that a model learns from. It gives each word about the share that "
    "the word has there.",
    "validation": "Measuring the model on data that it was not trained on: what it learned by "
    "heart does not help there.",
    "gradient": "For each number in the model, how the loss would change with it: the way to lower "
    "the loss.",
    "residual connection": "The way past a part of a block: what goes in is added to what comes "
    "out.",
    "pre-norm, post-norm": "Where the norm stands: before a part of the block reads, or after its "
    "result was added.",
    "quantisation": "Rounding weights to numbers that a few bits can name, so that a model takes "
    "less memory.",
    "bits per weight": "How many binary digits a number of the model takes: 32 in float32, 4 or 5 "
    "in many files of today.",
    "outlier": "A number much farther from 0 than its neighbours: when they are rounded together, "
    "it makes their steps large.",
    "float32": "The usual kind of number in a computer: it has nothing between 0 and about 10⁻⁴⁵.",
    "step": "One change of the weights, after one batch was read.",
    "snapshot": "A copy of a model that was kept while it was trained, as it was after some step.",
    "singular value": "By how much a matrix stretches in one of its own directions. If few are "
    "large, it works in few.",
    "batch": "The pieces of data that one step of training reads side by side.",
    "operation": "A multiplication or an addition of two numbers. Those of matrix products are "
    "counted; all others are few.",
    "activations": "What a forward pass computes and a step of training keeps until the gradients "
    "are known.",
    "optimiser": "What turns gradients into changes of the weights. Most kinds keep numbers of "
    "their own for every weight.",
    "keys and values": "What attention keeps of the tokens it has read, so that the next token "
    "need not compute them again.",
    "learning rate": "How far a step changes the weights at most.",
    "dropout": "Leaving out numbers at random during training, so that no result depends on a "
    "single number.",
    "weights": "The numbers that training finds: the model's parameters.",
    "parameter": "One of the numbers that training finds. A model of 100 million parameters is "
    "small today.",
    "tokenizer": "What cuts a text into the tokens that a model reads. It belongs to the model.",
    "vocabulary": "All tokens that a model knows, each with its number.",
    "byte": "A number from 0 to 255: what texts are stored in. A Latin letter takes one, other "
    "characters two to four (UTF-8).",
    "byte-pair encoding": (
        "A way to find tokens: the two neighbours that are most frequent become one token, again "
        "and again. BPE for short."
    ),
    "merge": "One step of byte-pair encoding: two neighbouring tokens become one.",
    "special token": "A token that stands for no text, such as the end of a text, or the beginning "
    "of a turn in a chat.",
    "hub": "A place on the internet where people publish models. The largest is that of the "
    "company Hugging Face.",
    "GGUF": "A kind of file with a whole model in it, often with rounded weights: that of Ollama, "
    "LM Studio and llama.cpp.",
    "licence": "What its makers allow others to do with a model.",
    "label": "What a classifier says about a text, such as positive or negative.",
    "bias": "A number that is added whatever the text is.",
    "frozen norm": "A norm that keeps the number it divided by in one run: then it acts on every "
    "part of a sum by itself.",
    "feature": "A direction in the stream that stands for one thing, such as an open bracket. Few "
    "are active at a token.",
    "transcoder": "A dictionary of features that stands for an MLP: from what the MLP reads, its "
    "features give back what the MLP writes.",
    "neuron": "One number in the middle of an MLP: it is active or not, and writes one vector of "
    "its own.",
}


def explain_word(word: str) -> str:
    """A word, its name in the reader's language, and its meaning, as Markdown."""
    other = translate(word)
    return f"**{word}**{'' if other == word else f' ({other})'}: {translate(MEANINGS[word])}"


def words_in(sentence: str) -> list[str]:
    """The words of the glossary in a sentence, also in the plural, in their order; what stands in
    quotation marks is text of a user or a model, and has none.
    """
    plain = re.sub("“.*?”", " ", sentence)
    return list(dict.fromkeys(_NAMES[match[1].lower()] for match in _WORD.finditer(plain)))


_NAMES = {word.lower(): word for word in MEANINGS}
# the longest first, so that "residual stream" is not read as two words
_WORD = re.compile(
    rf"\b({'|'.join(map(re.escape, sorted(MEANINGS, key=len, reverse=True)))})(?:s|es)?\b",
    re.IGNORECASE,
)
