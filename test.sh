#!/bin/sh
# Every check of Beadmill: lint, format, types, import layers, tests. Continuous integration runs exactly this.
#   ./test.sh                      everything
#   ./test.sh --long               also the tests that show with more cases what others show
#   ./test.sh tests/domain -k x    only these tests (any arguments of pytest); tools that they do not need are not installed
# As root it installs what is missing with apt-get; otherwise it says what to install. All other tools go into .venv and .test-tools.
set -eu
cd "$(dirname "$0")"
. .ci/venv.sh
CODEX=0.171.0
CLAUDE=2.1.332
OPENCODE=1.18.33
COPILOT=1.0.102
AXE=4.14.1
GITHUB_API=23.0.2
tools=$(pwd)/.test-tools
whole=false
case $* in '' | --long) whole=true ;; esac

# --- what is started here is stopped here, by its pid ---
cluster= cluster_pid= said= reading_pid=
finish() {
    code=$?
    trap - EXIT INT TERM
    [ -z "$reading_pid" ] || kill "$reading_pid" 2>/dev/null || true
    [ -z "$said" ] || rm -f "$said"
    if [ -n "$cluster_pid" ]; then
        kill -INT "$cluster_pid" 2>/dev/null || true
        while kill -0 "$cluster_pid" 2>/dev/null; do sleep 0.1; done
    fi
    [ -z "$cluster" ] || rm -rf "$cluster"
    exit "$code"
}
trap finish EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

