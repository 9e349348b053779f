#!/usr/bin/env bash
# The long runs, one after the other: dispatches of which one in a hundred traps, calls of
# guests with a collector, clients of the daemon. Memory stays flat, counters add up, and
# no call pays for a collection. The ordinary tests make some ten thousand of the same.
#   CALLS  calls or dispatches of each (10,000,000)
#   SOAK   length of the daemon's (1m)
set -euo pipefail
cd "$(dirname "$0")/.."

export KVRT_SOAK_CALLS=${CALLS:-10000000} KVRT_SOAK=${SOAK:-1m}
mapfile -t dirs < <(git grep -lE --untracked '^func TestSoak' -- '*_test.go' | xargs -r -n1 dirname | sort -u)
failed=()
for dir in "${dirs[@]}"; do
	go test -count=1 -v -timeout 4h -run '^TestSoak' "./$dir" || failed+=("$dir")
done
((${#failed[@]} == 0)) || {
	printf 'soak: failed: %s\n' "${failed[@]}" >&2
	exit 1
}
