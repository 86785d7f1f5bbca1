"""Model source for `https://`."""

from __future__ import annotations

from typing import ClassVar

from prony.plugins.models.fetching import NetworkSource
from prony.plugins.models.transfer import check_download_url, download
from prony.ports.models import FetchOptions, ModelFiles, Progress


class HttpsSource(NetworkSource):
    """A model on a web server, with the files beside it that it needs."""

    scheme: ClassVar[str] = "https"

    def fetch(self, reference: str, options: FetchOptions, progress: Progress) -> ModelFiles:
        check_download_url(reference, may_be_plain=options.may_be_plain or options.policy.private_plain)
        return self.begin(download, options, progress).files(reference)
