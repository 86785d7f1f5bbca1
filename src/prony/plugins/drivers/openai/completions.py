"""Driver for OpenAI's `/v1/completions`."""

from __future__ import annotations

from typing import Any, ClassVar

from prony.plugins.drivers.answer import Said
from prony.plugins.drivers.openai.requests import OpenAiText, TextApi
from prony.ports.driver import Prompt
from prony.ports.llm import join_messages


def _content(prompt: Prompt) -> dict[str, Any]:
    return {"prompt": join_messages(prompt.messages)}


def _says(choice: dict[str, Any]) -> Said:
    text = choice.get("text")
    return Said(text) if isinstance(text, str) else Said()


COMPLETIONS = TextApi("/completions", "completion", "text", _content, _says)


class OpenAiCompletions(OpenAiText):
    """Completions of plain text, where no chat template stands between the prompt and the model."""

    name: ClassVar[str] = "openai-completions"
    predicts: ClassVar[bool] = True

    def __init__(self) -> None:
        super().__init__(COMPLETIONS)
