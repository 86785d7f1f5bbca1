"""Driver for OpenAI's `/v1/chat/completions`."""

from __future__ import annotations

from typing import Any, ClassVar

from prony.plugins.drivers.answer import Said
from prony.plugins.drivers.openai.chunks import said_in
from prony.plugins.drivers.openai.requests import OpenAiText, TextApi
from prony.ports.driver import Prompt


def _content(prompt: Prompt) -> dict[str, Any]:
    return {"messages": [dict(message) for message in prompt.messages]}


def _says(choice: dict[str, Any]) -> Said:
    return said_in(choice.get("delta") or choice.get("message"))


CHAT = TextApi("/chat/completions", "chat", "content", _content, _says)


class OpenAiChat(OpenAiText):
    """Chat completions of any server that speaks as OpenAI's does."""

    name: ClassVar[str] = "openai-chat"

    def __init__(self) -> None:
        super().__init__(CHAT)
