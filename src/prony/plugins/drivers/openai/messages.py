"""Extract text, reasoning and tool calls from a chat message or its delta."""

from __future__ import annotations

import json
from typing import Any

from prony.plugins.drivers.answer import Said


def said_in(message: Any) -> Said:
    """Return what a message or its delta says. A role alone says nothing."""
    if not isinstance(message, dict):
        return Said()
    content = message.get("content")
    if isinstance(content, str) and len(message) == 1:  # what nearly every chunk is
        return Said(content)
    answer = _text(content) + _text(message.get("refusal")) + _calls(message)
    # vLLM renamed the field, others have always called it by either name; both at once say the same thing.
    reasoning = _text(message.get("reasoning_content")) or _text(message.get("reasoning"))
    return Said(answer, reasoning or _text(message.get("thinking")) or _thoughts(content))


def _text(value: Any) -> str:
    """Return text that is plain, or comes in parts."""
    if isinstance(value, str):
        return value
    if isinstance(value, list):
        return "".join(_text(part.get("text")) for part in value if isinstance(part, dict))
    return ""


def _thoughts(content: Any) -> str:
    """Return the reasoning that some servers send as parts of the content."""
    parts = content if isinstance(content, list) else []
    return "".join(_text(part.get("thinking")) for part in parts if isinstance(part, dict))


def _calls(message: dict[str, Any]) -> str:
    """Return the names and arguments of calls that the model asks for."""
    calls = message.get("tool_calls")
    functions = [call.get("function") for call in calls if isinstance(call, dict)] if isinstance(calls, list) else []
    functions.append(message.get("function_call"))
    return "".join(_call(function) for function in functions if isinstance(function, dict))


def _call(function: dict[str, Any]) -> str:
    name, arguments = function.get("name"), function.get("arguments")
    written = json.dumps(arguments) if isinstance(arguments, dict) else arguments
    return "".join(part for part in (name, written) if isinstance(part, str))
