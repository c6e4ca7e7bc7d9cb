"""Profiles: where servers that speak the OpenAI dialect want something different."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Profile:
    """What one server wants on the wire. A field at its default asks for nothing out of the ordinary.

    `issuer` signs opaque data: it is sent back only to the issuer that made it (empty: the provider uses its host).
    `reasoning_field` carries earlier thinking back when the request has tools. `thinking_off` is added to the body when
    the request asks for no thinking. `strict_alternation` merges adjacent messages of one role, `tool_name` puts the
    tool's name into its results, `reply_after_tools` puts an assistant message between a result and a user message.
    `id_pattern`: a call id that does not match it is sent as a stand-in; the log keeps the original.
    """

    name: str
    issuer: str = ""
    reasoning_field: str | None = None
    thinking_off: Mapping[str, Any] = field(default_factory=dict)
    max_output_field: str = "max_tokens"
    include_usage: bool = True
    strict_alternation: bool = False
    tool_name: bool = False
    reply_after_tools: bool = False
    id_pattern: str | None = None


# A longer id is answered with a 400 that says "maximum length 40" (agno issue 5382, 2025-11).
OPENAI = Profile("openai", issuer="openai", max_output_field="max_completion_tokens", id_pattern=r".{1,40}")

# With tools in the request every earlier assistant message must carry its thinking (DeepSeek's thinking guide, 2026-08).
DEEPSEEK = Profile(
    "deepseek",
    issuer="deepseek",
    reasoning_field="reasoning_content",
    thinking_off={"thinking": {"type": "disabled"}},
)

GENERIC = Profile("openai-compatible")
"""An unknown server, local or not: the common dialect and nothing else."""

# Mistral's own rules. It refuses fields it does not know, `stream_options` among them (openai-agents issue 442, 2025-04),
# and reports usage without being asked. The alternation is what many chat templates of local servers demand, too.
STRICT = Profile(
    "strict",
    include_usage=False,
    strict_alternation=True,
    tool_name=True,
    reply_after_tools=True,
    id_pattern=r"[A-Za-z0-9]{9}",
)

_BY_DOMAIN = {"openai.com": OPENAI, "deepseek.com": DEEPSEEK, "mistral.ai": STRICT}


def profile_for(host: str) -> Profile:
    """Return the profile of a known `host`, else `GENERIC`."""
    for domain, profile in _BY_DOMAIN.items():
        if host == domain or host.endswith("." + domain):
            return profile
    return GENERIC
