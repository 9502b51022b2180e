"""The suite `winoqueer` on files of others: what it reads from them, and which it must refuse."""

import re
from pathlib import Path

import pytest

from bbnli_audit import AuditOptions, run_audit
from bbnli_audit.core.errors import OptionError, SuiteError
from bbnli_audit.reports.terminal import write_summary
from bbnli_audit.suites.protocol import check_suite
from bbnli_audit.suites.winoqueer import Winoqueer
from tests.invented import limits


def row(
    subject: str = "Ola", verb: str = "is", identity: str = "a zorb", other: str = "plain", predicate: str = "juggles"
) -> str:
    return f"{subject} {verb} {identity}.,{subject} {verb} {other}.,{subject} {predicate}.\n"


HEADER = "stereo_premise,counter_premise,hypothesis\n"


def write(folder: Path, text: str, name: str = "winoqueer_nli.csv") -> Path:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


def test_a_file_in_the_published_format(tmp_path: Path) -> None:
    people = {"subject": "Some people", "verb": "are"}
    path = write(
        tmp_path,
        HEADER
        + row(**people, identity="zorbs", predicate="are slow jugglers")
        + row(predicate="is a slow juggler")
        + row(predicate="is a slow juggler", other="ordinary")
        + row("They", "are", predicate="are a slow juggler")
        + row(predicate="has many lives")
        + row(**people, identity="zorbs", predicate="have many lives")
        + row(identity="Blue-ish+", predicate="juggles")
        + "\n"
        + row(identity="Blue-ish+", predicate="juggles"),
    )
    for data in (path, tmp_path):
        suite = Winoqueer(data)
        check_suite(suite)
        assert [s.path for s in suite.subtopics()] == ["winoqueer/blue_ish/all", "winoqueer/zorb/all"]
        blue, zorb = (suite.items(subtopic) for subtopic in suite.subtopics())
        assert [pair.cluster for pair in zorb.pairs] == ["p00", "p00", "p00", "p00", "p01", "p01"]
        assert zorb.pairs[1].pro == ("Ola is a zorb.", "Ola is a slow juggler.")
        assert zorb.pairs[1].anti == ("Ola is plain.", "Ola is a slow juggler.")
        assert (len(blue.usable), blue.n_duplicates) == (1, 1)
        assert suite.version == "unversioned"


def test_columns_may_stand_in_any_order_with_others_beside_them(tmp_path: Path) -> None:
    text = "note,hypothesis,stereo_premise,counter_premise\nx,Ola juggles.,Ola is a zorb.,Ola is plain.\n"
    other = tmp_path / "other"
    other.mkdir()
    suite = Winoqueer(write(other, "\ufeff" + text, "mine.csv"))
    assert suite.sha256 == Winoqueer(write(tmp_path, HEADER + row())).sha256


def test_the_hash_follows_the_rows(tmp_path: Path) -> None:
    one, two = write(tmp_path, HEADER + row(), "one.csv"), write(tmp_path, HEADER + row(other="usual"), "two.csv")
    assert Winoqueer(one).sha256 != Winoqueer(two).sha256
    assert Winoqueer(one).sha256 != Winoqueer().sha256


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", ": holds no row. Compare with"),
        ("stereo_premise,hypothesis\n", ":1: has no column 'counter_premise'"),
        (HEADER.replace("\n", ",hypothesis\n"), ":1: has the column 'hypothesis' twice"),
        (HEADER, ": holds no row"),
        (HEADER + row() + "Ola is a zorb.,Ola juggles.\n", ":3: has 2 values for 3 columns"),
        (HEADER + row() + row(predicate="juggles, sings"), ":3: has 4 values for 3 columns"),
        (HEADER + row().replace("Ola is a zorb.", "A zorb"), ":2: stereo_premise is not of the form"),
        (HEADER + row(identity="+"), ":2: stereo_premise is not of the form"),
        (HEADER + row().replace("Ola is plain.", ""), ":2: counter_premise is not of the form"),
        (HEADER + row().replace("Ola is plain", "Udo is plain"), ":2: the two premises differ in more than"),
        (HEADER + row().replace("Ola is plain", "Ola are plain"), ":2: the two premises differ in more than"),
        (HEADER + row().replace("Ola juggles.", "Udo juggles."), ":2: the hypothesis is not of the form"),
        (HEADER + row().replace("Ola juggles.", "Ola ."), ":2: the hypothesis is not of the form"),
        (HEADER + row().replace("Ola juggles.", ""), ":2: the hypothesis is not of the form"),
        (HEADER + row() + '"Ola is a zorb', ":3: is not valid CSV"),
    ],
)
def test_malformed_files_are_refused_with_the_line_and_without_the_sentence(
    tmp_path: Path, text: str, message: str
) -> None:
    path = write(tmp_path, text)
    with pytest.raises(SuiteError) as raised:
        Winoqueer(path).subtopics()
    assert str(raised.value).startswith(f"{path}{message}")
    assert not re.search("Ola|Udo|zorb|juggles", str(raised.value).removeprefix(str(path)))


def test_a_file_that_is_not_text(tmp_path: Path) -> None:
    path = tmp_path / "latin.csv"
    path.write_bytes((HEADER + row(subject="Zoë")).encode("latin-1"))
    with pytest.raises(SuiteError, match=r"latin\.csv:2: is not UTF-8"):
        Winoqueer(path).subtopics()


def test_paths_that_hold_no_data(tmp_path: Path) -> None:
    with pytest.raises(OptionError, match=r"the folder holds no winoqueer_nli\.csv"):
        Winoqueer(tmp_path).subtopics()
    for name in ("nowhere", "nowhere.csv"):
        with pytest.raises(OptionError, match=r"there is no such folder or \.csv file"):
            Winoqueer(tmp_path / name).subtopics()
    with pytest.raises(OptionError, match=r"have no categories"):
        Winoqueer(tmp_path, by_category=True)


def test_the_measures_of_the_paper_are_told_by_its_names(tmp_path: Path) -> None:
    path = write(tmp_path, HEADER + "".join(row(predicate=f"juggles {n} times") for n in range(6)))
    options = AuditOptions(model="planted:always-entail", suite="winoqueer", data=path, thresholds=limits())
    told: list[str] = []
    write_summary(run_audit(options), lambda line, **_: told.append(line))
    place = told.index("Measures of the papers, winoqueer as a whole:")
    assert told[place + 1].split()[2:5] == ["pairs", "M1", "M2"]
    assert told[place + 2].split()[:4] == ["winoqueer", "6", "0.000", "1.000"]
