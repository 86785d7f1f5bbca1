#!/bin/sh
# Install Prony with pip or uv: see usage below. All it does is to choose a command, print it and run it.
set -eu

usage() {
    cat <<'END'
Install Prony with pip or uv. Each command is printed before it runs; none needs root.

  sh install.sh                    from pip's index: by uv where it is installed, else into a virtual environment
  sh install.sh --offline          from the folder `wheels` beside this file, without a network
  sh install.sh --dry-run          print the commands, and run none

  --extras NAMES                   with these extras, as onnx,server
  --into FOLDER                    virtual environment to make (~/.local/share/prony-venv)
  --version VERSION                this version of Prony (the newest)
END
}
fail() { echo "error: $1" >&2; exit "${2:-2}"; }
run() {
    echo "+ $*"
    [ -n "$dry_run" ] || "$@"
}

offline='' dry_run='' extras='' version='' into=''
while [ $# -gt 0 ]; do
    case $1 in
        --offline) offline=yes ;;
        --dry-run) dry_run=yes ;;
        --extras | --into | --version)
            [ $# -gt 1 ] || fail "$1 needs a value"
            case $1 in --extras) extras=$2 ;; --into) into=$2 ;; --version) version=$2 ;; esac
            shift ;;
        -h | --help) usage; exit 0 ;;
        *) fail "unknown option: $1 (--help lists them)" ;;
    esac
    shift
done
case $extras$version in *[!A-Za-z0-9._,-]*) fail "extras and version have letters, digits, '.', '_', ',' and '-' only" ;; esac

here=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd)
wanted="prony${extras:+[$extras]}${version:+==$version}"

# The versions of Python that a bundle has wheels for.
versions=''
if [ -n "$offline" ] && [ -f "$here/pythons" ]; then versions=$(tr '\n' ' ' <"$here/pythons"); fi

find_python() {
    fits='import sys; here = "%d.%d" % sys.version_info[:2]; sys.exit(sys.version_info < (3, 11) or here not in (sys.argv[1:] or [here]))'
    for name in ${PYTHON:-} python3.14 python3.13 python3.12 python3.11 python3; do
        # shellcheck disable=SC2086 # each version is a word
        if "$name" -c "$fits" $versions 2>/dev/null; then
            echo "$name"
            return
        fi
    done
    if [ -n "$versions" ]; then
        fail "this bundle is for Python ${versions% }, which was not found; install it, or name it: PYTHON=/path/to/python sh install.sh" 3
    fi
    fail "Python 3.11 or newer was not found; install it, or name it: PYTHON=/path/to/python3.11 sh install.sh" 3
}

check_files() {
    [ -f "$here/SHA256SUMS" ] && [ -d "$here/wheels" ] || fail "there are no wheels beside $0; unpack a bundle first" 3
    if command -v sha256sum >/dev/null; then sums='sha256sum'; else sums='shasum -a 256'; fi
    echo "+ $sums -c SHA256SUMS"
    (cd "$here" && $sums -c SHA256SUMS >/dev/null) || fail "a file of this bundle is damaged; copy it again" 3
}

if [ -n "$offline" ]; then
    check_files
elif [ -z "$into" ] && command -v uv >/dev/null; then
    run uv tool install --python '>=3.11' "$wanted"
    echo "Next: prony doctor"
    exit 0
fi

into=${into:-$HOME/.local/share/prony-venv}
python=$(find_python) || exit $?
run "$python" -m venv "$into"
if [ -n "$offline" ]; then
    run "$into/bin/python" -m pip install --disable-pip-version-check --quiet --no-index --find-links "$here/wheels" "$wanted"
else
    run "$into/bin/python" -m pip install --disable-pip-version-check --quiet --upgrade "$wanted"
fi
echo "Next: $into/bin/prony doctor"
