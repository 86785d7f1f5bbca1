"""Compute from an ONNX Runtime profile the share of nodes that each provider ran."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any


def coverage(path: Path) -> dict[str, float]:
    """Return the share of the executed nodes by provider; empty where no node ran."""
    events: list[dict[str, Any]] = json.loads(path.read_text())
    nodes = {_identity(event): event["args"]["provider"] for event in events if _is_node(event)}
    counts = Counter(nodes.values())
    return {provider: count / len(nodes) for provider, count in counts.most_common()}


def _is_node(event: Mapping[str, Any]) -> bool:
    args = event.get("args", {})
    if event.get("cat") != "Node" or not args.get("provider"):
        return False
    # Copies between host and device belong to no part of the model.
    return not str(args.get("op_name", "")).startswith("Memcpy")


def _identity(event: Mapping[str, Any]) -> tuple[str, str]:
    """Return what tells one node from another: a node is run once for each inference, and many times in a loop."""
    return str(event["args"].get("node_index", "")), str(event["name"]).removesuffix("_kernel_time")
