#!/usr/bin/env bash
# Runs the benchmarks and prints one table against the budgets; with BASE=REV
# it compares the working tree with that revision through benchstat instead.
#   BENCH      regexp of benchmarks (default: all)
#   COUNT      runs of each (default 3, with BASE 6); the table shows medians
#   BENCHTIME  length of a run (default 300ms)
# A benchmark whose name holds Parallel runs on one core and on two.
set -euo pipefail
cd "$(dirname "$0")/.."

bench=${BENCH:-.}
guided=() # as make build does, where make profile has run
[[ ! -e bin/kvrt.pgo ]] || guided=(-pgo="$PWD/bin/kvrt.pgo")

# folders REGEXP: the packages, as ./DIR, with a test file that matches.
folders() {
	git grep -lE --untracked "$1" -- '*_test.go' | xargs -r -n1 dirname | sort -u | sed 's|^|./|'
}

# measure DIR COUNT: benchmark output of the tree in DIR.
measure() (
	cd "$1"
	flags=("${guided[@]}" -run '^$' -benchmem -benchtime "${BENCHTIME:-300ms}" -count "$2" -timeout 60m)
	status=0
	mapfile -t packages < <(folders '^func Benchmark')
	((${#packages[@]} == 0)) ||
		go test "${flags[@]}" -bench "$bench" -skip Parallel "${packages[@]}" || status=1
	parallel=$(git grep -hoE --untracked '^func Benchmark\w*Parallel\w*' -- '*_test.go' |
		cut -d' ' -f2 | grep -E "$bench" | paste -sd'|') || exit "$status"
	mapfile -t packages < <(folders '^func Benchmark\w*Parallel')
	go test "${flags[@]}" -bench "^($parallel)\$" -cpu 1,2 "${packages[@]}" || status=1
	exit "$status"
)

out=$(mktemp -d)
trap 'git worktree remove --force "$out/tree" 2>/dev/null || true; rm -rf "$out"' EXIT

if [[ -z ${BASE:-} ]]; then
	measure . "${COUNT:-3}" | tee "$out/head" | grep -E '^(Benchmark|FAIL|---|panic:)' >&2 || true
	partial=()
	[[ $bench == . ]] || partial=(-partial)
	go run ./internal/benchtable "${partial[@]}" <"$out/head"
	exit
fi

git worktree add --quiet --detach "$out/tree" "$BASE"
for ((round = 1; round <= ${COUNT:-6}; round++)); do # in turns: machines drift
	echo "bench: round $round of ${COUNT:-6}" >&2
	for side in "$out/tree" .; do
		measure "$side" 1 >"$out/round" || {
			grep -vE '^(Benchmark|ok|PASS)' "$out/round" >&2
			exit 1
		}
		cat "$out/round" >>"$out/$([[ $side == . ]] && echo head || echo base)"
	done
done
bin/tools/benchstat "$BASE=$out/base" "here=$out/head"
