"""Chat templates out of a hostile file: they end, and they reach nothing."""

from __future__ import annotations

import pytest

from macr_local.engine.template import ChatTemplate, TemplateText
from macr_local.errors import TemplateError


def said(source: str) -> str:
    """What a template puts around the question."""
    source += "{{ messages[0].content }}"
    parts = ChatTemplate(source, bos="", eos="", tokens=lambda _: False, name="m").render("Why?").parts
    return "".join(part.text for part in parts if isinstance(part, TemplateText))


TO = "{% for a in range(99999) %}"
NS = "{% set ns = namespace(s='ab', l=[1]) %}" + TO
ENDLESS = {
    "nested loops": TO + "{% for b in range(99999) %}{% for c in range(99999) %}" + "{% endfor %}" * 3,
    "a loop that filters all out": TO + "{% for b in range(99999) if false %}{% endfor %}{% endfor %}",
    "a recursive loop": "{% for a in [1] recursive %}{{ loop(range(90000)) }}{% endfor %}",
    "a macro that doubles": "{% macro m(n) %}{{ m(n-1) ~ m(n-1) if n }}{% endmacro %}{{ m(99) }}",
    "output": TO + "x" * 10_000 + "{% endfor %}",
    "doubling by ~": NS + "{% set ns.s = ns.s ~ ns.s %}{% endfor %}",
    "doubling by +": NS + "{% set ns.s = ns.s + ns.s %}{% endfor %}",
    "doubling lists": NS + "{% set ns.l = ns.l + ns.l %}{% endfor %}",
    "doubling in a block": NS + "{% set x %}{{ ns.s }}{{ ns.s }}{% endset %}{% set ns.s = x %}{% endfor %}",
    "doubling by format": NS + "{% set ns.s = '%s%s'|format(ns.s, ns.s) %}{% endfor %}",
    "doubling by str.format": NS + "{% set ns.s = '{0}{0}'.format(ns.s) %}{% endfor %}",
    "long string": "{{ 'a' * 10**10 }}",
    "long list": "{{ 10**10 * ['a'] }}",
    "huge number": "{{ 2 ** (2 ** 30) }}",
    "padding by a filter": "{{ 'a'|center(10**9) }}",
    "padding by a method": "{{ 'a'.ljust(1000000000) }}",
    "padding by %": "{{ '%1000000000d' % 1 }}",
    "padding by % from outside": "{{ '%*d' % (1000000000, 1) }}",
    "padding by the format filter": "{{ '%1000000000d'|format(1) }}",
    "padding by str.format": "{{ '{:1000000000}'.format(1) }}",
    "padding by str.format from outside": "{{ '{:{}}'.format(1, 1000000000) }}",
    "padding a date": "{{ strftime_now('%99999999Y') }}",
    "replacing": "{% set a = 'a' * 30000 %}{{ a.replace('a', a) }}",
    "joining": "{% set a = 'a' * 30000 %}{{ a|join(a) }}",
    "indenting": "{{ ('\n' * 30000)|indent(30000) }}",
    "summing a list": "{% set r = range(99999)|list %}" + TO + "{% if r|sum %}{% endif %}{% endfor %}",
    "looking in a list": "{% set r = range(9999)|list %}" + TO + "{% if 'x' in r %}{% endif %}{% endfor %}",
    "testing a list": "{% set r = range(9999)|list %}" + TO + "{% if 'x' is in r %}{% endif %}{% endfor %}",
    "slicing a list": "{% set r = range(9999)|list %}" + TO + "{% set x = r[1:] %}{% endfor %}",
    "counting in a string": "{% set t = 'a' * 30000 %}" + TO + "{% set x = t.count('b') %}{% endfor %}",
}  # fmt: skip


@pytest.mark.parametrize("kind", ENDLESS)
def test_a_template_that_does_not_end_is_stopped(kind: str) -> None:
    with pytest.raises(TemplateError, match="does not end"):
        said(ENDLESS[kind])


@pytest.mark.parametrize(
    "source",
    [
        "{% for a in range(10**9) %}{% endfor %}",
        "{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}",
        "{% block a %}{{ self.a() }}{% endblock %}",
        "{{ lipsum(10**6) }}",
        TO + "{{ 1|_step(-100000) }}{{ 1|step(-100000) }}{% endfor %}",
    ],
)
def test_other_ways_to_run_forever_fail(source: str) -> None:
    with pytest.raises(TemplateError):
        said(source)


SECRETS = (
    "''.__class__.__mro__[1].__subclasses__()",
    "cycler.__init__.__globals__.os.popen('id').read()",
    "raise_exception.__globals__['__builtins__']",
    "strftime_now.__globals__",
    "(''|attr('__class__')).__mro__",
    "'{0.__class__}'.format(1)",
    "'{0.__class__}'.format_map({'0': 1})",
    "['{0.__class__}']|map('format', 1)|join",
    "messages.append({'role': 'user'})",
    "self._TemplateReference__context.environment",
)


@pytest.mark.parametrize("expression", SECRETS)
def test_a_template_cannot_reach_python(expression: str) -> None:
    try:
        text = said("{{ " + expression + " }}")
    except TemplateError:
        return
    # An attribute that is not allowed is nothing, and nothing prints as nothing.
    assert "class" not in text.replace("{0.__class__}", "")
    assert "<" not in text
    assert "builtins" not in text


def test_macros_may_name_their_arguments_as_they_like() -> None:
    source = "{% macro m(obj, context, self) %}{{ obj ~ context }}{% endmacro %}{{ m(obj='a', context='b') }}"
    assert said(source) == "ab"


def test_json_is_written_for_models_not_for_web_pages() -> None:
    assert said("{{ {'é': '<&>'}|tojson(indent=none) }}") == '{"é": "<&>"}'
