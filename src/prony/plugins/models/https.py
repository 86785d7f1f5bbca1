"""Model source for `https://`."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import ClassVar

from prony.plugins.models.addresses import Address, is_public
from prony.plugins.models.fetching import Fetching
from prony.plugins.models.transfer import check_url, download
from prony.ports.models import FetchOptions, ModelFiles, Progress


class HttpsSource:
    """A model on a web server, with the files beside it that it needs."""

    scheme: ClassVar[str] = "https"

    def __init__(
        self, pause: Callable[[float], None] = time.sleep, may_reach: Callable[[Address], bool] = is_public
    ) -> None:
        self._pause = pause
        self._may_reach = may_reach

    def fetch(self, reference: str, options: FetchOptions, progress: Progress) -> ModelFiles:
        check_url(reference, may_be_plain=options.may_be_plain or options.policy.private_plain)
        return Fetching(download, options, progress, self._pause, self._may_reach).files(reference)
