#!/usr/bin/env bash
# Ask buf whether the protocol took anything away from those who already speak it.
#
# It is compared with every earlier protocol there is to be found:
#   1. proto/released.binpb, the one that was last declared public (`make freeze` writes it);
#      it is a file, so that a shallow clone or one without tags has it too;
#   2. the newest release tag before HEAD;
#   3. main, when HEAD is another commit.
# Where none exists, as before the first landing, it says so and passes.
set -euo pipefail
cd "$(dirname "$0")/.."

buf=${BUF:-.venv/bin/buf}
frozen=proto/released.binpb
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
compared=0

compare() { # what to call it, what buf shall read
  echo "breaking: against $1"
  "$buf" breaking --against "$2"
  compared=$((compared + 1))
}

# buf could read `.git#ref=…` itself, but only as that commit's buf.yaml says, and a commit that has
# none does not build; a plain directory is read as ours says.
compare_commit() { # what to call it, revision
  git cat-file -e "$2:proto" 2>/dev/null || return 0
  mkdir -p "$scratch/$2"
  git archive "$2" proto | tar -x -C "$scratch/$2"
  compare "$1" "$scratch/$2/proto"
}

[ ! -e "$frozen" ] || compare "$frozen" "$frozen"

if head=$(git rev-parse --verify --quiet HEAD 2>/dev/null); then
  if tag=$(git describe --tags --abbrev=0 --match 'v*' 'HEAD^' 2>/dev/null); then
    compare_commit "release $tag" "$(git rev-parse "$tag^{commit}")"
  fi
  for branch in origin/main main; do
    main=$(git rev-parse --verify --quiet "$branch^{commit}") || continue
    [ "$main" = "$head" ] || compare_commit "$branch" "$main"
    break
  done
fi

[ "$compared" -gt 0 ] || echo "breaking: no earlier protocol to compare with; nothing can break yet"
