"""The modules of the package."""

from pathlib import Path

import bbnli_audit

_PACKAGE = Path(bbnli_audit.__file__).parent
MODULES = sorted(
    ".".join(("bbnli_audit", *path.relative_to(_PACKAGE).with_suffix("").parts)).removesuffix(".__init__")
    for path in _PACKAGE.rglob("*.py")
)
