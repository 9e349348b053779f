#!/usr/bin/env bash
# Brings bin/peers, a Python environment with real KVCR and NIXL (350 MB). Does
# nothing when scripts/requirements-peers.txt was installed already.
set -euo pipefail
cd "$(dirname "$0")/.."

wanted=scripts/requirements-peers.txt
cmp -s "$wanted" bin/peers/requirements.txt && exit 0
echo "peers: installing into bin/peers what $wanted lists" >&2
rm -rf bin/peers
mkdir -p bin
python3 -m venv bin/peers
bin/peers/bin/pip install --quiet --disable-pip-version-check --retries 5 --no-deps -r "$wanted" >&2
cp "$wanted" bin/peers/requirements.txt # last: it says that everything is there
