#!/usr/bin/env bash
# The Python client's tests against the daemon that it builds: types, then pytest.
# Arguments go to pytest. KVRT_SOAK=N makes the soaks N times as long, KVRT_BIN=PATH
# takes a daemon that is built. The tests with real KVCR need bin/peers, which
# scripts/peers.sh brings; KVRT_NO_INSTALL=1 goes without what is not there.
set -euo pipefail
cd "$(dirname "$0")/.."

if [[ -z ${KVRT_BIN:-} ]]; then
	CGO_ENABLED=0 go build -trimpath -buildvcs=false -o bin/kvrt-python-test ./cmd/kvrt
	KVRT_BIN=$PWD/bin/kvrt-python-test
fi
python=$PWD/bin/py/bin/python
[[ ${KVRT_NO_INSTALL:-} == 1 ]] || scripts/peers.sh
peers=$(compgen -G "$PWD/bin/peers/lib/python3*/site-packages" || true)
export KVRT_BIN PYTHONDONTWRITEBYTECODE=1
cd clients/python
"$python" -m mypy --cache-dir ../../bin/mypy
PYTHONPATH=$peers "$python" -m pytest -q -p no:cacheprovider "$@"
