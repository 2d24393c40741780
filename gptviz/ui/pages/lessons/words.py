"""How to write a lesson."""

from __future__ import annotations

HOW = """A lesson is a Markdown file with the ending `.md`. It begins with its settings; every heading `##` begins a step. In a
step, a block `page` opens a page in a given state (`open` is the name in the page's address, and each other line is what the
address says), and a block `question` asks something: a `choice`, a `number`, a `token`, or a `state` that is chosen on the page:
`state: block, head` names what the click writes into the address, and the answer is then like "1.3".
A choice has its `options: [one, other]`; a number may be off by `within`.
A first wrong answer shows the `hint`, if there is one, and the reader may try once more; then the answer and the `reveal` are
shown.
The answer is an expression that the model computes, and so is every `{{ … }}` in the text. In an expression a text stands in
quotes: `answer: likeliest("When Mary")`. A `claim`, in a block of either kind, is an expression, or a list of them, that is true
if what your step says is true, such as `claim: probability("ROMEO:", "\\n") > 0.5`. Readers do not see it.
`python -m gptviz lessons check DIR` opens every page, computes every answer and every claim, and names the file, the line and
what to write instead where something does not work, or is not true."""
EXAMPLE = """---
title: A first lesson
about: How sure is the model after a name?
minutes: 5
based_on: [my own course]
model: shakespeare
---

## After a name

In a play a name stands on a line of its own.

```page
open: next_token
prompt: "ROMEO:"
look_at: The longest bar is the likeliest token.
claim: probability("ROMEO:", "\\n") > 0.5
```

```question
ask: How likely is a line break after “ROMEO:”, in percent?
kind: number
answer: 100 * probability("ROMEO:", "\\n")
within: 5
unit: "%"
hint: What can stand after a name and a colon?
reveal: "The runner-up is {{quoted(likeliest(\\"ROMEO:\\", 2)[1])}}."
```"""
