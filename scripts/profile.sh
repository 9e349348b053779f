#!/usr/bin/env bash
# Takes the profile that later builds are guided by, bin/kvrt.pgo: dispatches, policies
# and requests on the socket, as the benchmarks make them. Without it nothing is missing
# but 5 to 10 % of a dispatch's speed; with it the next build takes a minute.
#   BENCHTIME  length of a run (default 3s)
set -euo pipefail
cd "$(dirname "$0")/.."

out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT

run() ( # FOLDER REGEXP CORES
	cd "$1"
	name=${1//\//-}
	go test -trimpath -run '^$' -bench "$2" -cpu "$3" -benchtime "${BENCHTIME:-3s}" -cpuprofile "$out/$name.prof" -o "$out/$name.test" . | grep ^Benchmark
)

run runtime '^(BenchmarkDispatch|BenchmarkStage|BenchmarkFormulate)$/^(msgpack|json|all|all-json|submit.discard|actions=16|read)$' 1
run server '^(BenchmarkSocket|BenchmarkFormulateSocket)$' 2
mkdir -p bin
go tool pprof -proto -output bin/kvrt.pgo "$out"/*.prof >/dev/null
echo "bin/kvrt.pgo: $(stat -c %s bin/kvrt.pgo) bytes; make build uses it"
