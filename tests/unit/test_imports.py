"""Nothing heavy is imported before it is needed, and every module can be imported by itself."""

import json
import subprocess
import sys

import pytest

import bbnli_audit
from tests.package_modules import MODULES

pytestmark = pytest.mark.slow

HEAVY = (
    *("torch", "transformers", "pandas", "numpy", "scipy", "yaml", "pydantic", "pyarrow", "onnxruntime", "ray"),
    *("jinja2", "vl_convert", "huggingface_hub", "shtab", "sklearn", "openai", "starlette", "uvicorn", "mlflow"),
)
# The measures are numpy and pandas. What judges and reports them imports them, and is imported when an audit begins.
MAY_BE_HEAVY = (
    "bbnli_audit.measures",
    "bbnli_audit.audit",
    "bbnli_audit.reports",
    "bbnli_audit.frontends.pytest_plugin",
)
LIGHT = ("plugin", "hookspecs", "settings")  # of the pytest plugin: a project that does not audit loads these

# What nearly every module imports of the standard library, and pytest: imported once, before the forks.
LIGHT_AHEAD = (
    *(
        "argparse",
        "asyncio",
        "concurrent.futures",
        "csv",
        "dataclasses",
        "email",
        "functools",
        "hashlib",
        "http.server",
    ),
    *("importlib.metadata", "json", "logging", "pathlib", "pytest", "random", "sqlite3", "statistics", "subprocess"),
    *("tempfile", "textwrap", "typing", "urllib.request", "zipfile"),
)
HEAVY_AHEAD = (
    *LIGHT_AHEAD,
    "jinja2",
    "pandas",
    "pyarrow.parquet",
    "pydantic",
    "scipy.special",
    "sklearn.metrics",
    "yaml",
)

# One interpreter forks a child for every module, so that each is imported alone and Python starts once.
IMPORT_EACH = """
import gc, importlib, json, os, sys, traceback
modules, heavy, before = map(json.loads, sys.argv[1:])
for name in before:
    importlib.import_module(name)
gc.freeze()
found = {}
for module in modules:
    read, write = os.pipe()
    if os.fork() == 0:
        try:
            importlib.import_module(module)
            told = json.dumps([name for name in heavy if name in sys.modules])
        except BaseException:
            told = json.dumps(traceback.format_exc())
        os.write(write, told.encode()[:60000])
        os._exit(0)
    os.close(write)
    with os.fdopen(read) as pipe:
        found[module] = json.loads(pipe.read())
    os.wait()
print(json.dumps(found))
"""


def is_light(module: str) -> bool:
    return not module.startswith(MAY_BE_HEAVY) or module.rpartition(".")[2] in LIGHT


def import_each(modules: list[str], before: tuple[str, ...]) -> dict[str, list[str] | str]:
    arguments = map(json.dumps, (modules, HEAVY, before))
    command = [sys.executable, "-W", "error", "-c", IMPORT_EACH, *arguments]
    found: dict[str, list[str] | str] = json.loads(subprocess.run(command, capture_output=True, check=True).stdout)
    return found


@pytest.fixture(scope="module")
def imported() -> dict[str, list[str] | str]:
    """What each module brings along of the heavy packages, or the traceback when it cannot be imported."""
    light = [module for module in MODULES if is_light(module)]
    heavy = [module for module in MODULES if not is_light(module)]
    return {**import_each(light, LIGHT_AHEAD), **import_each(heavy, HEAVY_AHEAD)}


@pytest.mark.parametrize("module", MODULES)
def test_every_module_imports_alone_and_light(imported: dict[str, list[str] | str], module: str) -> None:
    found = imported[module]
    assert isinstance(found, list), found
    if is_light(module):
        assert found == []


def test_public_names_are_there_and_others_are_not() -> None:
    for name in bbnli_audit.__all__:
        assert getattr(bbnli_audit, name).__name__ == name
    with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
        _ = bbnli_audit.nothing
