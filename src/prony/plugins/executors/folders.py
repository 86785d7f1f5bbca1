"""Send job folders to a machine by its shell, look into them there, and fetch what they hold."""

from __future__ import annotations

import tarfile
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import Annotated

from pydantic import Field, ValidationError

from prony import __version__
from prony.errors import CapacityError, StoreError, TransportError
from prony.model.base import Noun
from prony.model.event import Event
from prony.model.target import CheckLine, DoneNote, Payload
from prony.plugins.executors.shell import Shell, ShellOutput
from prony.ports.executor import BuildPackages, Interpreter
from prony.runner.job_folder import DONE, RESULT, find_missing_files

_UPLOAD_S = 3600.0
_MARK = "--folders--"
_NEWEST_PYTHONS = "python3.14 python3.13 python3.12 python3.11 python3 python"
SetupLine = Annotated[str, Field(max_length=2000)]


class FolderOptions(Noun):
    """Where Prony works on the target, and how its Python is found there."""

    prefix: str = Field(default="~/prony", min_length=1, description="Prony's folder on the target")
    python: str = Field(
        default="", description="a Python with Prony on the target; default: the one that `targets install` put there"
    )
    setup: tuple[SetupLine, ...] = Field(
        default=(), description="shell lines to run before, for example `module load python`"
    )


