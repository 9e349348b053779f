#!/usr/bin/env bash
# Format, vet, staticcheck, shellcheck. Go code for guests builds for wasip1
# only, where a native run would pass over it in silence.
set -euo pipefail
cd "$(dirname "$0")/.."

mapfile -t go_files < <(git ls-files --cached --others --exclude-standard -- '*.go')
unformatted=$(gofmt -l "${go_files[@]}")
[[ -z $unformatted ]] || {
	echo "lint: run gofmt -w on:" >&2
	echo "$unformatted" >&2
	exit 1
}

go vet ./...
bin/tools/staticcheck ./...
mapfile -t guests < <(git grep -lE --untracked '^//go:build .*\b(wasip1|wasm)\b' -- '*.go' |
	xargs -r -n1 dirname | sort -u | sed 's|^|./|')
if ((${#guests[@]})); then
	# Offsets of a frame become pointers in a guest: that is its ABI.
	GOOS=wasip1 GOARCH=wasm go vet -unsafeptr=false "${guests[@]}"
	GOOS=wasip1 GOARCH=wasm bin/tools/staticcheck "${guests[@]}"
fi

mapfile -t shell < <(git grep -lIE --untracked '^#!.*\b(ba)?sh\b' -- ':!*.md' ':!**/testdata/**')
shellcheck "${shell[@]}"
