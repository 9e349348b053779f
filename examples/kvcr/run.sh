#!/usr/bin/env bash
# Real KVCR behind kvrt, in a virtual environment of its own. Needs Go, Python 3.10 or
# later, and 350 MB; no GPU.
set -euo pipefail
cd "$(dirname "$0")/../.."

venv=bin/example-kvcr
python3 -m venv "$venv"
# NIXL's wheel asks for torch, which KVCR does not need here: hence --no-deps.
"$venv/bin/pip" install --quiet --disable-pip-version-check --no-deps -r scripts/requirements-peers.txt
"$venv/bin/pip" install --quiet --disable-pip-version-check ./clients/python
PYTHONPATH=clients/python/bench scripts/with-daemon.sh "$venv/bin/python" examples/kvcr/main.py
