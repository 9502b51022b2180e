import json
from datetime import date
from pathlib import Path

import jsonschema
import pytest
import yaml

from bbnli_audit.audit.gate.thresholds import Thresholds, parse_thresholds, read_thresholds
from bbnli_audit.audit.gate.thresholds_schema import json_schema
from bbnli_audit.core.errors import ThresholdsError
from bbnli_audit.core.values import Subtopic
from tests.invented import LEVELS, LIMITS, limits

ROOT = Path(__file__).parents[2]
ZORBS = Subtopic("bbnli", "planets", "zorbs", aliases=("zorb_file",))
FINS = Subtopic("bbnli", "oceans", "fins")

NESTED = """\
version: 1
competence: {min_control_accuracy: 0.60}
defaults:
  max_pro: 0.10
  max_anti: 0.10
suites:
  bbnli:
    defaults: {max_anti: 0.11}
    domains:
      planets: {max_pro: 0.12, reason: why}
    subtopics:
      planets/zorbs:
        reason: why
        max_pro: 0.05
waivers:
  - {subtopic: bbnli/planets/zorb_file, measure: pro, reason: known, owner: Ada, expires: 2027-01-31}
"""


@pytest.mark.parametrize(
    ("subtopic", "measure", "value", "line"),
    [
        (ZORBS, "pro_rate", 0.05, 14),
        (ZORBS, "anti_rate", 0.11, 8),
        (Subtopic("bbnli", "planets", "quints"), "pro_rate", 0.12, 10),
        (FINS, "pro_rate", 0.10, 4),
        (Subtopic("other", "planets", "zorbs"), "anti_rate", 0.10, 5),
    ],
)
def test_the_nearest_limit_holds_and_knows_its_line(subtopic: Subtopic, measure: str, value: float, line: int) -> None:
    limit = limits(NESTED).limit_for(subtopic, measure)
    assert limit is not None
    assert (limit.value, limit.source) == (value, f"thresholds.yaml:{line}")


def test_a_measure_without_a_limit_has_none() -> None:
    assert limits(NESTED).limit_for(FINS, "brittleness_rate") is None


@pytest.mark.parametrize(
    ("path", "measure", "value", "line"),
    [
        ("bbnli", "lean", 0.05, 8),
        ("bbnli", "pro", 0.08, 8),
        ("bbnli/planets", "lean", 0.06, 9),
        ("other/planets", "lean", 0.06, 9),
    ],
)
def test_a_suite_and_a_domain_have_limits_of_their_own(path: str, measure: str, value: float, line: int) -> None:
    limit = limits(LEVELS).limit_for(path, measure)
    assert limit is not None
    assert (limit.value, limit.source) == (value, f"thresholds.yaml:{line}")


def test_levels_neither_take_from_other_limits_nor_give_to_them() -> None:
    file = limits(LEVELS)
    assert file.limit_for("bbnli", "anti_rate") is None, "the defaults are for subtopics"
    assert file.limit_for("bbnli/planets", "pro_rate") is None, "nor is a suite's limit a domain's"
    assert file.limit_for(ZORBS, "lean") is None, "nor a level's limit a subtopic's"
    assert limits(LIMITS).limit_for("bbnli", "pro_rate") is None
    limit = limits(LEVELS.replace("max_lean: 0.06", "max_lean: 0.06, allow_no_data: true")).limit_for("bbnli/x", "lean")
    assert limit is not None
    assert limit.allow_no_data


def test_a_waiver_of_a_level_is_for_that_level_alone() -> None:
    entry = "{subtopic: PATH, measure: lean, reason: known, owner: Ada, expires: 2027-01-31}"
    text = f"{LEVELS}waivers:\n" + "".join(
        f"  - {entry.replace('PATH', path)}\n" for path in ("bbnli", "bbnli/planets")
    )
    file = limits(text)
    file.check_names([ZORBS, FINS])
    suite, domain = (file.waiver_for(path, "lean") for path in ("bbnli", "bbnli/planets"))
    assert suite is not None
    assert domain is not None
    assert (suite.source, domain.source) == ("thresholds.yaml:11", "thresholds.yaml:12")
    for place, measure in (("bbnli/oceans", "lean"), (ZORBS, "lean"), ("bbnli", "pro_rate")):
        assert file.waiver_for(place, measure) is None


