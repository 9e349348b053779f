#!/usr/bin/env bash
# Builds the AssemblyScript guests in place.
#
#   scripts/assemblyscript.sh           build
#   scripts/assemblyscript.sh --check   build elsewhere and compare with what is committed
#
# The compiler is the one that sdk/assemblyscript/package-lock.json pins, with its digest;
# it is installed into bin/asc when it is not there. It asks for Node.js 20 and gives the
# same bytes on 18, which Debian 12 has. KVRT_NO_INSTALL=1 installs nothing.
set -euo pipefail
cd "$(dirname "$0")/.."

sdk=sdk/assemblyscript asc=bin/asc
say() { echo "assemblyscript: $*" >&2; }

if ! cmp -s $sdk/package-lock.json $asc/package-lock.json; then
	if [[ ${KVRT_NO_INSTALL:-} == 1 ]]; then
		say "the pinned compiler is not in $asc"
		exit 2
	fi
	say "installing the pinned compiler into $asc"
	rm -rf $asc
	mkdir -p $asc
	cp $sdk/package.json $sdk/package-lock.json $asc/
	log=$(mktemp)
	trap 'rm -f "$log"' EXIT
	if ! npm ci --prefix $asc --ignore-scripts --no-audit --no-fund --loglevel=error >"$log" 2>&1; then
		cat "$log" >&2
		rm -rf $asc # so that the next run tries again
		exit 1
	fi
fi

tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT

build() { # SOURCE OUT
	node $asc/node_modules/assemblyscript/bin/asc.js "$1" --optimizeLevel 3 --noAssert \
		--runtime minimal --exportStart _initialize --use abort= --outFile "$2"
}

build $sdk/conformance/conformance.ts "$tmp/conformance.raw"
build $sdk/test/vectors.ts "$tmp/vectors.wasm"
go run ./internal/guestbuild -manifest $sdk/conformance/manifest.json -o "$tmp/conformance.wasm" "$tmp/conformance.raw"

differs=()
for out in conformance/conformance test/vectors; do
	new=$tmp/$(basename $out).wasm old=$sdk/$out.wasm
	if [[ ${1:-} != --check ]]; then
		mv "$new" "$old"
		echo "$old: $(stat -c %s "$old") bytes"
	elif ! cmp -s "$new" "$old"; then
		differs+=("$old")
	fi
done
if ((${#differs[@]})); then
	say "not what the sources give: ${differs[*]}"
	say "run scripts/assemblyscript.sh and commit the result"
	exit 1
fi
