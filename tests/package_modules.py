"""The modules of the package, and what they import only when they need it."""

from pathlib import Path

import bbnli_audit

_PACKAGE = Path(bbnli_audit.__file__).parent
MODULES = sorted(
    ".".join(("bbnli_audit", *path.relative_to(_PACKAGE).with_suffix("").parts)).removesuffix(".__init__")
    for path in _PACKAGE.rglob("*.py")
)
# Together they take seconds: whoever runs many audits imports them once.
LATE = (
    *("jinja2", "pandas", "pyarrow.parquet", "pydantic", "scipy.special", "scipy.stats", "yaml"),
    *("sklearn.feature_extraction.text", "sklearn.linear_model", "sklearn.metrics.cluster", "sklearn.naive_bayes"),
    "sklearn.pipeline",
)
