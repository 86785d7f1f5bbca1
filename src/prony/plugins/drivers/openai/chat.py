"""Prompts in, `/v1/chat/completions` out, and what their replies were."""

from __future__ import annotations

from typing import Any, ClassVar

from prony.plugins.drivers.answer import Said
from prony.plugins.drivers.openai.messages import said_in
from prony.plugins.drivers.openai.requests import OpenAiText
from prony.ports.driver import Prompt


class OpenAiChat(OpenAiText):
    """Chat completions of any server that speaks as OpenAI's does."""

    name: ClassVar[str] = "openai-chat"
    path: ClassVar[str] = "/chat/completions"
    operation: ClassVar[str] = "chat"
    text_key: ClassVar[str] = "content"

    def content(self, prompt: Prompt) -> dict[str, Any]:
        return {"messages": [dict(message) for message in prompt.messages]}

    def says(self, choice: dict[str, Any]) -> Said:
        return said_in(choice.get("delta") or choice.get("message"))
