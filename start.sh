#!/bin/sh
# Beadmill from a clone. Needs Python 3.11 or newer and git; everything else comes from the package registry, checked by hash.
#   ./start.sh              starts the daemon and opens the GUI signed in
#   ./start.sh demo         runs the demo ticket from draft to merged change: no key, no Docker
#   ./start.sh <command>    any other command of `beadmill`
set -eu
cd "$(dirname "$0")"
here=$(pwd)
. .ci/venv.sh
command -v git >/dev/null || die "git was not found" "install git 2.38 or newer"
install requirements.lock use
compile_source
[ $# -gt 0 ] || set -- open
exec "$here/.venv/bin/beadmill" "$@"
