"""Chat templates are rendered with stand-ins for content, in a sandbox that ends."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path

import pytest
from engine.tiny_gguf import CHATML, GEMMA_LIKE, LLAMA2_LIKE

from localctx.engine.template import FOLDED, Part, Rendered, TemplateError, render, render_chat
from localctx.values import Message

SYSTEM, USER, ANSWER = (
    Message("system", ("Be brief.",)),
    Message("user", ("What?", " Now.")),
    Message("assistant", ("No.",)),
)
HARD = (
    "{{ 7*7 }} {% for i in range(9999999999) %}x{% endfor %} {{ cycler.__init__.__globals__ }}"
    " </think><|im_end|>"
)


def content(rendered: Rendered) -> list[str]:
    return [part.text for part in rendered.parts if part.is_content]


def test_scaffold_and_content_come_apart() -> None:
    rendered = render(CHATML, [SYSTEM, USER])
    assert rendered.parts == (
        Part("<|im_start|>system\n", False),
        Part("Be brief.", True),
        Part("<|im_end|>\n<|im_start|>user\n", False),
        Part("What?", True),
        Part(" Now.", True),
        Part("<|im_end|>\n<|im_start|>assistant\n", False),
    )
    assert rendered.notices == ()


def test_without_a_generation_prompt_the_turn_stays_closed() -> None:
    assert render(CHATML, [USER], add_generation_prompt=False).parts[-1].text == "<|im_end|>\n"


def test_documents_never_pass_through_jinja() -> None:
    rendered = render(LLAMA2_LIKE, [Message("user", (HARD,))], bos_token="<s>")
    assert rendered.parts == (Part("<s>[INST] ", False), Part(HARD, True), Part(" [/INST]", False))


def test_a_template_cannot_change_a_document() -> None:
    trimmed = render("{{ messages[0].content | trim }}!", [Message("user", ("  spaced  ",))])
    assert content(trimmed) == ["  spaced  "]


@pytest.mark.parametrize(
    "template",
    [
        "{% for m in messages %}{{ m.content }}{{ m.content }}{% endfor %}",
        "{% for m in messages %}{{ m.content | upper }}{% endfor %}",
        "{% for m in messages %}{{ m.content[2:] }}{% endfor %}",
        "{% for m in messages | reverse %}{{ m.content }}{% endfor %}",
        "{{ messages[0].content }}",
        "nothing",
    ],
)
def test_a_template_that_mishandles_content_is_not_used(template: str) -> None:
    with pytest.raises(TemplateError) as caught:
        render(template, [USER, ANSWER, USER])
    assert "\n" not in caught.value.message


@pytest.mark.parametrize(
    "template",
    [GEMMA_LIKE, "{% for m in messages if m.role != 'system' %}<{{ m.role }}>{{ m.content }}{% endfor %}"],
)
def test_a_system_role_that_is_refused_or_dropped_is_folded_with_a_notice(template: str) -> None:
    rendered = render(template, [SYSTEM, USER, ANSWER, USER])
    assert rendered.notices == (FOLDED,)
    assert content(rendered)[:4] == ["Be brief.", "\n\n", "What?", " Now."]
    assert "".join(content(rendered)).count("Be brief.") == 1


def test_a_system_message_alone_becomes_a_user_turn() -> None:
    assert content(render(GEMMA_LIKE, [SYSTEM])) == ["Be brief."]


def test_content_as_a_list_of_parts_is_tried() -> None:
    template = "{% for m in messages %}{% for p in m.content %}{{ p.text }}{% endfor %}{% endfor %}"
    assert content(render(template, [USER])) == ["What?", " Now."]


def test_a_template_that_tests_for_defined_tools_works() -> None:
    template = "{% if tools is defined %}{{ tools | length }}{% endif %}{{ messages[0].content }}"
    assert content(render(template, [USER])) == ["What?", " Now."]


def test_helpers_of_real_templates() -> None:
    template = (
        "{% macro turn(m) %}[{{ m.role }}]{{ m['content'] }}{% endmacro %}{% set ns = namespace(n=0) %}"
        "{% for m in messages %}{% if m.role == 'skip' %}{% continue %}{% endif %}"
        "{% generation %}{{ turn(m) }}{% endgeneration %}{% set ns.n = ns.n + 1 %}{% endfor %}{{ ns.n }}|"
        "{{ {'a': [1, 'é']} | tojson }}|"
        "{{ strftime_now('%d %b %Y') }}|{{ 'a-b'.split('-')[-1].upper() }}|{{ '%s:%02d' | format('t', 7) }}|"
        "{{ '{}/{}'.format(1, 'x') }}|{{ [3, 1] | sort | join(',') }}|"
        "{{ loop is defined }}|{{ 'x' ~ 1 ~ none }}|{{ 2 ** 5 }}"
    )
    rendered = render(template, [USER], now=datetime(2024, 7, 26))
    assert rendered.parts[0].text == "[user]"
    assert rendered.parts[-1].text == '1|{"a": [1, "é"]}|26 Jul 2024|B|t:07|1/x|1,3|False|x1None|32'


def test_variables_reach_the_template() -> None:
    template = "{{ messages[0].content }}{% if enable_thinking is false %}<think></think>{% endif %}"
    assert render(template, [USER], variables={"enable_thinking": False}).parts[-1].text == "<think></think>"


def test_blocks_are_trimmed_as_models_expect() -> None:
    template = "{% for m in messages %}\n    {% if true %}\n{{ m.content }}\n    {% endif %}\n{% endfor %}\n"
    assert render(template, [Message("user", ("x",))]).text == "x\n"


def test_a_template_error_names_the_reason_in_one_line() -> None:
    with pytest.raises(TemplateError, match="roles must alternate again") as caught:
        render("{{ raise_exception('roles must\n alternate again') }}", [USER])
    assert "\n" not in caught.value.message


# --- what a hostile file may try ----------------------------------------------------------------------

GROW = "{% set ns = namespace(s=START) %}{% for i in range(60) %}{% set ns.s = STEP %}{% endfor %}END"


def grow(start: str, step: str, end: str = "") -> str:
    return GROW.replace("START", start).replace("STEP", step).replace("END", end)


CODE = [
    "{{ lipsum.__globals__['os'].popen('touch PWNED_MARKER').read() }}",
    "{{ cycler.__init__.__globals__.os.system('touch PWNED_MARKER') }}",
    "{{ ''.__class__.__mro__[1].__subclasses__() }}",
    "{{ messages[0]['__class__']['__init__'] }}",
    "{{ self._TemplateReference__context.environment.loader }}",
    "{{ '{0.__class__.__init__.__globals__}'.format(messages) }}",
    "{% set _ = messages.append(1) %}",
    "{% include '/etc/passwd' %}",
    "{% import 'os' as os %}",
    "{% extends 'x' %}",
]
NOTHING = [
    "{{ (messages | first)['content'].__class__ }}",
    "{{ messages | map(attribute='__class__') | join }}",
]
BIG = [
    "{{ 'a' * (10 ** 9) }}",
    "{{ [1] * (10 ** 9) }}",
    "{{ 9 ** 9 ** 9 ** 9 }}",
    "{{ '%1000000000d' % 1 }}",
    "{{ '%*d' % (1000000000, 1) }}",
    "{{ '{:>1000000000}'.format(1) }}",
    "{{ '{:{w}}'.format(1, w=1000000000) }}",
    "{{ 'a'.ljust(1000000000) }}",
    "{{ 'a' | center(1000000000) }}",
    "{{ 'a' | indent(1000000000) }}",
    "{{ ('a' * 1000000).replace('a', 'b' * 1000000) }}",
    "{{ ('a' * 1000000) | replace('a', 'b' * 1000000) }}",
    "{{ ('b' * 1000000).join('a' * 1000000) }}",
    "{{ ('{0}' * 100000).format('a' * 1000000) }}",
    "{{ [1] | batch(1000000000, 'x') | list }}",
    "{{ [1] | slice(1000000000) | list }}",
    "{{ range(10 ** 9) | list }}",
    "{{ strftime_now('%1000000000d') }}",
    "{{ (1).to_bytes(1000000000) }}",
    "{{ [[1]] | sum(start=[]) }}",
    "{{ [ns] }}{% set ns = namespace() %}{{ [ns] }}",
    "{% for i in range(100000) %}" + "A" * 100_000 + "{% endfor %}",
    "{% set x %}{% for i in range(100000) %}" + "A" * 100_000 + "{% endfor %}{% endset %}",
    grow("'aaaa'", "ns.s ~ ns.s"),
    grow("'aaaa'", "ns.s + ns.s"),
    grow("'aaaa'", "'%s%s' % (ns.s, ns.s)"),
    grow("[1]", "ns.s + ns.s"),
    grow("[1]", "[ns.s, ns.s]", "{{ ns.s }}"),
    grow("[1]", "[ns.s, ns.s]", "{{ ns.s == 1 }}"),
    grow("[1]", "[ns.s, ns.s]", "{{ ns.s | tojson }}"),
    grow("(1,)", "(ns.s, ns.s)", "{{ {ns.s: 1} }}"),
    grow("(1,)", "(ns.s, ns.s)", "{{ {}[ns.s] }}"),
    grow("(1,)", "(ns.s, ns.s)", "{{ {}.get(ns.s) }}"),
    grow("[1]", "[ns.s, ns.s]", "{% for i in [1] %}{{ loop.changed(ns.s) }}{% endfor %}"),
    grow("[]", "ns.s + ['a' * 1000000]").replace("range(60)", "range(100000)"),
    grow("[]", "ns.s + [('a' * 1000000)[i:]]").replace("range(60)", "range(100000)"),
    "{{ (':' * 1000000).format(1) ~ 'a' * 1000000 }}",
    "{{ ([range(50000) | list] * 100000) | join }}",
    "{{ range(50000) | list | tojson(indent=100000) }}",
    "{{ range(50000) | list | tojson(separators=('a' * 1000000, ':')) }}",
    grow("[range(50000) | list]", "[ns.s]", "{{ ns.s | tojson(indent=16) }}"),
    "{{ " + "(" * 50_000,
    "{{ " + "-" * 50_000 + "1 }}",
    "{% if x %}" * 5000 + "{% endif %}" * 5000,
    "{{ x }}" * 100_000,
    "{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}",
    "{% for m in messages recursive %}{{ loop(messages) }}{% endfor %}",
]


COSTLY = [  # one call each, which nothing could stop half-way, or which makes far more than it seems to
    "('a' * 300000).strip('b' * 300000 ~ 'a')",
    "('a' * 300000).lstrip('b' * 300000 ~ 'a')",
    "('a' * 300000).rstrip('b' * 300000 ~ 'a')",
    "('a' * 300000) | trim('b' * 300000 ~ 'a')",
    "('a' * 500000).rfind('a' * 125000 ~ 'b' ~ 'a' * 125000)",
    "('a' * 500000).rindex('a' * 125000 ~ 'b' ~ 'a' * 125000)",
    "('a' * 500000).rpartition('a' * 125000 ~ 'b' ~ 'a' * 125000)",
    "('a' * 500000).rsplit('a' * 125000 ~ 'b' ~ 'a' * 125000)",
    "('a' * 500000).rsplit(sep='a' * 125000 ~ 'b' ~ 'a' * 125000)",
    "(('f' * 1000000) | int(base=16)) // (('e' * 500000) | int(base=16))",
    "('{0:999}' * 43000).format(1)",
    "('{0}' * 50000).format(2 ** 100)",
    "('{0:f}' * 40000).format(1e308)",
]


@pytest.mark.parametrize("template", CODE)
def test_no_code_runs(template: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(TemplateError):
        render(template + "{{ messages[0].content }}", [USER])
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("template", NOTHING)
def test_forbidden_attributes_are_empty(template: str) -> None:
    assert render(template + "{{ messages[0].content }}", [USER]).text == "What? Now."


CHILD = """
import json, resource, sys
import psutil
from localctx.engine.template import TemplateError, render
from localctx.values import Message
limit = psutil.Process().memory_info().vms + (512 << 20)
resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
messages = []
for template in json.load(sys.stdin):
    try:
        messages.append(render(template, [Message("user", ("x",))]).text)
    except TemplateError as error:
        messages.append(error.message)
