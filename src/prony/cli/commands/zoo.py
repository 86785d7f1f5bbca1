"""`prony zoo`: the models that need no download."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

from prony.cli.arguments import add_json


def arguments(parser: ArgumentParser) -> None:
    """List the zoo: real architectures with seeded weights, built on this machine; use one as `zoo:NAME`."""
    add_json(parser)


def command(options: Namespace) -> int:
    from dataclasses import asdict

    from prony.cli.output import print_columns, print_json
    from prony.plugins.models.zoo.cards import ZOO, ModelCard
    from prony.plugins.models.zoo.llm_cards import LLM_ZOO, LlmCard

    if options.json:
        llms = [asdict(card) | {"parameters": card.parameters, "formats": card.formats} for card in LLM_ZOO.values()]
        print_json([*(asdict(card) for card in ZOO.values()), *llms])
        return 0
    cards: list[ModelCard | LlmCard] = [*ZOO.values(), *LLM_ZOO.values()]
    rows = [
        (
            f"zoo:{card.name}",
            _short(card.parameters),
            f"{card.size_bytes / 1e6:.1f} MB" if card.size_bytes > 50_000 else f"{card.size_bytes / 1e3:.1f} kB",
            _short(card.macs),
            " ".join(card.formats),
            card.description,
        )
        for card in cards
    ]
    print_columns(("MODEL", "PARAMETERS", "SIZE", "MACS", "FORMATS", "WHAT IT IS"), rows)
    return 0


def _short(count: int) -> str:
    for factor, letter in ((10**9, "G"), (10**6, "M"), (10**3, "k")):
        if count >= factor:
            return f"{count / factor:.3g} {letter}"
    return str(count)
