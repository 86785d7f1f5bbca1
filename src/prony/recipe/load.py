"""Load a recipe from a file or from text, with the line of every key."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from prony.errors import InputError, NotFoundError
from prony.model.job import Job
from prony.model.recipe import Matrix, Recipe
from prony.recipe.dialects import recognise
from prony.recipe.dialects.translated_document import Translation
from prony.recipe.dotted_paths import fill_from_matrix, flatten_nests
from prony.recipe.expand import expand, matrix_problems, recipe_pieces
from prony.recipe.formats import SUFFIXES, Format, format_of, parse_document
from prony.recipe.limits import LARGEST_BYTES
from prony.recipe.overrides import overridden
from prony.recipe.positions import Marks, Parsed
from prony.recipe.problems import DocumentProblem, recipe_error
from prony.recipe.schema_lookup import nearest_key
from prony.recipe.validate import check_document, sound, where_problems


@dataclass(frozen=True)
class LoadedRecipe:
    """A valid recipe: `text` as it was written, `document` as it was read, with the overrides set.

    `dialect` is whose format the text is in, where it is not Prony's own; `notes` say what of it was not honoured, and
    `users_of_client` how many users one client of that format is. `keeps_folder_name`: a folder of scripts is laid out
    under its own name, as the program whose format it is does.
    """

    recipe: Recipe
    text: str
    path: Path | None
    document: dict[str, Any]
    marks: Marks = field(default_factory=dict, repr=False, compare=False)
    dialect: str = ""
    notes: tuple[str, ...] = ()
    users_of_client: int = 1
    keeps_folder_name: bool = False

    def jobs(self, experiment_id: str, *, apart: bool = False) -> list[Job]:
        """Return the jobs of one submission of this recipe; `apart` where each run of a duet is handed out alone."""
        return expand(self.recipe, experiment_id, self.marks, apart=apart)


def load(path: Path, overrides: Sequence[str] = ()) -> LoadedRecipe:
    """Load a recipe from a file; its suffix tells the format."""
    form = format_of(path)
    text = _text_of(path)
    return replace(_read(text, form, str(path), overrides), path=path)


def loads(text: str, format: Format = "yaml", name: str = "<text>", overrides: Sequence[str] = ()) -> LoadedRecipe:  # noqa: A002
    """Load a recipe from text; `name` is what its errors call it."""
    return _read(text, format, name, overrides)


def _read(text: str, form: Format, name: str, overrides: Sequence[str]) -> LoadedRecipe:
    written = parse_document(text, form, name)
    name_of_dialect, dialect = recognise(written.document) or ("", None)
    translation = dialect.translate(sound(written)) if dialect is not None else Translation(written)
    parsed = fill_from_matrix(sound(overridden(flatten_nests(translation.parsed), overrides)))
    recipe, problems = _check_document(parsed)
    if recipe is None:
        if dialect is None:
            raise recipe_error(problems)
        raise recipe_error(map(translation.as_written, problems), f"it was read as {dialect.title}")
    notes = tuple(note.as_line for note in translation.notes)
    return LoadedRecipe(
        recipe, text, None, parsed.document, parsed.marks, name_of_dialect, notes, translation.users_of_client,
        keeps_folder_name=dialect is not None and dialect.keeps_folder_name,
    )  # fmt: skip


def _check_document(parsed: Parsed) -> tuple[Recipe | None, list[DocumentProblem]]:
    """Return the recipe, or all that keeps the document from being one."""
    recipe, problems = check_document(parsed)
    told_already = {problem.path for problem in problems}
    problems += [problem for problem in where_problems(parsed) if problem.path not in told_already]
    if recipe is None or problems:
        in_matrix = _of_matrix(parsed)
        # A value that came from the matrix is told there, and only there.
        told = {problem.path.removeprefix("matrix.").rpartition("[")[0] for problem in in_matrix}
        return None, [problem for problem in problems if problem.path not in told] + in_matrix
    # A recipe that cannot become jobs is wrong now, not when it is submitted.
    recipe_pieces(recipe, parsed.marks)
    return recipe, []


def _of_matrix(parsed: Parsed) -> list[DocumentProblem]:
    """Look at the matrix of a recipe that is wrong elsewhere, so that everything is told at once."""
    written = parsed.document.get("matrix")
    sound_parts = (
        {path: part for path, part in written.items() if _fits(path, part)} if isinstance(written, dict) else {}
    )
    if sound_parts != written:
        # With an axis gone, what `exclude` says of it would be a second complaint about one mistake.
        sound_parts.pop("exclude", None)
    return matrix_problems(Matrix.model_validate(sound_parts), parsed.document, parsed.marks)


def _fits(path: str, part: Any) -> bool:
    try:
        Matrix.model_validate({path: part}, strict=True)
    except ValidationError:
        return False
    return True


def _text_of(path: Path) -> str:
    try:
        with path.open("rb") as file:
            return file.read(LARGEST_BYTES + 1).decode("utf-8")
    except FileNotFoundError as exc:
        raise NotFoundError(f"no recipe at {path}", hint=_beside(path)) from exc
    except UnicodeDecodeError as exc:
        raise InputError(f"{path} is not text in UTF-8", hint="save it as UTF-8", code="recipe") from exc
    except OSError as exc:
        hint = "give the path of a recipe file, and check its permissions"
        raise InputError(f"{path} cannot be read: {exc.strerror}", hint=hint, code="recipe") from exc


def _beside(path: Path) -> str:
    """Return a hint with the recipe in the same folder that was most likely meant."""
    if not path.parent.is_dir():
        return f"folder not found: {path.parent}"
    names = [entry.name for entry in path.parent.iterdir() if entry.suffix in SUFFIXES]
    near = nearest_key(path.name, names)
    return f"did you mean {path.parent / near}?" if near else ""
