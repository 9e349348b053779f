"""The wheel and the sdist: what a user installs is what was tested."""

from __future__ import annotations

import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

from conftest import Daemon

HERE = Path(__file__).resolve().parents[1]


def test_build_and_install(daemon: Daemon, tmp_path: Path) -> None:
    out = tmp_path / "dist"
    subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-d", str(out)], cwd=HERE, check=True, stdout=subprocess.DEVNULL
    )
    (wheel,), (sdist,) = out.glob("*.whl"), out.glob("*.tar.gz")
    assert wheel.name.endswith("-py3-none-any.whl"), "native code has got in"
    modules = {f"kvrt/{p.name}" for p in (HERE / "src" / "kvrt").iterdir() if p.is_file()}
    with zipfile.ZipFile(wheel) as z:
        assert modules <= set(z.namelist()) and "kvrt/py.typed" in modules
    with tarfile.open(sdist) as t:
        names = {n.partition("/")[2] for n in t.getnames()}
        assert {"README.md", "pyproject.toml", "src/kvrt/client.py", "tests/test_client.py"} <= names

    site = tmp_path / "site"
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-index", "--disable-pip-version-check"]
    subprocess.run([*pip, "--target", str(site), str(wheel)], check=True)
    code = (
        "import kvrt, sys\n"
        "assert kvrt.__file__.startswith(sys.argv[1]), kvrt.__file__\n"
        "assert kvrt.Client(sys.argv[2], deadline=10).ping()\n"
    )
    subprocess.run(
        [sys.executable, "-c", code, str(site), daemon.path], check=True, env={"PYTHONPATH": str(site)}, cwd=tmp_path
    )
