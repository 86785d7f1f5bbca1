"""Operations on folders of scripts: bring one to the server, fetch it from there."""

from __future__ import annotations

from pathlib import Path

from prony.client.connection import Call, Content
from prony.client.request_shapes import Asking


class Scripts(Asking):
    def keep_scripts(self, sha256: str, content: Content) -> None:
        """Bring the tar of a folder, by its own SHA-256; one that is there already is not kept twice."""
        headers = {"Content-Type": "application/x-tar"}
        self._connection.send(Call("PUT", ("scripts", sha256), headers=headers, content=content))

    def scripts(self, sha256: str, to: Path) -> Path:
        """Write the tar to the file `to`."""
        return self._fetch(to, "scripts", sha256)
