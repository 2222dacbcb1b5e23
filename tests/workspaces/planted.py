"""What an agent could plant so that git runs it for Beadmill: shell scripts, run in a ticket's worktree.

``EVIL`` is a program that leaves a mark when it runs, ``REPO`` the user's checkout.
"""

from __future__ import annotations

from pathlib import Path

# Switched off for good: the work goes on and lands.
OFF = {
    "fsmonitor": "git config core.fsmonitor EVIL",
    "hooks path": "mkdir h; for n in pre-commit post-checkout reference-transaction post-index-change; do cp EVIL h/$n; "
    "done; git config core.hooksPath $PWD/h; rm -rf h.keep",
    "hooks": "for n in pre-commit post-checkout reference-transaction post-index-change; do cp EVIL REPO/.git/hooks/$n; done",
    "editor and pager": "git config core.editor EVIL; git config core.pager EVIL; git config sequence.editor EVIL",
    "alias": "git config alias.status '!EVIL'; git config alias.update-ref '!EVIL'",
    "external diff": "git config diff.external EVIL; git config diff.evil.command EVIL; git config diff.evil.textconv EVIL;"
    "echo '*.py diff=evil' >> REPO/.git/info/attributes",
    "work tree elsewhere": "git config core.worktree REPO",
    "git file elsewhere": "echo 'gitdir: REPO/.git' > .git",
    "git file gone": "rm .git",
    "own repository": "rm .git; git init -q .; git config core.fsmonitor EVIL",
    "record elsewhere": "D=$(git rev-parse --absolute-git-dir); echo REPO/elsewhere > $D/commondir; echo /nowhere > $D/gitdir",
    "index lock": "touch $(git rev-parse --absolute-git-dir)/index.lock",
    "broken index": "echo rubbish > $(git rev-parse --absolute-git-dir)/index",
    "grafts": "git rev-parse HEAD > REPO/.git/info/grafts",
    "replaced commit": "git replace -f HEAD $(git commit-tree -m x $(git write-tree))",
    "alternates": "mkdir -p ../../alt; echo $(cd ../..; pwd)/alt > REPO/.git/objects/info/alternates",
    "show signatures": "git config log.showSignature true; git config user.signingKey x",
    "ext protocol": "git config submodule.recurse true; git config diff.submodule log",
}

ATTRIBUTES = "echo '* filter=evil merge=evil' >> REPO/.git/info/attributes; echo '* filter=evil' > .gitattributes;"
# Could run a program in ways that cannot be switched off without harm: no git command runs until a person looks.
STOPS = {
    "filter": f"{ATTRIBUTES} git config filter.evil.clean EVIL; git config filter.evil.smudge EVIL",
    "process filter": f"{ATTRIBUTES} git config filter.evil.process EVIL",
    "merge driver": f"{ATTRIBUTES} git config merge.evil.driver EVIL",
    "ssh command": "git config core.sshCommand EVIL; git config remote.origin.url ssh://127.0.0.1:9/x.git",
    "signing program": "git config gpg.program EVIL; git config commit.gpgSign true",
    "credential helper": "git config credential.helper '!EVIL'",
    "upload pack": "git config remote.origin.uploadpack EVIL; git config remote.origin.receivepack EVIL",
    "rewritten address": "git config url.ext::EVIL.insteadOf REPO; git config protocol.ext.allow always",
    "alternate refs": "git config core.alternateRefsCommand EVIL",
    "include": f"{ATTRIBUTES} printf '[filter \"evil\"]\\n\\tclean = EVIL\\n' > inc; git config include.path $PWD/inc",
    "worktree settings": f"{ATTRIBUTES} git config extensions.worktreeConfig true;"
    "git config --worktree filter.evil.clean EVIL",
}
# A repository in the place of a submodule, with settings and attributes of its own.
INNER = (
    "cd sub; git init -q .; echo a > a; git add a; git commit -qm a; git config filter.evil.clean EVIL;"
    "git config core.fsmonitor EVIL; echo '* filter=evil' > .git/info/attributes; touch -d 2001-01-01 a; echo b > a"
)


def script(text: str, *, evil: Path, repository: Path) -> str:
    return text.replace("EVIL", str(evil)).replace("REPO", str(repository))


def evil_program(folder: Path) -> Path:
    """Leaves ``<folder>/ran``, whatever it is called with."""
    program = folder / "evil.sh"
    program.write_text(f"#!/bin/sh\ntouch '{folder}/ran'\ncat >/dev/null 2>&1\nexit 0\n")
    program.chmod(0o755)
    return program
