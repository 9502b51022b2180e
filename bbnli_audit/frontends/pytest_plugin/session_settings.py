"""What the options of one run of pytest say: the model, the suites and their subtopics, the limits."""

import os
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from bbnli_audit.audit import audit
from bbnli_audit.audit.gate.thresholds import Thresholds, read_thresholds
from bbnli_audit.core.errors import OptionError, SuiteError, ThresholdsError, suggest
from bbnli_audit.core.values import TEMPLATE_PAIRINGS, Pairing, Subtopic
from bbnli_audit.frontends.pytest_plugin.plugin import get_setting
from bbnli_audit.models.language_model.asking import SERVED, Asking, read_asking
from bbnli_audit.suites.protocol import check_suite
from bbnli_audit.suites.registry import open_suite, read_data, read_names, suite_of

if TYPE_CHECKING:
    from bbnli_audit.suites.protocol import Suite


class SessionSettings:
    """Read and checked before anything is collected."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        self.model = self._read_model("model") or ""
        self.also = self._read_model("also")
        self.is_revealed = bool(config.getoption("bbnli_reveal"))
        self.has_properties = bool(config.getini("bbnli_junit_properties"))
        self.suites = self._open_suites()
        self.excluded: list[str] = []
        self.subtopics = self._choose_subtopics()
        self.thresholds = self._read_thresholds()

    def read_asking(self) -> Asking:
        """Read how a language model is asked."""
        return self._read_asking(get_setting(self._config, "prompt"))

    def read_second_asking(self) -> Asking | None:
        """Read how it is asked a second time; None without --bbnli-also-prompt.

        Raises:
            OptionError: when the model is not asked, or there is no other prompt of that name.
        """
        first, name = self.read_asking(), get_setting(self._config, "also_prompt")
        if name is None:
            return None
        option = f"--bbnli-also-prompt={name}"
        if not is_asked(self.model, first):
            raise OptionError(f"{option}: is for a model that is asked. Add --bbnli-prompt=NAME, or leave it out.")
        try:
            second = self._read_asking(name)
        except OptionError as exc:
            raise OptionError(str(exc).replace("--bbnli-prompt=", "--bbnli-also-prompt=")) from exc
        if second.of_server.template == first.of_server.template:
            raise OptionError(
                f"{option}: is what --bbnli-prompt asks already ({first.of_server.name}), so no answer could change. "
                "Give another prompt."
            )
        return second

    def _read_asking(self, prompt: str | None) -> Asking:
        rest = {option: get_setting(self._config, option) for option in ("base_url", "answers")}
        return read_asking(prompt=prompt, prompts=self.path("prompts"), **rest)

    def _open_suites(self) -> "list[Suite]":
        pairing = get_setting(self._config, "pairing") or Pairing.BOTH.value
        if pairing not in TEMPLATE_PAIRINGS:
            raise OptionError(
                f"--bbnli-pairing={pairing}: there is no such pairing. {suggest(pairing, TEMPLATE_PAIRINGS)}"
            )
        given_data = get_setting(self._config, "data")
        names = read_names(get_setting(self._config, "suite") or suite_of(self._below(given_data, "data")))
        data = read_data(given_data, names)
        suites = [open_suite(name, self._below(data.get(name), "data"), Pairing(pairing)) for name in names]
        for given in self._config.hook.pytest_bbnli_suites(config=self._config):
            if not isinstance(given, list | tuple):
                raise SuiteError(f"pytest_bbnli_suites gave a {type(given).__name__}; expected a list of suites.")
            suites.extend(given)
        for suite in suites:
            check_suite(suite)
        names = [suite.name for suite in suites]
        for name in names:
            if names.count(name) > 1:
                raise SuiteError(f"Two suites are named {name!r}; results and limits are kept by name. Rename one.")
        return suites

    def _choose_subtopics(self) -> dict[str, Subtopic]:
        known = {subtopic.path: subtopic for suite in self.suites for subtopic in suite.subtopics()}
        patterns = [p.strip() for p in (get_setting(self._config, "exclude") or "").split(",") if p.strip()]
        for pattern in patterns:
            matching = [path for path in known if fnmatchcase(path, pattern)]
            if not matching:
                raise OptionError(f"--bbnli-exclude={pattern}: names no subtopic. {suggest(pattern, known)}")
            self.excluded.extend(path for path in matching if path not in self.excluded)
        if known and len(self.excluded) == len(known):
            raise OptionError("--bbnli-exclude leaves out every subtopic, so there is nothing to audit.")
        return {path: subtopic for path, subtopic in known.items() if path not in self.excluded}

    def _read_thresholds(self) -> Thresholds:
        base = self._config.rootpath
        path = Path(os.path.normpath(self.path("thresholds") or base / "thresholds.yaml"))
        name = path.relative_to(base).as_posix() if path.is_relative_to(base) else str(path)
        if not path.exists() and self._config.invocation_params.dir != base:
            raise ThresholdsError(
                f"{path}: there is no such file. pytest's root folder is {base}, not the folder it was started in; if "
                "it took an option's value for a test path, write the option with '=': --model=PATH."
            )
        thresholds = read_thresholds(path, name)
        audit.check_thresholds_names(thresholds, self.suites)
        return thresholds

    def path(self, name: str) -> Path | None:
        """Read a path: an option counts from where pytest was started, an ini key from the root folder."""
        return self._below(get_setting(self._config, name), name)

    def _below(self, value: str | None, name: str) -> Path | None:
        is_option = self._config.getoption(f"bbnli_{name}", None) is not None
        base = self._config.invocation_params.dir if is_option else self._config.rootpath
        return None if value is None else base / value

    def _read_model(self, name: str) -> str | None:
        option = self._config.getoption(f"bbnli_{name}", None)
        model = get_setting(self._config, name)
        if model is None:
            return None
        beside_ini = self._config.rootpath / model
        return str(beside_ini) if option is None and beside_ini.is_dir() else model


def is_asked(model: str, asking: Asking) -> bool:
    """Tell whether a model is asked with a prompt: a served one always is."""
    return asking.prompt is not None or model.startswith(SERVED)
