"""Nothing heavy is imported before it is needed, and every module can be imported by itself."""

import subprocess
import sys
from pathlib import Path

import pytest

import bbnli_audit

PACKAGE = Path(bbnli_audit.__file__).parent
MODULES = sorted(
    ".".join(("bbnli_audit", *path.relative_to(PACKAGE).with_suffix("").parts)).removesuffix(".__init__")
    for path in PACKAGE.rglob("*.py")
)
HEAVY = (
    *(
        "torch",
        "transformers",
        "pandas",
        "numpy",
        "scipy",
        "yaml",
        "pydantic",
        "pyarrow",
        "onnxruntime",
        "ray",
        "jinja2",
    ),
    *("vl_convert", "huggingface_hub", "shtab", "sklearn", "openai", "starlette", "uvicorn"),
)
MAY_BE_HEAVY = ("bbnli_audit.measures", "bbnli_audit.audit.gate.thresholds_schema", "bbnli_audit.core.results.schema")


@pytest.mark.parametrize(
    "module", [module for module in MODULES if module != "bbnli_audit.frontends.pytest_plugin.scheduling"]
)
def test_every_module_imports_alone_and_light(module: str) -> None:
    heavy = () if module.startswith(MAY_BE_HEAVY) else HEAVY
    code = f"import sys, {module}; found = [m for m in {heavy!r} if m in sys.modules]; assert not found, found"
    done = subprocess.run([sys.executable, "-W", "error", "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_public_names_are_there_and_others_are_not() -> None:
    for name in bbnli_audit.__all__:
        assert getattr(bbnli_audit, name).__name__ == name
    with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
        _ = bbnli_audit.nothing
