"""A folder's name and the mock's words in; a tokenizer out to which each word is one token, as it is to the mock.

The peers count tokens themselves, and where they disagree with the server, so do their gaps. Runs in a peer's
environment, so it needs that environment's `tokenizers` and nothing of Prony.
"""

from __future__ import annotations

import json
import re
import sys
import sysconfig
from pathlib import Path

_VOCABULARY = 4096
_END = "<|end|>"
_TEMPLATE = "{% for message in messages %}{{ message['content'] }}\n{% endfor %}"


def main(folder: Path, words: list[str]) -> None:
    from tokenizers import Tokenizer, models, pre_tokenizers

    known = [_END, *dict.fromkeys([*words, *_others()])][:_VOCABULARY]
    # What is unknown counts as a common word, because some leave out a token that is only there for the unknown.
    made = Tokenizer(models.WordLevel({word: index for index, word in enumerate(known)}, unk_token=words[0]))
    made.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    made.add_special_tokens([_END])
    folder.mkdir(parents=True, exist_ok=True)
    made.save(str(folder / "tokenizer.json"))
    said = {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "eos_token": _END,
        "bos_token": _END,
        "pad_token": _END,
        "model_max_length": 100_000,
        "chat_template": _TEMPLATE,
    }
    (folder / "tokenizer_config.json").write_text(json.dumps(said))
    # Some of them ask what kind of model it is before they look for the tokenizer.
    (folder / "config.json").write_text(json.dumps({"model_type": "llama", "vocab_size": _VOCABULARY}))


def _others() -> list[str]:
    """Return more words, from the standard library's own text."""
    library = Path(sysconfig.get_paths()["stdlib"])
    text = " ".join(path.read_text(errors="replace") for path in sorted(library.glob("*.py"))[:80])
    return re.findall(r"\b[a-z]{2,12}\b", text)


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2:])
