"""Templates of models in Hugging Face's layout, with a tokenizer that does nothing but fail."""

from __future__ import annotations

from typing import Any

import pytest

from prony.errors import InputError
from prony.plugins.engines.folder_tokenizer import FolderTokenizer

pytest.importorskip("jinja2", reason="templates are rendered by jinja2")


class FailingTokenizer:
    """One whose template raises."""

    chat_template = "{{ messages[0].content + 1 }}"

    def __init__(self, error: Exception) -> None:
        self.error = error

    def apply_chat_template(self, *_: Any, **__: Any) -> list[int]:
        raise self.error


@pytest.mark.parametrize(
    ("error", "said"),
    [(TypeError("can only concatenate str"), "can only concatenate str"), (ZeroDivisionError(), "ZeroDivisionError")],
)
def test_an_error_inside_a_template_is_told_as_one_of_the_template(error: Exception, said: str) -> None:
    with pytest.raises(InputError, match=f"the model's chat template fails: {said}") as told:
        FolderTokenizer(FailingTokenizer(error)).encode_prompt([{"role": "user", "content": "Hello"}])
    assert told.value.code == "bad_template"