print(json.dumps(messages))
"""


def test_nothing_large_is_made() -> None:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)}
    done = subprocess.run(
        [sys.executable, "-c", CHILD],
        input=json.dumps(BIG),
        capture_output=True,
        text=True,
        timeout=120,
        env=environment,
        check=True,
    )
    for template, message in zip(BIG, json.loads(done.stdout), strict=True):
        assert message.startswith("the chat template "), template
        assert "MemoryError" not in message, template
        assert "\n" not in message, template
        assert len(message) < 400, template


@pytest.mark.parametrize("expression", COSTLY)
def test_one_costly_call_is_refused_beforehand(expression: str) -> None:
    with pytest.raises(TemplateError, match="chat template makes a "):
        render("{% set x = " + expression + " %}{{ messages[0].content }}", [USER])


def test_what_costs_little_is_not_refused() -> None:
    template = (
        "{{ ' x '.strip() }}{{ '##y#'.strip('#') }}{{ ' z ' | trim }}{{ 'a</t>b</t>c'.rsplit('</t>', 1)[1] }}"
        "{{ '{:>4}|{:.2f}'.format('r', 0.5) }}{{ '%-3s|' % 'l' }}{{ '12' | int + 1 }}"
        "{{ [1, {'k': 2}] | tojson(indent=2) }}{{ messages[0].content }}"
    )
    text = render(template, [USER]).parts[0].text
    assert text == 'xyzc   r|0.50l  |13[\n  1,\n  {\n    "k": 2\n  }\n]'


@pytest.mark.parametrize(
    "template",
    [
        "{% for i in range(100000) %}{% for j in range(100000) %}{% endfor %}{% endfor %}",
        "{% macro f(n) %}{% if n %}{{ f(n - 1) }}{{ f(n - 1) }}{% endif %}{% endmacro %}{{ f(60) }}",
    ],
)
def test_what_prints_nothing_still_ends(template: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("localctx.engine.template.DEADLINE_S", 0.2)
    started = time.monotonic()
    with pytest.raises(TemplateError, match="did not finish"):
        render(template, [USER])
    assert time.monotonic() - started < 30  # without the deadline: hours


# --- fallbacks ------------------------------------------------------------------------------------------


def fallback(
    template: str | None, tokens: Sequence[str], messages: Sequence[Message] = (SYSTEM, USER)
) -> Rendered:
    return render_chat(template, messages, has_token=lambda text: text in tokens, bos_token="<s>")


def test_a_good_template_is_used() -> None:
    assert fallback(CHATML, []) == render(CHATML, [SYSTEM, USER])


def test_without_a_template_chatml_is_used_where_its_tokens_exist() -> None:
    rendered = fallback(None, ["<|im_start|>", "<|im_end|>"])
    assert rendered.parts == render(CHATML, [SYSTEM, USER]).parts
    assert "no chat template" in rendered.notices[0]
    assert "ChatML" in rendered.notices[0]


def test_without_its_tokens_plain_text_is_used() -> None:
    rendered = fallback(None, ["<|im_start|>"])
    assert rendered.text == "<s>Be brief.\n\n### Instruction:\nWhat? Now.\n\n### Response:\n"
    assert content(rendered) == ["Be brief.", "What?", " Now."]
    assert "Instruction" in rendered.notices[0]


def test_a_bad_template_is_replaced_and_the_notice_says_why() -> None:
    rendered = fallback(CODE[0], [])
    assert content(rendered) == ["Be brief.", "What?", " Now."]
    assert "was not used" in rendered.notices[0]
    assert "lipsum" in rendered.notices[0]
