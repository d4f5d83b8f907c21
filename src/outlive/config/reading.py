"""From files and variables to settings: everything that is wrong is found before anything is refused."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from outlive.config.file import NAMED_BY, SettingsFile, find_file
from outlive.config.setting import EACH, SETTINGS, VARIABLES, Setting, without_password
from outlive.config.settings import Given, Settings
from outlive.errors import ConfigurationError, InvalidArgumentError, InvalidSettingsError, OutliveError
from outlive.errors.outside import SettingsError
from outlive.errors.program import SettingProblem

FLOWS = "flows"
"""The table that the room of flows reads."""
SERVER = ("server", "auth")
"""The tables that a server reads."""
OTHER_VARIABLES = (NAMED_BY, "OUTLIVE_PROFILE", "OUTLIVE_SERVER", "OUTLIVE_KEY")
"""Variables that are not settings, and mean something."""
_NO_SETTING = re.compile(r"^OUTLIVE_SECRET_|_SERVICE_(HOST|PORT)|_PORT_\d+_(TCP|UDP|SCTP)")
"""Values of secrets of flows, and what Kubernetes lets every container know about a service called `outlive`."""
_ADDRESS = re.compile(r"(tcp|udp|sctp)://")
"""How the value begins that Kubernetes gives the variable `<SERVICE>_PORT`."""
SIMILARITY = 0.8

Check = Callable[[Any], Any]
"""Raises an `OutliveError` for a value that cannot work."""
FlowCheck = Callable[[dict[str, Any]], Iterable[tuple[tuple[str, ...], str]]]
"""Everything that is wrong with the table of flows: where in it, and why."""
ServerCheck = Callable[[Settings], Iterable[SettingProblem]]
"""Everything that is wrong with the settings of a server together, of which each alone is fine."""

_Tree = dict[str, Any]


def read_settings(
    *,
    environ: Mapping[str, str] = os.environ,
    file: str | os.PathLike[str] | None = None,
    flags: Mapping[str, Given] | None = None,
    checks: Mapping[str, Check] | None = None,
    check_flows: FlowCheck | None = None,
    check_server: ServerCheck | None = None,
) -> Settings:
    """The settings of a file, of the environment and of flags; a flag wins over a variable, and that over the file.

    Args:
        file: which file, instead of the file that OUTLIVE_CONFIG names or the nearest one.
        flags: what a command or a caller gives, by the names of the settings.
        checks: further checks of settings, by name: for what this room does not know.
        check_flows: what checks the table `[flows]`.
        check_server: what checks the settings of a server together, where one is started.

    Raises:
        InvalidSettingsError: it has every mistake, with its place.
    """
    reader = _Reader(environ, checks or {})
    try:
        found = find_file(environ, named=file)
    except SettingsError as error:
        found = None
        reader.refuse(error.file, error.key, error.reason)
    if found is not None:
        reader.read_file(found, check_flows)
    reader.read_environment()
    for name, given in (flags or {}).items():
        reader.take(name, _BY_PATH[tuple(name.split("."))], given)
    reader.check_together(check_server)
    if reader.problems:
        raise InvalidSettingsError(reader.problems)
    return Settings(reader.given, reader.flows, "" if found is None else found.name)


class _Reader:
    def __init__(self, environ: Mapping[str, str], checks: Mapping[str, Check]) -> None:
        self._environ, self._checks = environ, checks
        self.given: dict[str, Given] = {}
        self.flows: dict[str, Any] = {}
        self.problems: list[SettingProblem] = []

    def refuse(self, place: str, name: str, reason: str) -> None:
        """Note a mistake."""
        self.problems.append(SettingProblem(place, name, reason))

    def take(self, name: str, setting: Setting, given: Given) -> None:
        """Check a value, and let it replace what was given before."""
        try:
            value = setting.checked(given.value)
            if (check := self._checks.get(name)) is not None:
                check(value)
        except InvalidArgumentError as error:
            self.refuse(given.place, name, _in_a_file(error, setting, given.value))
        except OutliveError as error:
            self.refuse(given.place, name, without_password(str(error)) if setting.is_address else str(error))
        else:
            self.given[name] = Given(value, given.place)

    # -- A file ----------------------------------------------------------------------------------------------

    def read_file(self, file: SettingsFile, check_flows: FlowCheck | None) -> None:
        """Take what a file holds."""
        lines = file.lines() if file.table else {}

        def place(path: tuple[str, ...]) -> str:
            """The line of a value, or of the table that it is in."""
            known = next((path[:size] for size in range(len(path), 0, -1) if path[:size] in lines), None)
            return file.name if known is None else f"{file.name}:{lines[known]}"

        for path, setting, value in self._values(file.table, _TREE, (), place):
            self.take(".".join(path), setting, Given(value, place(path)))
            self._place_beside(file, ".".join(path))
        if check_flows is not None:
            for path, reason in check_flows(self.flows):
                self.refuse(place((FLOWS, *path)), ".".join((FLOWS, *path)), reason)

    def _place_beside(self, file: SettingsFile, name: str) -> None:
        """A path that a file names is found from the folder of that file, wherever the program is started."""
        given, folder = self.given.get(name), file.path.resolve().parent
        if given is None or folder == Path.cwd():
            return
        beginning = "sqlite:" if name == "store" else ""
        if name == "store" and given.value.startswith(beginning):
            path = given.value.removeprefix(beginning)
        elif name == "retention.audit_key_file" or (name.endswith(".archive") and "://" not in given.value):
            path = given.value
        else:
            return
        # An absolute path stays as it is.
        self.given[name] = Given(f"{beginning}{folder / Path(path).expanduser()}", given.place)

    def _values(
        self, table: dict[str, Any], tree: _Tree, above: tuple[str, ...], place: Callable[[tuple[str, ...]], str]
    ) -> Iterator[tuple[tuple[str, ...], Setting, Any]]:
        for key, value in table.items():
            path = (*above, key)
            known = tree.get(key, tree.get(EACH))
            if isinstance(known, Setting):
                yield path, known, value
            elif known is None and path != (FLOWS,):
                self.refuse(place(path), ".".join(path), _unknown(path, tree))
            elif not isinstance(value, dict):
                self.refuse(place(path), ".".join(path), f"it is a table; write [{'.'.join(path)}]")
            elif known is None:
                self.flows = value
            else:
                yield from self._values(value, known, path, place)

    # -- The environment -------------------------------------------------------------------------------------

    def read_environment(self) -> None:
        """Take what variables say; an empty one says nothing."""
        for name, text in sorted(self._environ.items()):
            setting = _BY_VARIABLE.get(name)
            if setting is not None:
                if text.strip() and not (name.endswith("_PORT") and _ADDRESS.match(text)):
                    self.take(setting.name, setting, Given(setting.from_text(text), name))
            elif close := _misspelt(name):
                self.refuse(name, "", f"there is no such variable; did you mean {close}?")

    # -- All together ----------------------------------------------------------------------------------------

    def check_together(self, check_server: ServerCheck | None) -> None:
        """Check values that must fit together, table by table; names that may be meant for a table have to be known
        first."""
        wrong = {problem.setting.partition(".")[0] for problem in self.problems}
        if wrong - {*_TREE, FLOWS}:  # A file that cannot be read, or an unknown name: it may be about any table.
            return
        for table in dict.fromkeys(name.partition(".")[0] for name in self.given):
            part = {name: given for name, given in self.given.items() if name.partition(".")[0] == table}
            try:
                if table not in wrong:
                    Settings(part).engine_options()
            except ConfigurationError as error:
                self.refuse(next(iter(part.values())).place, table, str(error))
        if check_server is not None and wrong.isdisjoint(SERVER):
            self.problems += check_server(Settings(self.given))


def _misspelt(name: str) -> str:
    """The variable that an unknown one is like; empty if it may be another program's."""
    if name in OTHER_VARIABLES or not name.startswith(VARIABLES) or _NO_SETTING.search(name):
        return ""
    return next(iter(get_close_matches(name, [*_BY_VARIABLE, *OTHER_VARIABLES], 1, SIMILARITY)), "")


