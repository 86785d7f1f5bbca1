"""Prompts in, `/v1/completions` out, and what their replies were."""

from __future__ import annotations

from typing import Any, ClassVar

from prony.plugins.drivers.answer import Said
from prony.plugins.drivers.openai.requests import OpenAiText
from prony.plugins.drivers.prompt_requests import plain
from prony.ports.driver import Prompt


class OpenAiCompletions(OpenAiText):
    """Completions of plain text, where no chat template stands between the prompt and the model."""

    name: ClassVar[str] = "openai-completions"
    path: ClassVar[str] = "/completions"
    operation: ClassVar[str] = "completion"
    text_key: ClassVar[str] = "text"

    def content(self, prompt: Prompt) -> dict[str, Any]:
        return {"prompt": plain(prompt)}

    def says(self, choice: dict[str, Any]) -> Said:
        text = choice.get("text")
        return Said(text) if isinstance(text, str) else Said()
