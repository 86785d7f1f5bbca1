"""Write what a system's shell and `man` look for: completions and man pages, in the folders of a `share`.

`python -m tools.shell_files share`: a wheel holds this folder, and an environment that it is installed into has it too.
"""

from __future__ import annotations

import sys
from pathlib import Path

from prony.cli.shell_completion import WRITERS, list_command_words
from tools.man_pages import man_pages

COMPLETIONS = {
    "bash": "bash-completion/completions/prony",
    "zsh": "zsh/site-functions/_prony",
    "fish": "fish/vendor_completions.d/prony.fish",
}


def main() -> int:
    share = Path(sys.argv[1])
    places = list_command_words()
    files = {path: WRITERS[shell](places) for shell, path in COMPLETIONS.items()}
    files |= {f"man/man1/{name}": text for name, text in man_pages().items()}
    for name, text in files.items():
        (share / name).parent.mkdir(parents=True, exist_ok=True)
        (share / name).write_text(text)
    print(f"{len(files)} files in {share}: completions for {', '.join(COMPLETIONS)}, and man pages")
    return 0


if __name__ == "__main__":
    sys.exit(main())
