#!/usr/bin/env bash
# Every test, with the race detector; then the closing line of each package
# once more, so that they stand together at the end. Arguments go to go test.
set -euo pipefail
cd "$(dirname "$0")/.."
mkdir -p bin

status=0
CGO_ENABLED=1 KVRT_NEED_PYTHON=1 go test -race -timeout 20m "$@" ./... 2>&1 | tee bin/test.log || status=$?
echo
echo "== tests =="
grep -E '^(ok|FAIL|panic:|--- FAIL)' bin/test.log || true
exit "$status"