# What every script begins with. `pid.*`: pid, start and boot of each process that was started to run a folder, of which
# one does.
_COMMON = r"""
case "$prefix" in "~") prefix="$HOME";; "~/"*) prefix="$HOME/${prefix#"~/"}";; esac
umask 077
start_of() { sed -e 's/.*) //' "/proc/$1/stat" 2>/dev/null | awk '$1 != "Z" {print $20}'; }
boot_id() { cat /proc/sys/kernel/random/boot_id 2>/dev/null || echo none; }
alive() {
  for note in "$1"/pid.*; do
    [ -f "$note" ] && read -r pid began boot < "$note" && [ "$boot" = "$(boot_id)" ] || continue
    if [ -d /proc/self ]; then [ -n "$began" ] && [ "$(start_of "$pid")" = "$began" ] && return 0
    else kill -0 "$pid" 2>/dev/null && return 0; fi
  done
  return 1
}
find_python() {
  if [ -n "$python" ]; then echo "$python"; return; fi
  for found in "$prefix"/prony-"$release"-*/bin/python; do [ -x "$found" ] && { echo "$found"; return; }; done
  return 1
}
"""
# Unpacked under another name and renamed: a folder that has its name is whole. The script of a submitter that was
# killed may still run here, so one at a time.
_SEND = r"""
set -eu
mkdir -p "$prefix/runs" "$prefix/home"
cd "$prefix/runs"
if command -v flock >/dev/null; then exec 9>>"$key.lock"; flock 9; fi
is_new=
if [ ! -d "$key" ]; then
  is_new=yes
  rm -rf "$key".new.*
  new="$key.new.$$"
  mkdir "$new"
  tar -xf - -C "$new"
  [ -f "$new/complete" ] || { rm -rf "$new"; echo "the upload was cut short" >&2; exit 3; }
  mv "$new" "$key"
  [ ! -d "$key/$new" ] || rm -rf "$key/$new"
fi
cd "$key"
"""
_LOOK = r"""
cd "$prefix/runs" 2>/dev/null || { echo; exit 0; }
while read -r key offset; do
  if [ ! -d "$key" ]; then echo "$key absent 0"; continue; fi
  flags=present
  for one in begun waiting DONE result fetched; do [ -e "$key/$one" ] && flags="$flags,$one"; done
  for one in "$key"/pid.*; do [ -f "$one" ] && flags="$flags,started"; done
  alive "$key" && flags="$flags,alive"
  [ -e "$key/DONE" ] && grep -q '"stopped": *true' "$key/DONE" && flags="$flags,stopped"
  size=0
  [ -f "$key/events.jsonl" ] && size=$(($(wc -c < "$key/events.jsonl") - offset))
  [ "$size" -gt 262144 ] && size=262144
  [ "$size" -lt 0 ] && size=0
  echo "$key $flags $size"
  [ "$size" -gt 0 ] && tail -c +$((offset + 1)) "$key/events.jsonl" | head -c "$size"
  echo
done
"""
_READ = r"""cd "$prefix/runs/$key" && cat "$name" """
_TAIL = (
    r"""cd "$prefix/runs/$key" && for one in slurm.out out.log; do [ -f "$one" ] && tail -c 1500 "$one"; done; exit 0"""
)
_PACK_LISTED = r"""cd "$prefix/runs/$key" && exec tar -cf - -T -"""
_PACK_ALL = r"""cd "$prefix/runs/$key" && exec tar -cf - result"""
_MARK_FETCHED = r"""touch "$prefix/runs/$key/fetched" """
_REMOVE = r"""
cd "$prefix/runs" 2>/dev/null || exit 0
for key in $keys; do
  if [ -f "$key/fetched" ] || [ ! -e "$key/result" ]; then rm -rf "$key"; fi
  rm -rf "$key".new.* "$key.lock"
done
"""
_LIST = r"""cd "$prefix/runs" 2>/dev/null && ls -1 || exit 0"""
_CHECK = r"""
say() { printf '%s|%s|%s\n' "$1" "$2" "$3"; }
say host ok "$(uname -sm) $(uname -n)"
for one in tar base64 awk sed grep tail head; do command -v $one >/dev/null || say "$one" failed "not on the path"; done
if mkdir -p "$prefix" 2>/dev/null && dd if=/dev/zero of="$prefix/.write.$$" bs=65536 count=16 2>/dev/null; then
  rm -f "$prefix/.write.$$"
  say folder ok "$prefix, $(df -Pk "$prefix" | awk 'NR==2 {printf "%.0f GiB free", $4/1048576}')"
else say folder failed "cannot write 1 MiB to $prefix"; fi
if found=$(find_python); then
  asked='import platform, prony; print("Prony", prony.__version__, "on Python", platform.python_version())'
  if told=$("$found" -P -c "$asked" 2>&1)
  then say runner ok "$told, $found"; else say runner failed "$found: $(printf '%s' "$told" | tail -n 1)"; fi
else say runner failed "not installed for release $release below $prefix"; fi
"""
_INTERPRETER = r"""
found=
for one in $python $candidates; do
  "$one" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && { found=$one; break; }
done
[ -n "$found" ] || exit 3
"$found" -c 'import platform, sys
libc = "glibc" if platform.libc_ver()[0] else "other"
print(sys.executable, "%d.%d" % sys.version_info[:2], platform.machine(), libc)'
"""
_INSTALLED = r"""[ -f "$prefix/$folder/complete" ] && cd "$prefix/$folder" && pwd && cat complete"""
# A virtual environment without pip: the interpreter's own library, and our packages and nothing else beside it. A job
# that runs from an older one finds the same release in the new one. `find_python` must not find what is not whole.
_INSTALL = r"""
set -eu
mkdir -p "$prefix"
cd "$prefix"
new="new-$folder.$$"
old="old-$folder.$$"
rm -rf "new-$folder".* "old-$folder".*
"$interpreter" -m venv --without-pip "$new"
site=$("$new/bin/python" -c 'import sysconfig; print(sysconfig.get_path("purelib"))')
tar -xf - -C "$site"
[ -f "$site/complete" ] || { rm -rf "$new"; echo "the upload was cut short" >&2; exit 3; }
rm "$site/complete"
"$new/bin/python" -P -c 'import prony'
printf '%s\n' "$extras" > "$new/complete"
[ ! -d "$folder" ] || mv "$folder" "$old"
mv "$new" "$folder"
rm -rf "$old"
cd "$folder" && pwd
"""