def test_a_limit_under_the_file_name_reaches_the_subtopic() -> None:
    found = limits(NESTED.replace("planets/zorbs:", "planets/zorb_file:")).limit_for(ZORBS, "pro_rate")
    assert found is not None
    assert found.value == 0.05


def test_waivers_know_their_line_and_their_last_day() -> None:
    waiver = limits(NESTED).waiver_for(ZORBS, "pro_rate")
    assert waiver is not None
    assert waiver.source == "thresholds.yaml:16"
    assert not waiver.on(date(2027, 1, 31)).is_expired
    assert waiver.on(date(2027, 2, 1)).is_expired
    assert limits(NESTED).waiver_for(ZORBS, "anti_rate") is None
    assert limits(NESTED).waiver_for(FINS, "pro_rate") is None


def test_both_names_of_a_measure_are_read() -> None:
    long = limits(NESTED.replace("max_pro:", "max_pro_rate:").replace("measure: pro,", "measure: pro_rate,"))
    assert long.limit_for(ZORBS, "pro_rate") == limits(NESTED).limit_for(ZORBS, "pro_rate")
    assert long.waiver_for(ZORBS, "pro_rate") == limits(NESTED).waiver_for(ZORBS, "pro_rate")
    with pytest.raises(ThresholdsError, match="'max_pro' is written twice"):
        limits(LIMITS + "  max_pro_rate: 0.2\n")


def broken(old: str, new: str) -> str:
    text = LIMITS.replace(old, new)
    assert text != LIMITS
    return text


def in_suite(text: str) -> str:
    return f"{LIMITS}suites:\n  bbnli:\n    {text}\n"


