# Sourced by start.sh and test.sh: makes .venv from a hashed lock and keeps it in step. All its words go to stderr.

say() { printf 'beadmill: %s\n' "$*" >&2; }

die() {
    say "$1"
    [ $# -lt 2 ] || say "next: $2"
    exit 1
}

# The first Python of at least 3.11; BEADMILL_PYTHON overrides the search.
find_python() {
    for candidate in ${BEADMILL_PYTHON:-python3 python3.14 python3.13 python3.12 python3.11 python}; do
        if "$candidate" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
            command -v "$candidate"
            return
        fi
    done
    die "no Python of at least 3.11 was found" "install one, or name it: BEADMILL_PYTHON=/path/to/python3.12 ./start.sh"
}

# An environment that we made at this path and that still starts is used; one that somebody else made is never deleted.
ensure_venv() {
    if .venv/bin/python -m pip --version >/dev/null 2>&1; then
        made_at=$(cat .venv/made-at 2>/dev/null || pwd)
        [ "$made_at" != "$(pwd)" ] || return 0
    elif [ -e .venv ] && [ ! -e .venv/made-at ]; then
        die ".venv exists, was not made by Beadmill and has no working pip; it was left as it is" "remove .venv and start again"
    fi
    python=$(find_python)
    say "making .venv with $("$python" --version 2>&1)"
    rm -rf .venv
    "$python" -m venv .venv >&2 || die "$python cannot make a virtual environment" \
        "install its venv module (on Debian and Ubuntu: apt-get install python3-venv), remove .venv, start again"
    pwd >.venv/made-at
}

# install LOCK PURPOSE...: every package of LOCK, checked by hash, then Beadmill itself. Nothing happens when .venv already
# holds this lock and this pyproject.toml for the first PURPOSE. A lock that contains another's packages names both purposes.
install() {
    lock=$1
    shift
    wanted=$({ pwd; cat "$lock" pyproject.toml; } | git hash-object --stdin)
    [ "$(cat ".venv/made-for-$1" 2>/dev/null)" != "$wanted" ] || return 0
    ensure_venv
    rm -f .venv/made-for-*
    say "installing the packages of $lock, each checked by hash (the first time takes about a minute)"
    .venv/bin/python -m pip -qq --disable-pip-version-check install --require-hashes -r "$lock" >&2 ||
        die "the packages could not be installed; .venv was kept" "check the connection to your package registry, then start again"
    .venv/bin/python -m pip -qq --disable-pip-version-check install --no-deps --no-build-isolation -e . >&2 ||
        die "Beadmill itself could not be installed; .venv was kept" "start again; if it stays, remove .venv first"
    for purpose in "$@"; do
        { pwd; cat "$(lock_of "$purpose")" pyproject.toml; } | git hash-object --stdin >".venv/made-for-$purpose"
    done
}

# Where Python may not keep what it compiled (container images often say so), every process would compile Beadmill anew.
compile_source() {
    [ -z "${PYTHONDONTWRITEBYTECODE:-}" ] || .venv/bin/python -m compileall -q src 2>/dev/null || true
}

lock_of() {
    case $1 in
    use) echo requirements.lock ;;
    tests) echo requirements-dev.lock ;;
    esac
}