@dataclass(frozen=True)
class FolderStatus:
    """What was seen of one folder: flags, new events and where to read on."""

    flags: frozenset[str]
    events: tuple[Event, ...] = ()
    offset: int = 0

    def has(self, flag: str) -> bool:
        return flag in self.flags


class RemoteFolders:
    """The job folders of one target: below its prefix, each under its key."""

    def __init__(self, shell: Shell, options: FolderOptions) -> None:
        self.shell = shell
        self._values = {"prefix": options.prefix, "python": options.python, "release": __version__}

    def run(self, script: str, stdin: Path | bytes = b"", *, timeout_s: float = 60.0, **values: str) -> bytes:
        """Run a script with the functions and values of every script; return what it printed."""
        done = self.shell.run(_COMMON + script, self._values | values, stdin=stdin, timeout_s=timeout_s)
        return done.require(f"a command on {self.shell.host or 'this machine'}")

    def send(self, payload: Payload, files: Mapping[str, str], then: str, **values: str) -> ShellOutput:
        """Put a payload there under its key, with these files beside, and run a script in its folder."""
        with tempfile.NamedTemporaryFile(suffix=".tar") as held:
            write_tree_tar(Path(payload.folder), held.name, files)
            given = self._values | values | {"key": payload.key}
            return self.shell.run(_COMMON + _SEND + then, given, stdin=Path(held.name), timeout_s=_UPLOAD_S)

    def look(self, offsets: Mapping[str, int]) -> dict[str, FolderStatus]:
        """Return the state of each folder; one that is not there has no flags."""
        return self.look_after("", offsets)[1]

    def look_after(self, script: str, offsets: Mapping[str, int]) -> tuple[str, dict[str, FolderStatus]]:
        """Return what a script prints and the state of each folder, by one command."""
        asked = "".join(f"{key} {offset}\n" for key, offset in offsets.items()).encode()
        told, _, states = self.run(f"(:\n{script}\n) </dev/null\necho {_MARK}\n{_LOOK}", asked).partition(
            f"{_MARK}\n".encode()
        )
        return told.decode(errors="replace"), parse_folder_states(states, offsets)

    def fetch(self, key: str, into: Path) -> DoneNote | None:
        """Bring the results of a folder that has ended; return its note, None where its runner was killed before it
        could write one."""
        into.mkdir(parents=True, exist_ok=True)
        status = self.look({key: 0})[key]
        values = self._values | {"key": key}
        if not status.has(DONE):
            if status.has(RESULT):
                self.shell.receive(_COMMON + _PACK_ALL, values, into, names=())
                self.run(_MARK_FETCHED, key=key)
            return None
        note = self._read_note(key)
        missing = find_missing_files(note, into)
        if missing:
            self.shell.receive(_COMMON + _PACK_LISTED, values, into, names=missing)
        missing = find_missing_files(note, into)
        if missing:
            raise TransportError(f"{missing[0]} of {key} was not transferred completely", hint="Prony fetches it again")
        self.run(_MARK_FETCHED, key=key)
        return note

    def tail_log(self, key: str) -> str:
        """Return the end of what the runner or its scheduler printed, in one line."""
        text = self.run(_TAIL, key=key).decode(errors="replace")
        return " / ".join(line.strip() for line in text.splitlines()[-3:] if line.strip())

    def remove(self, keys: Sequence[str]) -> None:
        """Remove folders that were fetched, or hold nothing that was measured."""
        self.run(_REMOVE, keys=" ".join(keys), timeout_s=600)

    def keys(self) -> list[str]:
        """Return the keys of all folders that lie there."""
        return self.run(_LIST).decode(errors="replace").split()

    def check(self, more: str = "", **values: str) -> list[CheckLine]:
        """Return what the machine has of what Prony needs; `more` of the script says further lines."""
        told = self.run(_CHECK + more, b"", timeout_s=120, **values).decode(errors="replace")
        return [_read_check(line) for line in told.splitlines() if line.count("|") >= 2]

    def install(self, release: str, extras: Sequence[str], build: BuildPackages) -> str:
        """Put a release there, unless it is there with these extras; a half of one never has its name."""
        done = self.shell.run(_COMMON + _INTERPRETER, self._values | {"candidates": _NEWEST_PYTHONS})
        if done.exit_code:
            raise CapacityError(
                f"no Python 3.11 or newer on {self.shell.host or 'this machine'}",
                hint="set the target's option python, or load a module with its option setup",
                code="no_python",
            )
        path, version, machine, libc = done.stdout.decode().split()
        found = Interpreter(version, machine, libc)
        folder = f"prony-{release}-{found.tag}"
        there = self.shell.run(_COMMON + _INSTALLED, self._values | {"folder": folder})
        present: list[str] = []
        if there.exit_code == 0:
            place, _, noted = there.stdout.decode().partition("\n")
            present = noted.split()
            if set(extras) <= set(present):
                return place
        wanted = sorted({*present, *extras})
        archive = build(found, wanted)
        told = self.run(
            _INSTALL, archive, timeout_s=_UPLOAD_S, folder=folder, interpreter=path, extras=" ".join(wanted)
        )
        return told.decode().strip().splitlines()[-1]

    def _read_note(self, key: str) -> DoneNote:
        try:
            return DoneNote.read_json(self.run(_READ, key=key, name=DONE))
        except ValidationError as exc:
            raise StoreError(f"the list of files of {key} cannot be read", hint="fetch again in a moment") from exc


