"""Recipes before they are submitted over HTTP: checked, written of forms, described by their schema and examples."""

from __future__ import annotations

import json

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import Response

from prony.analyse.matrix import WORDS
from prony.app.abilities import drivers, tasks
from prony.app.draft_recipe import list_recipe_forms
from prony.model.check import Catalogue, Examples, Named, RecipeCheck
from prony.model.comparison import OWN_RULE
from prony.model.kind_card import Kinds
from prony.model.queue import Submission
from prony.model.recipe import json_schema
from prony.model.recipe_form import DraftedRecipe, FilledForm, RecipeForms
from prony.model.workload import workload_schema
from prony.plugins.models.zoo.cards import ZOO
from prony.ports import plugins
from prony.ports.metric_titles import metric_titles
from prony.ports.workload import kind_names
from prony.recipe.example_recipes import examples as shelf
from prony.server.openapi import text
from prony.server.operation import Operation, fleet_of, while_asked
from prony.server.responses import JSON, answer, respond_tagged

router = APIRouter(prefix="/api/v1", tags=["recipes"], route_class=Operation)


@router.post("/recipes/check", operation_id="check", response_model=RecipeCheck, summary="Check a recipe")
async def check(request: Request, body: Submission) -> Response:
    """Every mistake with its line; or its jobs, who could run them, and how long that takes. Nothing is stored."""
    return answer(await while_asked(request, fleet_of(request).recipes.check(body)))


@router.get(
    "/recipes/schema", operation_id="schema", response_class=Response, summary="Get the JSON Schema of recipes",
    responses={200: text(JSON, of="a JSON Schema")},
)  # fmt: skip
async def schema() -> Response:
    """As `prony schema` prints it, for editors."""
    return Response(json.dumps(json_schema()), media_type=JSON)


@router.get("/recipes/examples", operation_id="examples", response_model=Examples, summary="List example recipes")
async def examples(request: Request) -> Response:
    """Those that come with Prony, the one to begin with first."""
    return respond_tagged(request, Examples(items=shelf()))


@router.get("/recipes/forms", operation_id="forms", response_model=RecipeForms, summary="List forms for new recipes")
async def forms(request: Request) -> Response:
    """Each a few questions: what `prony bench`, `llm`, `hardware` and `duet` ask for, and the forms of kinds."""
    return respond_tagged(request, RecipeForms(items=list_recipe_forms()))


@router.post("/recipes/draft", operation_id="draft", response_model=DraftedRecipe, summary="Write a recipe of a form")
async def draft(request: Request, body: FilledForm) -> Response:
    """As the command of the form would write it. Nothing is stored."""
    return answer(await while_asked(request, fleet_of(request).recipes.draft(body)))


@router.get("/kinds", operation_id="kinds", response_model=Kinds, summary="List kinds of workload")
async def kinds(request: Request) -> Response:
    """Those that are installed, and those that only stored experiments have."""
    return respond_tagged(request, await fleet_of(request).queries.kinds())


@router.get(
    "/recipes/names", operation_id="catalogue", response_model=Catalogue, summary="List names that a recipe can use"
)
async def catalogue(request: Request) -> Response:
    """Names of zoo models, engines, services, drivers and tasks, also by the places in a recipe where they may stand;
    rules of a comparison, axes of a matrix, and titles of metrics."""
    found = Catalogue(
        models=tuple(Named(name=f"zoo:{card.name}", about=card.description) for card in ZOO.values()),
        engines=tuple(Named(name=name) for name in sorted(plugins.find_plugins(plugins.ENGINES))),
        services=tuple(Named(name=name) for name in sorted(plugins.find_plugins(plugins.SERVICES))),
        drivers=tuple(Named(name=one.name, about=one.about) for one in drivers()),
        tasks=tuple(Named(name=one.name, about=one.about) for one in tasks()),
        comparison_rules=_comparison_rules(),
        axes=WORDS,
        metric_titles=dict(metric_titles()),
    )
    return respond_tagged(request, found.model_copy(update={"by_path": _by_path(found)}))


def _by_path(found: Catalogue) -> dict[str, tuple[Named, ...]]:
    named = {field: of for kind in kind_names() for field, of in workload_schema(kind).named_fields.items()}
    return {f"workload.{field}": getattr(found, of) for field, of in named.items()}


def _comparison_rules() -> tuple[Named, ...]:
    others = {
        name: plugins.load_plugin(plugins.COMPARISON_RULES, name)
        for name in plugins.find_plugins(plugins.COMPARISON_RULES)
    }
    return (
        Named(name=OWN_RULE, about="intervals and tests"),
        *(Named(name=name, about=rule.about) for name, rule in others.items()),
    )