def _unknown(path: tuple[str, ...], tree: _Tree) -> str:
    """Which setting was meant: one of this table, else one with the same words in another one."""
    *_, key = path
    names = [*tree, FLOWS] if tree is _TREE else [name for name in tree if name != EACH]
    if close := get_close_matches(key, names, 1):
        return f"there is no such setting; did you mean {'.'.join((*path[:-1], close[0]))}?"
    joined = "_".join(path)
    others = [setting.name for setting in SETTINGS if joined in (setting.name.replace(".", "_"), setting.path[-1])]
    if not others:
        others = get_close_matches(".".join(path), [setting.name for setting in SETTINGS], 1)
    return f"there is no such setting; {f'did you mean {others[0]}?' if others else 'see outlive config show'}"


def _in_a_file(error: InvalidArgumentError, setting: Setting, value: Any) -> str:
    """The message of an error, in the words of a file and not in those of Python."""
    wanted = error.wanted.replace(f"{error.name}=", f"{setting.path[-1]} = ")
    if error.example is not None:
        wanted += f", for example {setting.path[-1]} = {error.example!r}"
    for python, plain in (
        (", a timedelta or text (", " or text ("),
        ("KeepAudit(timedelta(days=365))", 'audit = "365d"'),
        ("timedelta(days=7)", '"7d"'),
        ("True", "true"),
        ("False", "false"),
        ("or None", 'or "none"'),
    ):
        wanted = wanted.replace(python, plain)
    shown = repr(setting.shown(value))
    return f"{shown if len(shown) <= 60 else shown[:57] + '...'} cannot work: {wanted}"


def _tree_of(settings: Iterable[Setting]) -> _Tree:
    tree: _Tree = {}
    for setting in settings:
        *tables, name = setting.path
        inner = tree
        for table in tables:
            inner = inner.setdefault(table, {})
        inner[name] = setting
    return tree


_TREE = _tree_of(SETTINGS)
_BY_PATH = {setting.path: setting for setting in SETTINGS}
_BY_VARIABLE = {setting.variable: setting for setting in SETTINGS if setting.variable}
