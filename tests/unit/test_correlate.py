"""`bbnli-audit correlate`: R² between measures over models, from files alone."""

import json
import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import linregress
from scipy.stats import t as student

from bbnli_audit.audit.audit import run_audit
from bbnli_audit.core.options import AuditOptions
from bbnli_audit.core.results.audit import AuditResult
from bbnli_audit.core.results.file import read_result, write_result
from bbnli_audit.core.results.rows import Measured
from bbnli_audit.frontends.cli.main import main
from bbnli_audit.measures.agreement import by_chance
from tests.invented import limits, write_large_suite

KINDS = ("ideal", "always-pro", "always-neutral", "brittle")
Write = Callable[..., Path]


@pytest.fixture(scope="module")
def planted(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Results of planted models on invented data."""
    base = tmp_path_factory.mktemp("reports")
    data = write_large_suite(base / "data")
    found = {kind: base / kind for kind in KINDS}
    for kind, folder in found.items():
        folder.mkdir()
        result = run_audit(AuditOptions(model=f"planted:{kind}", thresholds=limits(), data=data))
        write_result(result, folder / "result.json")
    return found


@pytest.fixture
def write(planted: dict[str, Path], tmp_path: Path) -> Write:
    """A function that writes the result of one more model, with values of its own."""
    base = read_result(planted["ideal"])

    def write_one(name: str, **values: float | None) -> Path:
        measures = {measure: Measured(value, value, value, 80) for measure, value in values.items()}
        model = replace(base.model, name=name, fingerprint=name * 8)
        rows = tuple(replace(row, measures=measures) for row in base.subtopics)
        path = tmp_path / f"{name}.json"
        changed = replace(base, model=model, total=replace(base.total, measures=measures), subtopics=rows)
        write_result(changed, path)
        return path

    return write_one


def read_json(capsys: pytest.CaptureFixture[str], paths: Sequence[Path], *more: str) -> dict[str, object]:
    assert main(["correlate", *map(str, paths), "--json", *more]) == 0
    found: dict[str, object] = json.loads(capsys.readouterr().out)
    return found


def test_r_squared_is_that_of_numpy_and_scipy(write: Write, capsys: pytest.CaptureFixture[str]) -> None:
    random = np.random.default_rng(5)
    values = random.uniform(size=(6, 4))
    names = ["m1", "m2", "m3", "m4"]
    paths = [write(f"zorb-{n}", **dict(zip(names, row, strict=True))) for n, row in enumerate(values.tolist())]
    document = read_json(capsys, paths)
    assert document["measures"] == names
    assert document["n_points"] == 6
    found = np.array(document["r_squared"])
    np.testing.assert_allclose(found, np.corrcoef(values.T) ** 2, atol=1e-12)
    np.testing.assert_allclose(np.array(document["r"]), np.corrcoef(values.T), atol=1e-12)
    for one in range(4):
        for other in range(4):
            line = linregress(values[:, one], values[:, other])
            assert found[one, other] == pytest.approx(line.rvalue**2, abs=1e-12)


def test_points_are_subtopics_of_models_when_asked(
    planted: dict[str, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    results = [read_result(path) for path in planted.values()]
    document = read_json(capsys, list(planted.values()), "--per", "subtopic")
    assert document["n_points"] == len(KINDS) * 2
    names = document["measures"]
    assert isinstance(names, list)
    assert {"pro_rate", "anti_rate", "brittleness_rate"} <= set(names)
    values = np.array([[row.measures[name].value for name in names] for r in results for row in r.subtopics])
    varying = np.ptp(values, axis=0) > 0
    assert document["constant"] == [name for name, varies in zip(names, varying, strict=True) if not varies]
    found = np.array(document["r_squared"], dtype=float)
    np.testing.assert_allclose(found[varying][:, varying], np.corrcoef(values[:, varying].T) ** 2, atol=1e-12)


def test_a_constant_measure_has_none(write: Write, capsys: pytest.CaptureFixture[str]) -> None:
    # 0.1 + 0.2 is not quite 0.3: what differs by rounding only does not vary.
    paths = [write(f"zorb-{n}", m1=0.1 * n, m2=0.3 if n else 0.1 + 0.2, m3=0.5 - 0.1 * n) for n in range(3)]
    document = read_json(capsys, paths)
    assert document["constant"] == ["m2"]
    assert document["r_squared"] == [
        [pytest.approx(1), None, pytest.approx(1)],
        [None, None, None],
        [pytest.approx(1), None, pytest.approx(1)],
    ]
    assert main(["correlate", *map(str, paths)]) == 0
    assert "–: the same at every point, so there is nothing to compare: m2." in capsys.readouterr().out


def test_r_with_its_sign_stands_beside_r_squared(write: Write, capsys: pytest.CaptureFixture[str]) -> None:
    rising, falling = (0.1, 0.2, 0.4), (0.9, 0.5, 0.4)
    r = float(np.corrcoef(rising, falling)[0, 1])
    paths = [write(f"zorb-{n}", m1=rising[n], m2=falling[n]) for n in range(3)]
    assert main(["correlate", *map(str, paths)]) == 0
    rows = [line.split() for line in capsys.readouterr().out.splitlines() if line[:2] in ("m1", "m2")]
    assert rows == [["m1", "1.00", f"{r * r:.2f}"], ["m2", f"{r:.2f}", "1.00"]]
    assert r < 0


def test_a_measure_without_a_value_at_every_point_is_left_out_and_named(
    write: Write, capsys: pytest.CaptureFixture[str]
) -> None:
    paths = [write(f"zorb-{n}", m1=0.1 * n, m2=0.2 * n, m3=None if n == 1 else 0.3 * n) for n in range(3)]
    paths += [write("zorb-9", m1=0.7, m2=0.2, m3=0.1, m4=0.1)]
    document = read_json(capsys, paths)
    assert (document["measures"], document["left_out"]) == (["m1", "m2"], ["m3", "m4"])
    assert main(["correlate", *map(str, paths)]) == 0
    assert "Left out, because some points have no value: m3, m4." in capsys.readouterr().out


def test_a_table_of_eight_measures_fits_a_hundred_columns(write: Write, capsys: pytest.CaptureFixture[str]) -> None:
    random = np.random.default_rng(6)
    names = [f"m{n}" for n in range(1, 9)]
    paths = [write(f"zorb-{n}", **dict(zip(names, random.uniform(size=8), strict=True))) for n in range(3)]
    assert main(["correlate", *map(str, paths)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert max(map(len, lines)) <= 100
    assert [line.split() for line in lines if line.split() == names] == [names]
    rows = [line.split() for line in lines if line[:2] in names]
    assert [(row[0], len(row)) for row in rows] == [(name, 9) for name in names]
    assert [row[at + 1] for at, row in enumerate(rows)] == ["1.00"] * 8


def test_a_longer_table_is_cut_into_parts_that_hold_every_measure(
    planted: dict[str, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    measures = read_json(capsys, list(planted.values()))["measures"]
    assert isinstance(measures, list)
    names = [name.removesuffix("_rate") for name in measures]
    assert main(["correlate", *map(str, planted.values())]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert max(map(len, lines)) <= 100
    headings = [line.split() for line in lines if line.startswith("     ") and set(line.split()) <= set(names)]
    assert len(headings) > 1
    assert [name for heading in headings for name in heading] == names


def test_models_points_and_what_chance_does_are_told(
    planted: dict[str, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    paths = [str(planted[kind]) for kind in KINDS[:3]]
    assert main(["correlate", *paths, "--measures", "pro,accuracy"]) == 0
    out = capsys.readouterr().out
    assert "over 3 models, bbnli unversioned. A point is a model: 3 points." in out
    for kind in KINDS[:3]:
        model = read_result(planted[kind]).model
        told = next(line for line in out.splitlines() if f"planted:{kind} " in line)
        assert model.fingerprint[:12] in told
        assert ("not competent" in told) == (kind == "always-neutral")
    assert "With so few models R² is nearly always large, whatever the measures." in out
    chance = "two unrelated measures reach 0.50 on average, and more than 0.99 one time in twenty."
    assert f"Over 3 points, {chance}\n" in out
    assert "anti" not in out
    assert main(["correlate", *paths, "--per", "subtopic"]) == 0
    assert "Points of one model are alike, so the true figures are larger." in capsys.readouterr().out


@pytest.mark.parametrize("n_points", [3, 4, 10, 50])
def test_what_chance_does_is_what_the_test_of_a_slope_says(n_points: int) -> None:
    mean, one_in_twenty = by_chance(n_points)
    assert mean == pytest.approx(1 / (n_points - 1))
    quantile = student.ppf(0.975, n_points - 2)
    assert one_in_twenty == pytest.approx(quantile**2 / (quantile**2 + n_points - 2))


def test_too_few_or_equal_models_are_refused(
    planted: dict[str, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    one, two, three = (str(planted[kind]) for kind in KINDS[:3])
    renamed = tmp_path / "renamed.json"
    result = read_result(planted["ideal"])
    write_result(replace(result, model=replace(result.model, name="another")), renamed)
    for given, message in (
        ([one], "R² needs 3 models or more, and this is 1. Two points always lie on a line, so R² over them says"),
        ([one, two], "R² needs 3 models or more, and this is 2. "),
        ([one, two, one], f"{one}: is a result of the same model as {one}"),
        ([one, two, three, str(renamed)], f"{renamed}: is a result of the same model as {one} (fingerprint "),
        ([one, two, str(tmp_path / "none")], "none: there is no such file"),
        ([one, two, three, "--measures", "pro_rat,accuracy"], "no result has this measure. Did you mean 'pro'?"),
        ([one, two, three, "--measures", "pro_rate,pro"], "--measures=pro_rate,pro: names fewer than two measures"),
    ):
        assert main(["correlate", *given]) == 4
        found = capsys.readouterr()
        assert found.out == ""
        assert found.err.startswith("ERROR: ")
        assert message in found.err


def other_pairs(result: AuditResult) -> AuditResult:
    return replace(result, suites=(replace(result.suites[0], sha256="f" * 64),))


def other_pairing(result: AuditResult) -> AuditResult:
    return replace(result, suites=(replace(result.suites[0], pairing="hypothesis"),))


def other_selection(result: AuditResult) -> AuditResult:
    row = result.subtopics[0]
    total, domains = replace(row, path="total", verdicts=result.total.verdicts), result.domains[:1]
    suites = (replace(row, path=result.suite_rows[0].path),)
    only = {row.path: result.pairs[row.path]}
    return replace(result, subtopics=(row,), domains=domains, suite_rows=suites, total=total, pairs=only)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (other_pairs, r"was not measured on the data of .*sha256 ffffffffffff / bbnli unversioned"),
        (other_pairing, "pairing hypothesis, sha256"),
        (other_selection, r"has other subtopics than .*: 0 more, 1 fewer, such as bbnli/planets/"),
    ],
)
def test_other_data_is_refused(
    change: Callable[[AuditResult], AuditResult],
    message: str,
    planted: dict[str, Path],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    other = tmp_path / "other.json"
    write_result(change(read_result(planted["brittle"])), other)
    assert main(["correlate", str(planted["ideal"]), str(planted["always-pro"]), str(other)]) == 4
    found = capsys.readouterr().err
    assert found.startswith(f"ERROR: {other}: ")
    assert re.search(message, found)


def test_models_without_two_measures_in_common_are_refused(write: Write, capsys: pytest.CaptureFixture[str]) -> None:
    paths = [write("zorb-0", m1=0.1, m2=0.4), write("zorb-1", m1=0.2, m3=0.4), write("zorb-2", token_preference=0.5)]
    assert main(["correlate", *map(str, paths)]) == 4
    assert "These results have 0 measures with a value at every point in common (none)" in capsys.readouterr().err