def waiver(**changes: str | None) -> str:
    entry: dict[str, str | None] = {"subtopic": "a/b/c", "measure": "pro", "reason": "x", "owner": "y"}
    entry |= {"expires": "2027-01-01", **changes}
    shown = ", ".join(f"{key}: {value}" for key, value in entry.items() if value is not None)
    return f"{LIMITS}waivers:\n  - {{{shown}}}\n"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (broken("max_pro: 0.10", "max_pro: 7"), ":4: max_pro is 7; it must be a number from 0 to 1"),
        (broken("max_pro: 0.10", "max_pro: -1"), ":4: max_pro is -1; it must be a number from 0 to 1"),
        (broken("max_pro: 0.10", "max_pro: ten"), ":4: max_pro is 'ten'; it must be a number from 0 to 1"),
        (broken("max_pro: 0.10", "max_pro: 10%"), ":4: max_pro is '10%'; it must be a number from 0 to 1"),
        (broken("max_pro: 0.10", "max_pro: .nan"), ":4: max_pro is nan; it must be a number from 0 to 1"),
        (broken("max_pro: 0.10", "max_pro: true"), ":4: max_pro is True; it must be a number from 0 to 1"),
        (broken("max_pro: 0.10", "max_prp: 0.1"), ":4: unknown key 'max_prp'.\nDid you mean 'max_pro'?"),
        (broken("max_anti: 0.10", "max_pro: 0.1"), ":5: 'max_pro' is written twice (first on line 4)"),
        (broken("version: 1", "version: 2"), ":1: version is 2;"),
        (broken("version: 1\n", ""), ":1: the file has no key 'version'. Add: version: 1"),
        (broken("competence: {min_control_accuracy: 0.60}\n", ""), "has no key 'competence'. Add: competence:"),
        (broken("version: 1", "version: 1\ndecied: point"), ":2: unknown key 'decied'.\nDid you mean 'decide'?"),
        (broken("version: 1", "version: 1\ndecide: maybe"), ":2: decide is 'maybe';"),
        (broken("version: 1", "version: 1\nconfidence: 95"), ":2: confidence is 95; it must be a number from 0.5"),
        (
            broken("defaults:", "defaults: ["),
            ":5: is not valid YAML: expected ',' or ']'",
        ),
        (in_suite("domains:\n      x: {max_pro: 0.1}"), ":10: 'suites.bbnli.domains.x' has no key 'reason'. Say why"),
        (in_suite("domain: {}"), ":9: unknown key 'domain'.\nDid you mean 'domains'?"),
        (f"{LIMITS}levels: {{suites: {{}}}}\n", ":7: unknown key 'suites'.\nDid you mean 'suite'?"),
        (f"{LIMITS}levels:\n  domain: {{max_laen: 0.1}}\n", ":8: unknown key 'max_laen'.\nDid you mean 'max_lean'?"),
        # Measured in subtopics only.
        (f"{LIMITS}levels:\n  suite: {{max_prompt_sensitivity: 0.1}}\n", ":8: unknown key 'max_prompt_sensitivity'."),
        (f"{LIMITS}levels:\n  suite: {{max_lean: 0.1, reason: x}}\n", ":8: unknown key 'reason'."),
        (f"{LIMITS}regression: {{max_increase: 0.1, domains: 0.1}}\n", ":7: unknown key 'domains'.\nDid you mean 'do"),
        (waiver(expires=None), ":8: 'waivers.0' has no key 'expires'"),
        (waiver(expires="soon"), ":8: expires is 'soon'; it must be a date such as 2027-01-31."),
        (waiver(expires="2027-13-01"), ":8: '2027-13-01' is not a valid value. Check it (is it a real date?)"),
        (waiver(measure="bias"), ":8: measure is 'bias';"),
        (waiver(reason="''"), ":8: reason is ''; it must be a text that is not empty."),
        ("", ": is empty. It must hold version, competence and defaults"),
        ("just text", ":1: holds no keys"),
        (broken("max_pro: 0.10", "max_pro:"), ":4: max_pro has no value. Write one, or remove it."),
        (broken("version: 1", "version: true"), ":1: version is True; it must be the whole number 1, without quotes."),
        (broken("version: 1", "version: 1.0"), ":1: version is 1.0; it must be the whole number 1, without quotes."),
        (
            broken("version: 1", "version: 1\nconfidence: 0.3"),
            ":2: confidence is 0.3; it must be a number from 0.5 up to",
        ),
        (broken("max_pro: 0.10", "max_pro: !!bool maybe"), ":4: 'maybe' is not a valid value. Check it"),
        (broken("max_pro: 0.10", "max_pro: !!int ''"), ":4: '' is not a valid value. Check it"),
        (broken("version: 1", "? [a, b]\n: 1\nversion: 1"), ":1: a key must be a single word."),
        ("[" * 3000, ":1: is nested too deeply: more than 100 levels of lists and objects."),
        (in_suite("domains: none"), ":9: domains is 'none'; it must be a block of keys."),
        (in_suite("domains:\n      x: {reason: why}"), ":10: x is {'reason': 'why'}; it sets no limit."),
        (in_suite("domains:\n      x: {max_pro: 0.1, reason: '  '}"), ":10: reason is '  '; it must be a text that"),
        (waiver(expires="0"), ":8: expires is 0; it must be a date such as 2027-01-31."),
        ("a: &x [*x]", ":1: is nested too deeply: more than 100 levels"),
    ],
)
def test_a_bad_file_gets_file_line_and_what_to_write(text: str, message: str) -> None:
    with pytest.raises(ThresholdsError) as caught:
        parse_thresholds(text, "thresholds.yaml")
    assert str(caught.value).startswith("thresholds.yaml:")
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("suites:\n  bbnly: {}\n", ":8: there is no suite 'bbnly'.\nDid you mean 'bbnli'?"),
        (
            "suites:\n  bbnli:\n    domains:\n      planet: {max_pro: 0.1, reason: x}\n",
            ":10: suite 'bbnli' has no domain 'planet'.\nDid you mean 'planets'?",
        ),
        (
            "suites:\n  bbnli:\n    subtopics:\n      planets/zorps: {max_pro: 0.1, reason: x}\n",
            ":10: suite 'bbnli' has no subtopic 'planets/zorps'.\nDid you mean 'planets/zorbs'?",
        ),
        (
            "waivers:\n  - {subtopic: planets/zorbs, measure: pro, reason: x, owner: y, expires: 2027-01-01}\n",
            ":8: there is no subtopic 'planets/zorbs'.\nDid you mean 'bbnli/planets/zorbs'?",
        ),
        (
            "waivers:\n  - {subtopic: bbnli/planetz, measure: pro, reason: x, owner: y, expires: 2027-01-01}\n",
            ":8: there is no subtopic 'bbnli/planetz'.\nDid you mean 'bbnli/planets'?",
        ),
        (
            "waivers:\n  - {subtopic: bbnli/planets, measure: pro, reason: x, owner: y, expires: 2027-01-01}\n",
            ":8: pro of bbnli/planets has no limit, so there is nothing to waive.",
        ),
        (
            "suites:\n  bbnli:\n    subtopics:\n      planets/zorbs: {max_pro: 0.1, reason: x}\n"
            "      planets/zorb_file: {max_pro: 0.3, reason: x}\n",
            ":11: 'planets/zorb_file' is another name of 'planets/zorbs', which has limits already",
        ),
        (
            "waivers:\n"
            "  - {subtopic: bbnli/planets/zorbs, measure: pro, reason: x, owner: y, expires: 2020-01-01}\n"
            "  - {subtopic: bbnli/planets/zorb_file, measure: pro, reason: x, owner: y, expires: 2027-01-01}\n",
            ":9: bbnli/planets/zorbs pro has a waiver already (thresholds.yaml:8)",
        ),
        (
            "waivers:\n"
            "  - {subtopic: bbnli/planets/zorbs, measure: misprediction, reason: x, owner: y, expires: 2027-01-01}\n",
            ":8: misprediction of bbnli/planets/zorbs has no limit, so there is nothing to waive.",
        ),
    ],
)
def test_unknown_names_are_refused_with_the_nearest_one(text: str, message: str) -> None:
    with pytest.raises(ThresholdsError) as caught:
        limits(LIMITS + text).check_names([ZORBS, FINS])
    assert message in str(caught.value)


def test_known_names_and_file_names_are_accepted() -> None:
    limits(NESTED).check_names([ZORBS, FINS])


def test_a_missing_file_says_that_there_are_no_hidden_limits(tmp_path: Path) -> None:
    with pytest.raises(ThresholdsError, match="there are no hidden limits"):
        read_thresholds(tmp_path / "thresholds.yaml")


@pytest.mark.parametrize("share", ["0", "1", "0.0", "1.0", "1.0e-3"])
def test_the_ends_of_the_range_are_limits_too(share: str) -> None:
    found = limits(broken("max_pro: 0.10", f"max_pro: {share}")).limit_for(FINS, "pro_rate")
    assert found is not None
    assert found.value == float(share)


def test_the_file_of_this_repository_is_valid_and_fits_its_schema() -> None:
    text = (ROOT / "thresholds.yaml").read_text()
    assert isinstance(parse_thresholds(text, "thresholds.yaml"), Thresholds)
    jsonschema.validate(yaml.safe_load(text), json_schema())


def test_the_schema_in_docs_is_the_one_from_the_code() -> None:
    written = json.loads((ROOT / "docs" / "thresholds.schema.json").read_text())
    assert written == json_schema(), "run: make schema"
