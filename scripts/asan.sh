#!/usr/bin/env bash
# The C code of this repository under the address sanitizer: the CUDA shim, and the fake
# driver that it runs on in tests. Needs gcc with libasan; where there is none, it says so.
set -euo pipefail
cd "$(dirname "$0")/.."

if ! echo 'int main(void) { return 0; }' | gcc -fsanitize=address -x c -o /dev/null - 2>/dev/null; then
	echo "asan: gcc with libasan is not here; nothing was looked at" >&2
	exit 0
fi
# Threads of a driver that was lost on purpose stay, and so does what they hold.
ASAN_OPTIONS=detect_leaks=0 CGO_ENABLED=1 go test -asan -timeout 5m "$@" ./hosts/gpu/...
