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
guests=()
for dir in policies sdk examples; do
	[[ ! -d $dir ]] || guests+=("./$dir/...")
done
if ((${#guests[@]})); then
	# Offsets of a frame become pointers in a guest: that is its ABI.
	GOOS=wasip1 GOARCH=wasm go vet -unsafeptr=false "${guests[@]}"
	GOOS=wasip1 GOARCH=wasm bin/tools/staticcheck "${guests[@]}"
fi

mapfile -t shell < <(git grep -lIE --untracked '^#!.*\b(ba)?sh\b' -- ':!*.md' ':!**/testdata/**')
shellcheck "${shell[@]}"
