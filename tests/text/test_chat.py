"""Chat templates: the same text as `transformers` makes of them, and nothing that a hostile one can
do.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from gptviz.text import confined
from gptviz.text.chat import LONGEST_TEXT, ChatError, ChatTemplate
from gptviz.text.confined_process import fill_template
from gptviz.text.tokenizers.bpe import BPETokenizer

CHATML = (
    "{% for message in messages %}{% if loop.first and messages[0]['role'] != 'system' %}{{ "
    "'<|im_start|>system\n"
    "You are a helpful assistant.<|im_end|>\n' }}{% endif %}{{'<|im_start|>' + message['role'] + "
    "'\n' + message['content'] "
    "+ '<|im_end|>' + '\n'}}{% endfor %}{% if add_generation_prompt %}{{ "
    "'<|im_start|>assistant\n' }}{% endif %}"
)
LLAMA2 = (
    "{% if messages[0]['role'] == 'system' %}{% set loop_messages = messages[1:] %}{% else %}{% "
    "set loop_messages = messages %}"
    "{% endif %}{% for message in loop_messages %}{% if (message['role'] == 'user') != "
    "(loop.index0 % 2 == 0) %}"
    "{{ raise_exception('Conversation roles must alternate user/assistant/user/assistant/...') "
    "}}{% endif %}"
    "{% if message['role'] == 'user' %}{{ bos_token + '[INST] ' + message['content'].strip() + ' "
    "[/INST]' }}"
    "{% else %}{{ ' ' + message['content'].strip() + ' ' + eos_token }}{% endif %}{% endfor %}"
)
GEMMA = (
    "{{ bos_token }}\n{%- for message in messages -%}\n    {%- if (message['role'] == "
    "'assistant') -%}{%- set role = 'model' -%}"
    "{%- else -%}{%- set role = message['role'] -%}{%- endif -%}\n    {{ '<start_of_turn>' + role "
    "+ '\n' }}"
    "{%- if message['content'] is string -%}{{ message['content'] | trim }}{%- endif -%}{{ "
    "'<end_of_turn>\n' }}"
    "{%- endfor -%}\n{%- if add_generation_prompt -%}\n    {{ '<start_of_turn>model\n' }}\n{%- "
    "endif -%}\n"
)
ZEPHYR = (
    "{% for message in messages %}\n{% if message['role'] == 'user' %}\n{{ '<|user|>\n' + "
    "message['content'] + eos_token }}\n"
    "{% elif message['role'] == 'assistant' %}\n{{ '<|assistant|>\n'  + message['content'] + "
    "eos_token }}\n{% endif %}\n"
    "{% if loop.last and add_generation_prompt %}\n{{ '<|assistant|>' }}\n{% endif %}\n{% endfor %}"
)
OTHER = (
    "{% set ns = namespace(n=0) %}{% for message in messages %}{% set ns.n = ns.n + 1 %}{% "
    "generation %}{{ message | tojson }}"
    "{% endgeneration %}{% if ns.n > 5 %}{% break %}{% endif %}{% endfor %}{{ strftime_now('%Y') "
    "}}{% if tools %}no{% endif %}"
)
TOKENS = {"bos_token": "<s>", "eos_token": "</s>"}


@pytest.mark.parametrize(
    "template",
    [CHATML, LLAMA2, GEMMA, ZEPHYR, OTHER],
    ids=["chatml", "llama2", "gemma", "zephyr", "other"],
)
@pytest.mark.parametrize(
    "message", ["Why is the sky blue?", "  two\n\nlines, <b>“quoted”</b> & {{ 1 + 1 }} 日本 "]
)
def test_a_turn_is_written_as_transformers_writes_it(template: str, message: str) -> None:
    from transformers import PreTrainedTokenizerFast

    theirs = PreTrainedTokenizerFast(
        tokenizer_object=BPETokenizer.learn("a", 256)._backend, **TOKENS
    )
    chat = [{"role": "user", "content": message}]
    wanted = theirs.apply_chat_template(
        chat, chat_template=template, tokenize=False, add_generation_prompt=True
    )
    given = {"messages": chat, "tools": None, "documents": None, "add_generation_prompt": True}
    assert fill_template(template, **given, **TOKENS) == wanted


def test_a_turn_is_made_in_a_process_of_its_own() -> None:
    assert ChatTemplate(LLAMA2, TOKENS).turn("Hi é") == "<s>[INST] Hi é [/INST]"


@pytest.mark.parametrize(
    ("template", "words"),
    [
        ("{% for %}", "cannot be filled in: .*Expected"),
        ("{{ raise_exception('no system\nturn') }}", "cannot be filled in: no system turn"),
        ("{{ messages.append(1) }}", "append.* is unsafe"),
        ("{{ ''.__class__.__mro__[1].__subclasses__() }}", "is unsafe|undefined"),
        (
            "{% for a in range(100000) %}{% for b in range(100000) %}{% endfor %}{% endfor %}",
            "longer than 1 seconds",
        ),
        ("{{ 'x' * 10**11 }}", "too much memory"),
        (f"{{{{ 'x' * {LONGEST_TEXT + 1} }}}}", "100,001 characters, and 100,000 are the most"),
        ("{% include '/etc/passwd' %}", "no loader"),
        ("{{ '\\ud800' }}", "half of a character"),
        ("\ud800", "half of a character"),
        (" " * 1_000_001, "has 1,000,001 characters"),
    ],
)
def test_a_hostile_template_gives_one_line(
    template: str, words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(confined, "MOST_SECONDS", 1.0)
    with pytest.raises(ChatError, match=words) as refused:
        ChatTemplate(template, TOKENS).turn("Hi")
    assert "\n" not in str(refused.value)


def test_a_template_cannot_write_a_file(tmp_path: Path) -> None:
    file = tmp_path / "it ran"
    for template in (
        "{{ cycler.__init__.__globals__.os.system('touch %s') }}" % file,  # noqa: UP031
        "{{ namespace.__init__.__globals__['__builtins__'].open('%s', 'w') }}" % file,  # noqa: UP031
    ):
        with pytest.raises(ChatError):
            ChatTemplate(template, TOKENS).turn("Hi")
    assert not file.exists()