# --- tools of the system: need COMMAND PACKAGE... remembers what is missing, install_missing gets it ---
missing=
need() {
    command -v "$1" >/dev/null 2>&1 || missing="$missing $2"
}
find_initdb() {
    for candidate in $(command -v initdb || true) /usr/lib/postgresql/*/bin/initdb; do
        [ ! -x "$candidate" ] || { dirname "$candidate"; return; }
    done
}
has_chinese_font() {
    command -v fc-list >/dev/null 2>&1 && [ -n "$(fc-list :lang=zh family | head -n 1)" ]
}
install_missing() {
    [ -n "$missing" ] || return 0
    [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null ||
        die "tests need tools that are not here:$missing" "install them with your system's package manager, or run ./test.sh as root"
    say "installing$missing"
    # Debian would start a cluster of its own; the tests start theirs.
    if [ ! -e /etc/postgresql-common/createcluster.conf ]; then
        mkdir -p /etc/postgresql-common
        echo 'create_main_cluster = false' >/etc/postgresql-common/createcluster.conf
    fi
    export DEBIAN_FRONTEND=noninteractive
    apt-get update -qq >&2
    # shellcheck disable=SC2086 # a list of package names
    apt-get install -y -qq --no-install-recommends $missing >&2
}

need git git
install_missing
install requirements-dev.lock tests use
compile_source
PATH=$(pwd)/.venv/bin:$PATH # the python3 of tests' commands: a wrapper that picks a version would cost more than they do
export PATH

# --- the checks that only read: while the other tools are being installed ---
failed=
check() {
    say "$*"
    "$@" || failed="$failed
  $*"
}
read_only_checks() {
    # Meanwhile the modules of the tests are compiled: once, not by each worker.
    PYTHONDONTWRITEBYTECODE='' .venv/bin/python -m pytest -q --collect-only >/dev/null 2>&1 &
    check .venv/bin/python -m ruff check .
    check .venv/bin/python -m ruff format --check .
    check .venv/bin/python -m mypy
    check .venv/bin/lint-imports
    wait
    [ -z "$failed" ] || die "failed:$failed"
}
if $whole; then
    said=$(mktemp)
    read_only_checks >"$said" 2>&1 &
    reading_pid=$!
fi

# Does this selection hold a test with the marker? The whole suite holds all.
selected() {
    marker=$1
    shift
    $whole || .venv/bin/python -m pytest -q --collect-only "$@" -m "$marker" >/dev/null 2>&1
}
postgres=false browser=false codex=false claude_code=false opencode=false acp=false sandbox=false container=false github_api=false
for kind in postgres browser codex claude_code opencode acp sandbox container github_api; do
    if selected "$kind" "$@"; then eval "$kind=true"; fi
done

missing=
if $postgres && [ -z "$(find_initdb)" ]; then missing="$missing postgresql"; fi
if $browser; then
    command -v chromium-browser >/dev/null 2>&1 || need chromium chromium
    has_chinese_font || missing="$missing fonts-noto-cjk fontconfig"
fi
if $codex || $claude_code || $opencode || $acp || $browser || $github_api; then need npm npm; fi
if $codex || $sandbox; then need bwrap bubblewrap; fi
install_missing

# --- containers: a machine that cannot run them runs all other tests, and says so at the end ---
# crun takes no cgroups of both versions at once, as some virtual machines have them: then runc is needed too.
no_container=
try_container() {
    for tool in podman $([ -e /sys/fs/cgroup/cgroup.controllers ] || echo runc); do
        need "$tool" "$tool"
    done
    if [ -n "$missing" ]; then
        (install_missing) >/dev/null 2>&1 || { no_container="could not install$missing"; return; }
    fi
    no_container=$(.venv/bin/python -c '
import asyncio
from beadmill.workspaces.sandboxes.container import ContainerSandbox
health = asyncio.run(ContainerSandbox().probe())
print("" if health.ok else health.message.replace("\n", " "))
') || no_container="its probe broke"
    [ -n "$no_container" ] || export BEADMILL_TEST_PODMAN=1
}
missing=
if $container; then try_container; fi

# --- the coding agents that the tests drive: the real programs, talking to a scripted model on loopback ---
machine=$(uname -s | tr '[:upper:]' '[:lower:]')-$(uname -m | sed 's/x86_64/x64/; s/aarch64/arm64/')
# cli PACKAGE VERSION BINARY: the native binary below the package's folder. Each has a folder of its own: npm takes out of
# a folder what it was not asked for.
cli() {
    place=$tools/agents/$(basename "$1")
    [ "$(cat "$place/installed" 2>/dev/null)" = "$2" ] || {
        say "installing $1 $2 for the tests"
        rm -rf "$place"
        mkdir -p "$place"
        npm install --prefix "$place" --no-save --no-audit --no-fund --loglevel=error "$1@$2" >&2
        echo "$2" >"$place/installed"
    }
    found=$(find "$place/node_modules" -type f -path "$3" | head -n 1)
    [ -n "$found" ] || die "npm installed no program of $1 for this machine" "remove $place and run ./test.sh again"
    printf '%s\n' "$found"
}
if $codex; then
    BEADMILL_TEST_CODEX=$(cli @openai/codex "$CODEX" '*/vendor/*/bin/codex')
    export BEADMILL_TEST_CODEX
fi
if $claude_code; then
    BEADMILL_TEST_CLAUDE=$(cli @anthropic-ai/claude-code "$CLAUDE" "*/claude-code-$machine/claude")
    export BEADMILL_TEST_CLAUDE
fi
if $opencode || $acp; then
    BEADMILL_TEST_OPENCODE=$(cli "opencode-$machine" "$OPENCODE" '*/bin/opencode')
    export BEADMILL_TEST_OPENCODE
fi
if $acp; then
    BEADMILL_TEST_COPILOT=$(cli @github/copilot "$COPILOT" "*/copilot-$machine/copilot")
    export BEADMILL_TEST_COPILOT
fi

# --- the accessibility checker that the browser tests put into every page ---
if $browser; then
    axe=$tools/axe/node_modules/axe-core # a folder of its own: npm takes out of a folder what it was not asked for
    grep -q "\"version\": \"$AXE\"" "$axe/package.json" 2>/dev/null || {
        say "installing axe-core $AXE for the tests"
        mkdir -p "$tools/axe"
        npm install --prefix "$tools/axe" --no-save --no-audit --no-fund --loglevel=error "axe-core@$AXE" >&2
    }
    export BEADMILL_TEST_AXE="$axe/axe.min.js"
fi

# --- GitHub's own description of its API, which the fake GitHub is held against: one file of a large package ---
if $github_api; then
    BEADMILL_TEST_GITHUB_API=$tools/github-api/$GITHUB_API.json
    [ -s "$BEADMILL_TEST_GITHUB_API" ] || {
        say "fetching @octokit/openapi $GITHUB_API for the tests"
        mkdir -p "$tools/github-api"
        packed=$(cd "$tools/github-api" && npm pack --silent --loglevel=error "@octokit/openapi@$GITHUB_API")
        tar -xzOf "$tools/github-api/$packed" package/generated/api.github.com.json >"$BEADMILL_TEST_GITHUB_API.part"
        mv "$BEADMILL_TEST_GITHUB_API.part" "$BEADMILL_TEST_GITHUB_API"
        rm -f "$tools/github-api/$packed"
    }
    export BEADMILL_TEST_GITHUB_API
fi

# --- a PostgreSQL cluster for this run alone ---
start_cluster() {
    bin=$(find_initdb)
    cluster=$(mktemp -d)
    owner=
    if [ "$(id -u)" = 0 ]; then
        chown postgres "$cluster"
        owner="runuser -u postgres --"
    fi
    port=$(.venv/bin/python -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
    say "starting PostgreSQL on 127.0.0.1:$port"
    (
        cd "$cluster"
        $owner "$bin/initdb" -D "$cluster/data" -U beadmill -A trust -E UTF8 --locale=C >"$cluster/initdb.log" 2>&1 ||
            { cat "$cluster/initdb.log" >&2; exit 1; }
        $owner "$bin/pg_ctl" -D "$cluster/data" -w -t 60 -l "$cluster/data/server.log" \
            -o "-c listen_addresses=127.0.0.1 -c port=$port -c unix_socket_directories=$cluster -c fsync=off -c max_connections=200" \
            start >/dev/null || { cat "$cluster/data/server.log" >&2; exit 1; }
    )
    cluster_pid=$(head -n 1 "$cluster/data/postmaster.pid")
    export BEADMILL_TEST_POSTGRES="postgresql+psycopg://beadmill@127.0.0.1:$port/postgres"
}
if $postgres; then start_cluster; fi

# --- the verdict ---
if $whole; then
    wait "$reading_pid" || failed="
  lint, format, types or import layers: said before the tests"
    reading_pid=
    cat "$said" >&2
    check .venv/bin/python -m pytest -n 3 "$@" # on two cores: many tests wait for a while
else
    check .venv/bin/python -m pytest "$@"
fi
if $container; then
    if [ -n "$no_container" ]; then
        say "container sandbox: not run here: $no_container"
    else
        say "container sandbox: run with $(podman --version)"
    fi
fi
[ -z "$failed" ] || die "failed:$failed"
say "all checks passed"