def _read_check(line: str) -> CheckLine:
    title, status, value = line.split("|", 2)
    bad = status != "ok"
    hint = "run prony targets install NAME, or set its option python to a Python with Prony"
    return CheckLine.model_validate(
        {"title": title, "status": status, "value": value, "hint": hint if bad and title == "runner" else ""}
    )


def check_installed(told: bytes, shell: Shell) -> None:
    """Refuse to go on where a start found no Prony to run."""
    if told.strip().endswith(b"no-prony"):
        raise CapacityError(
            f"Prony {__version__} is not installed on {shell.host or 'this machine'}",
            hint="run prony targets install NAME, or set its option python to a Python with Prony",
            code="prony_not_installed",
        )


def write_tree_tar(folder: Path, to: str, files: Mapping[str, str]) -> None:
    """Write a folder and some texts beside it as a tar whose last file is `complete`."""
    with tarfile.open(to, "w") as archive:
        for path in sorted(folder.iterdir()):
            archive.add(path, arcname=path.name)
        for name, text in (*files.items(), ("complete", "")):
            member = tarfile.TarInfo(name)
            member.size, member.mode = len(text.encode()), 0o700
            archive.addfile(member, BytesIO(text.encode()))


def parse_folder_states(printed: bytes, offsets: Mapping[str, int]) -> dict[str, FolderStatus]:
    """Read what the look printed: a line for each folder, and as many bytes of events as the line says."""
    found = {key: FolderStatus(frozenset(), offset=offset) for key, offset in offsets.items()}
    at = 0
    while at < len(printed):
        end = printed.find(b"\n", at)
        words = printed[at : end if end >= 0 else len(printed)].decode(errors="replace").split()
        at = end + 1 if end >= 0 else len(printed)
        if len(words) != 3 or words[0] not in found:
            continue
        key, flags, size = words[0], words[1], int(words[2])
        block, at = printed[at : at + size], at + size
        whole = block[: block.rfind(b"\n") + 1]
        events = tuple(event for line in whole.splitlines() if (event := _read_event(line)) is not None)
        names = frozenset() if flags == "absent" else frozenset(flags.split(","))
        found[key] = FolderStatus(names, events, offsets[key] + len(whole))
    return found


def _read_event(line: bytes) -> Event | None:
    try:
        return Event.read_json(line)
    except ValidationError:
        return None
