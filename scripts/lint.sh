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

# The second engine, behind a build tag, where it can be built. Its library has 200 MB:
# KVRT_WASMTIME=1 downloads it, and where it is there already it is used.
wasmtime=$(go list -m -f '{{if .Replace}}{{.Replace}}{{else}}{{.}}{{end}}' github.com/bytecodealliance/wasmtime-go/v39 | tr ' ' @)
proxy=off
[[ ${KVRT_WASMTIME:-} == 1 ]] && proxy=$(go env GOPROXY)
if [[ $(go env GOARCH) == amd64 ]] && command -v "$(go env CC)" >/dev/null && GOPROXY=$proxy go mod download "$wasmtime" 2>/dev/null; then
	CGO_ENABLED=1 go vet -tags wasmtime ./runtime/wasmtime ./cmd/kvrt
	CGO_ENABLED=1 bin/tools/staticcheck -tags wasmtime ./runtime/wasmtime ./cmd/kvrt
else
	echo "lint: files of the build tag wasmtime are not looked at; KVRT_WASMTIME=1 downloads what they need, for amd64 and with cgo" >&2
fi

mapfile -t guests < <(git ls-files --cached --others --exclude-standard -- '*_wasip1.go' '*_wasm.go' |
	xargs -r -n1 dirname | sort -u | sed 's|^|./|')
if ((${#guests[@]})); then
	# Offsets of a frame become pointers in a guest: that is its ABI.
	GOOS=wasip1 GOARCH=wasm go vet -unsafeptr=false "${guests[@]}"
	# What is exported to the host is used there (U1000).
	GOOS=wasip1 GOARCH=wasm bin/tools/staticcheck -checks inherit,-U1000 "${guests[@]}"
fi

mapfile -t shell < <(git grep -lIE --untracked '^#!.*\b(ba)?sh\b' -- ':!*.md' ':!**/testdata/**')
shellcheck "${shell[@]}"
