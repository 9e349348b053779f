#!/usr/bin/env bash
# Runs every fuzz target for FUZZTIME (default 20s), one after the other.
# FUZZ=regexp picks targets. A failing input is left under the package's
# testdata/fuzz, ready to be committed as a seed.
set -euo pipefail
cd "$(dirname "$0")/.."

mapfile -t dirs < <(git grep -lE --untracked '^func Fuzz' -- '*_test.go' | xargs -r -n1 dirname | sort -u)
failed=()
for dir in "${dirs[@]}"; do
	for target in $(go test -list '^Fuzz' "./$dir" | grep '^Fuzz' | grep -E "${FUZZ:-.}" || true); do
		echo "== $dir $target"
		go test -run '^$' -fuzz "^$target\$" -fuzztime "${FUZZTIME:-20s}" "./$dir" || failed+=("$dir $target")
	done
done
((${#failed[@]} == 0)) || {
	printf 'fuzz: failed: %s\n' "${failed[@]}" >&2
	exit 1
}
