"""`prony tokens`: make, list and revoke a database's tokens, and read its audit trail.

It works on the database itself: the first token must be made before any server asks for one.
"""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from typing import TYPE_CHECKING

from prony.cli.arguments import add_json

if TYPE_CHECKING:
    from datetime import datetime

    from prony.app.access import Access
    from prony.model.access import AuditEntry, NewToken, Token

_PAGE = 500


def arguments(parser: ArgumentParser) -> None:
    """Create, list and revoke access tokens of a server, and show the audit log."""
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    adding = actions.add_parser("add", help="create a token; its secret is printed only once")
    adding.add_argument("name", metavar="NAME", help="who it is for; the audit log shows this name")
    adding.add_argument(
        "--role", required=True, choices=("admin", "submitter", "viewer", "agent"), help="what the token may do"
    )
    adding.add_argument(
        "--once", action="store_true", help="for the role agent: enrols one agent, which then gets its own token"
    )
    adding.add_argument(
        "--expires", metavar="DURATION", help="expires after this time, for example 30d or 12h (default: never)"
    )
    listing = actions.add_parser("list", help="list tokens without secrets, newest first")
    revoking = actions.add_parser("revoke", help="revoke a token; running servers apply it within 5 s")
    revoking.add_argument("id", metavar="ID", help="the id in `prony tokens list`")
    trail = actions.add_parser("audit", help="show the audit log, newest first")
    trail.add_argument("--limit", "-n", type=int, default=50, help="number of newest entries (50)")
    trail.add_argument("--cursor", help="continue after an earlier page: the cursor that it printed")
    for action in (adding, listing, revoking, trail):
        action.add_argument("--database", metavar="URL", default="", help="use this database instead of the home's")
        add_json(action)


def command(options: Namespace) -> int:
    from prony.app.access import open_access

    actions = {"add": _add, "list": _list, "revoke": _revoke, "audit": _audit}
    with open_access(options.database) as access:
        actions[options.action](access, options)
    return 0


def _add(access: Access, options: Namespace) -> None:
    from prony.cli.output import print_json, print_note, print_text

    made = access.add_token(_build_token(options))
    _record(access, "add_token", made.token.id, status=201)
    if options.json:
        print_json(made.model_dump(mode="json"))
        return
    token = made.token
    until = f" until {_format_time(token.expires_at)} UTC" if token.expires_at else ""
    kind = "enrols one agent" if token.once else f"has the role {token.role.value}"
    print_note(f"token {token.id} {kind}{until}; its secret is shown only once:")
    print_text(made.secret)


def _build_token(options: Namespace) -> NewToken:
    """Return what the options ask for, or say which of them is wrong."""
    from pydantic import TypeAdapter, ValidationError

    from prony.errors import InputError
    from prony.model.access import NewToken
    from prony.model.quantity import DurationNs
    from prony.model.validation_words import describe_invalid_value

    asked = {"name": options.name, "role": options.role, "once": options.once}
    try:
        if options.expires is not None:
            asked["expires_in_s"] = TypeAdapter(DurationNs).validate_python(options.expires) / 10**9
        return NewToken.model_validate(asked)
    except ValidationError as exc:
        first = exc.errors(include_url=False)[0]
        wrong = "NAME" if first["loc"] == ("name",) else "--expires"
        of_name = "letters, digits, '.', '_' and '-', at most 100; it begins with a letter or digit"
        hint = of_name if wrong == "NAME" else "for example 30d or 12h, at most ten years"
        raise InputError(f"{wrong}: {describe_invalid_value(first)}", hint=hint) from exc


def _list(access: Access, options: Namespace) -> None:
    from prony.cli.output import print_listed

    page = access.tokens(_PAGE)
    found = list(page.items)
    while page.next is not None:
        page = access.tokens(_PAGE, page.next)
        found += page.items
    heads = ("ID", "NAME", "ROLE", "STATE", "AGENT", "MADE", "EXPIRES", "LAST USED")
    none = "no tokens yet; create one with: prony tokens add NAME --role admin"
    print_listed(found, heads, _token_cells, none=none, as_json=options.json)


def _revoke(access: Access, options: Namespace) -> None:
    from prony.cli.output import print_answer

    access.revoke_token(options.id)
    _record(access, "revoke_token", options.id, status=204)
    print_answer({"revoked": options.id}, f"revoked {options.id}", as_json=options.json)


def _audit(access: Access, options: Namespace) -> None:
    from prony.cli.output import print_columns, print_json, print_note

    page = access.audit(options.limit, options.cursor)
    if options.json:
        print_json(page.model_dump(mode="json"))
    elif page.items:
        heads = ("WHEN", "WHO", "ROLE", "ACTION", "TARGET", "ADDRESS", "STATUS")
        print_columns(heads, [_entry_cells(entry) for entry in page.items])
        if page.next is not None:
            print_note(f"older entries: prony tokens audit --cursor {page.next}")
    else:
        print_note("no entries yet")


def _token_cells(token: Token) -> tuple[str, ...]:
    from datetime import UTC, datetime

    state = "valid"
    if token.revoked_at is not None:
        state = "used" if token.once and token.agent_id else "revoked"
    elif token.expires_at is not None and token.expires_at <= datetime.now(UTC):
        state = "expired"
    role = f"{token.role.value}, once" if token.once else token.role.value
    times = [_format_time(at) for at in (token.created_at, token.expires_at, token.last_used_at)]
    return (token.id, token.name, role, state, token.agent_id or "-", *times)


def _entry_cells(entry: AuditEntry) -> tuple[str, ...]:
    return (
        f"{entry.at:%Y-%m-%d %H:%M:%S}", entry.who, entry.role, entry.action, entry.target or "-",
        entry.address or "-", str(entry.status),
    )  # fmt: skip


def _format_time(at: datetime | None) -> str:
    return "-" if at is None else f"{at:%Y-%m-%d %H:%M}"


def _record(access: Access, action: str, target: str, *, status: int) -> None:
    """Leave the same trace as a request to a server would; here the system says who it was."""
    from datetime import UTC, datetime

    from prony.app.local_store import whoever
    from prony.model.access import AuditEntry

    trace = {"action": action, "target": target, "address": "local", "status": status}
    access.record(AuditEntry(id=0, at=datetime.now(UTC), who=whoever(), role="admin", **trace))
