"""The settings by which the operator of a worker allows flows to act, and which differ between environments: the table
`[flows]` of `outlive.toml`, with a profile on top.

A document says what to do, and is data that many people may change. These settings say what it may reach, and only the
operator changes them. By default that is public HTTP and nothing else: no command, no image, no folder, no server.

A step reads them when it runs, in the worker that runs it. No journal holds them.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import cached_property
from ipaddress import ip_network
from pathlib import Path
from typing import Annotated, Any, get_args, get_origin

import msgspec
from msgspec import Meta

from outlive._cel.spelling import nearest
from outlive._features.flows.outside.allowed_hosts import Reach, parse_url
from outlive._features.flows.outside.grants import Bounds, place_of
from outlive._features.flows.outside.http_client import Fetcher
from outlive._features.flows.outside.program import why_not_settable
from outlive.config.file import FILE, find_file, read_file
from outlive.errors import OutliveError
from outlive.errors.outside import SettingsError

Text = Annotated[str, Meta(min_length=1)]
ENVIRONMENT = "OUTLIVE_SECRET_"
"""How the environment variables of secrets begin."""


class _Table(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A table of the file."""


class HttpSettings(_Table, frozen=True, kw_only=True):
    """`[flows.http]`: what flows may reach."""

    allow_hosts: list[Text] = []
    """Hosts that may have any address: `api.internal`, `*.corp.example`, `box:8080`."""
    allow_networks: list[Text] = []
    """Networks that may be reached though they are not public: `10.0.0.0/8`."""
    only_hosts: list[Text] | None = None
    """If given, no other host may be reached."""
    ca_file: Text | None = None
    """Certificates to trust instead of those of the system."""


class ShellCommand(_Table, frozen=True, kw_only=True):
    """`[flows.shell.NAME]`: a program that flows may run."""

    argv: Annotated[list[Text], Meta(min_length=1)]
    """The program and its first arguments. No shell reads them."""
    arguments: bool = False
    """Whether a flow may add arguments."""
    env: dict[str, str] = {}
    """Its environment, besides PATH; a flow may add the variables that `secrets` names."""
    secrets: list[Text] = []
    """The environment variables that a flow may set, which may hold secrets: `REPORT_KEY`."""
    folder: Text | None = None
    """Where it runs."""
    seconds_max: Annotated[float, Meta(gt=0)] = 60.0
    output_bytes_max: Annotated[int, Meta(ge=0)] = 1024 * 1024


class DockerImage(_Table, frozen=True, kw_only=True):
    """`[flows.docker.NAME]`: an image that flows may run."""

    image: Text
    arguments: bool = True
    """Whether a flow may say what to run in it."""
    options: list[Text] = msgspec.field(default_factory=lambda: ["--network=none"])
    """Options of `docker run`: network, memory, mounts. Only the operator gives these."""
    env: dict[str, str] = {}
    """The environment of the docker program, besides PATH: DOCKER_HOST and the like."""
    secrets: list[Text] = []
    """The environment variables that a flow may set in the container, which may hold secrets: `CONVERT_KEY`."""
    seconds_max: Annotated[float, Meta(gt=0)] = 600.0
    output_bytes_max: Annotated[int, Meta(ge=0)] = 1024 * 1024


class McpServer(_Table, frozen=True, kw_only=True):
    """`[flows.mcp.NAME]`: a server of the Model Context Protocol: a URL, or a program."""

    url: Text | None = None
    argv: list[Text] = []
    env: dict[str, str] = {}
    token: Text | None = None
    """The name of the secret that a server with a URL gets as its bearer token."""
    tools: list[Text] | None = None
    """If given, no other tool may be called."""
    seconds_max: Annotated[float, Meta(gt=0)] = 60.0


class LlmEndpoint(_Table, frozen=True, kw_only=True):
    """`[flows.llm.NAME]`: an endpoint that speaks OpenAI's chat completions."""

    url: Text
    """Its base: `https://api.openai.com/v1`."""
    key: Text | None = None
    """The name of the secret with its API key."""
    model: Text | None = None
    """Unless a flow names one."""
    seconds_max: Annotated[float, Meta(gt=0)] = 300.0


class SecretGrant(_Table, frozen=True, kw_only=True):
    """`[flows.grants.NAME]`: what the secret of this name may be used for."""

    hosts: list[Text] | None = None
    """Servers that requests take it to, and no others: `api.example.com`, `*.corp.example`, `box:8443`, all by TLS;
    `http://box:8080`. Once `hosts` or `uses` is given, nothing gets it that neither lists."""
    uses: list[Text] | None = None
    """Other receivers: steps of yours by their names, `shell:report`, `docker:convert`, and `mcp:files` for a server
    that is a program."""
    flows: list[Text] | None = None
    """Flows that may name it: `shop`, `billing.*`. Unless given: all of files and of programs, and none that is
    published over HTTP with a key."""
    env: Text | None = None
    """The environment variable with its value, which no other variable of a flow may have then."""


class FileSettings(_Table, frozen=True, kw_only=True):
    """`[flows.files]`: the folder whose files flows may load."""

    folder: Text | None = None
    bytes_max: Annotated[int, Meta(ge=0)] = 16 * 1024 * 1024


class BlobSettings(_Table, frozen=True, kw_only=True):
    """`[flows.blobs]`: the folder in which flows keep blobs; workers on several machines need a shared one."""

    folder: Text | None = None
    bytes_max: Annotated[int, Meta(ge=0)] = 16 * 1024 * 1024


class Condition(_Table, frozen=True, kw_only=True):
    """When a route is taken: what a step is given has this value at this path."""

    path: Text
    """`order.country`, or `$.order.country`."""
    value: Any


class Route(_Table, frozen=True, kw_only=True):
    """The meaning of a name in `use:` here."""

    use: Text
    """The step, the workflow or the built-in; `{name}` is what the pattern has in its place."""
    conditions: list[Condition] = []
    """All must hold."""
    params: dict[str, Any] = {}
    """Arguments that the step is given unless its document gives them."""

    def fits(self, given: Any) -> bool:
        """Whether it is the one for a step that is given this."""
        return all(_holds(condition, given) for condition in self.conditions)

    def add_to(self, given: Any) -> Any:
        """The arguments of a step, with the params."""
        return {**self.params, **given} if self.params and isinstance(given, dict) else given


class Settings(_Table, frozen=True, kw_only=True, dict=True):
    """`[flows]`."""

    profile: Text | None = None
    """Which profile to use, unless OUTLIVE_PROFILE names one."""
    vars: dict[str, Any] = {}
    """Values of variables of flows, unless a start gives them."""
    secrets: Text | None = None
    """Where secrets are: a TOML file with a line for each, or a folder with a file for each."""
    environment: list[Text] = []
    """Environment variables that documents may name which are published over HTTP with a key: `SHOP_TOKEN`, `SHOP_*`.
    Those of files and of programs may name any."""
    grants: dict[str, SecretGrant] = {}
    """The grants of secrets, by their names. The secret of an endpoint or a server in these settings goes there and
    nowhere else unless it has a grant that says otherwise."""
    http: HttpSettings = HttpSettings()
    shell: dict[str, ShellCommand] = {}
    docker: dict[str, DockerImage] = {}
    mcp: dict[str, McpServer] = {}
    llm: dict[str, LlmEndpoint] = {}
    files: FileSettings = FileSettings()
    blobs: BlobSettings = BlobSettings()
    routes: dict[str, Text | Annotated[list[Route], Meta(min_length=1)]] = {}
    """By a name of `use:`, or by a pattern such as `shop.{name}`."""
    profiles: dict[str, dict[str, Any]] = {}
    """Changes of all this for one environment."""

    @cached_property
    def fetcher(self) -> Fetcher:
        """A fetcher that sends requests where these settings allow."""
        http = self.http
        reach = Reach(
            allow_hosts=tuple(http.allow_hosts),
            allow_networks=tuple(ip_network(each) for each in http.allow_networks),
            only_hosts=None if http.only_hosts is None else tuple(http.only_hosts),
        )
        return Fetcher(reach, ca_file=http.ca_file)

    def fetcher_for(self, url: str) -> Fetcher:
        """A fetcher for a server that the operator has named in these settings, wherever that is."""
        authority = parse_url(url).authority
        return Fetcher(Reach(allow_hosts=(authority,), only_hosts=(authority,)), ca_file=self.http.ca_file)

    @cached_property
    def bounds(self) -> dict[str, Bounds]:
        """The bounds of each secret that these settings mention, by its name in lower case: some folders of secrets,
        and environment variables, do not tell `Token` from `token`."""
        owners = [(each.key, each.url) for each in self.llm.values()]
        owners += [(each.token, each.url) for each in self.mcp.values() if each.url is not None]
        own: dict[str, dict[str, None]] = {}
        for name, url in owners:
            if name is not None:
                own.setdefault(name.lower(), {})[parse_url(url).origin] = None
        names = {name.lower(): name for name in [*(name for name, _ in owners if name is not None), *self.grants]}
        return {key: _bounds(name, self.grants.get(name), own.get(key)) for key, name in names.items()}

    def bounds_of(self, name: str) -> Bounds:
        """The bounds of a secret."""
        return self.bounds.get(name.lower()) or Bounds(name=name)

    def secret_with(self, variable: str) -> str | None:
        """The name of the secret, in lower case, whose value an environment variable has by these settings."""
        for key, bounds in self.bounds.items():
            if variable.upper() == (bounds.env or f"{ENVIRONMENT}{key}").upper():
                return key
        return None

    def routes_of(self, name: str) -> list[Route]:
        """The meanings of `use: name` here: the first of them that fits counts. The last one always fits, and is the
        name itself if no route does."""
        found: list[Route] = []
        for pattern, rules in self.routes.items():
            match = _pattern(pattern).fullmatch(name)
            if match is not None:
                for rule in [Route(use=rules)] if isinstance(rules, str) else rules:
                    found.append(msgspec.structs.replace(rule, use=_filled(rule.use, match.groupdict())))
                    if not rule.conditions:
                        return found
        return [*found, Route(use=name)]


def _bounds(name: str, grant: SecretGrant | None, own: Iterable[str] | None) -> Bounds:
    grant = grant or SecretGrant()
    hosts, uses = grant.hosts, grant.uses
    if hosts is None and uses is None:
        hosts = None if own is None else [*own]
    if hosts is not None or uses is not None:
        hosts, uses = hosts or [], uses or []
    return Bounds(
        name=name,
        places=None if hosts is None else tuple(place_of(each) for each in hosts),
        uses=None if uses is None else tuple(uses),
        flows=None if grant.flows is None else tuple(grant.flows),
        env=grant.env,
    )


_PLACE = re.compile(r"\{([a-z_][a-z0-9_]*)\}")


def _pattern(pattern: str) -> re.Pattern[str]:
    """A name, in which `{place}` stands for any text that a name may have."""
    parts = _PLACE.split(pattern)
    return re.compile("".join(f"(?P<{part}>.+)" if at % 2 else re.escape(part) for at, part in enumerate(parts)))


def _filled(use: str, places: Mapping[str, str]) -> str:
    return _PLACE.sub(lambda found: places.get(found[1], found[0]), use)


def _holds(condition: Condition, given: Any) -> bool:
    value = given
    for part in condition.path.removeprefix("$").strip(".").split("."):
        if isinstance(value, dict) and part in value:
            value = value[part]
        elif isinstance(value, list) and part.isdigit() and int(part) < len(value):
            value = value[int(part)]
        else:
            return False
    return type(value) is type(condition.value) and value == condition.value


# -- Reading -----------------------------------------------------------------------------------------------


def load(path: Path, *, profile: str | None = None) -> Settings:
    """The settings of a file, with a profile on top: the named profile, or the one in the file.

    Raises:
        SettingsError: it cannot be read, or something in it is not known or cannot work; it names the file and the key.
    """
    file = read_file(path)
    return read({} if file is None else file.table.get("flows", {}), file=str(path), profile=profile)


def read(table: Any, *, file: str = FILE, profile: str | None = None) -> Settings:
    """The settings of a table that was read already; see `load`."""
    base = _convert(table, file, "flows")
    for name, changes in base.profiles.items():
        _check(_convert(_merged(table, changes), file, f"flows.profiles.{name}"), file, f"flows.profiles.{name}")
    wanted = profile or base.profile
    if wanted is None:
        _check(base, file, "flows")
        return base
    if wanted not in base.profiles:
        known = ", ".join(sorted(base.profiles)) or "none"
        raise SettingsError(file, f"flows.profiles.{wanted}", f"there is no such profile; it has {known}")
    return _convert(_merged(table, base.profiles[wanted]), file, f"flows.profiles.{wanted}")


def _merged(table: Any, changes: Any) -> Any:
    """A JSON merge patch: tables are merged, everything else is replaced."""
    if not isinstance(table, dict) or not isinstance(changes, dict):
        return changes
    return {**table, **{key: _merged(table.get(key), value) for key, value in changes.items()}}


def find_problems(table: Any) -> Iterator[tuple[tuple[str, ...], str]]:
    """Everything that is wrong with the table `[flows]`: where in it, and why."""
    problems = list(_misfits(table, Settings, ()))
    profiles = table.get("profiles", {}) if isinstance(table, dict) else {}
    for name, changes in profiles.items() if isinstance(profiles, dict) else ():
        above = ("profiles", name)
        problems += [
            ((*above, *path), reason)
            for path, reason in _misfits(_merged(table, changes), Settings, ())
            if (path, reason) not in problems and path[:1] != ("profiles",)
        ]
    yield from problems
    if not problems:
        try:
            read(table)
        except SettingsError as error:
            yield tuple(error.key.split(".")[1:]), error.reason


def _misfits(value: Any, kind: Any, path: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], str]]:
    """The parts of a value that do not fit a type: each key for itself, where msgspec would stop at the first."""
    if isinstance(kind, type) and issubclass(kind, _Table) and isinstance(value, dict):
        known = {field.encode_name: field for field in msgspec.structs.fields(kind)}
        for key in value.keys() - known.keys():
            close = nearest(key, known)
            yield (*path, key), f"there is no such setting{f'; did you mean {close}?' if close else ''}"
        for key, field in known.items():
            if key in value:
                yield from _misfits(value[key], field.type, (*path, key))
            elif field.required:
                yield path, f"{key} is missing"
    elif get_origin(kind) is dict and isinstance(value, dict):
        for key, inner in value.items():
            yield from _misfits(inner, get_args(kind)[1], (*path, key))
    else:
        try:
            msgspec.convert(value, kind)
        except msgspec.ValidationError as error:
            yield path, str(error)


_AT = re.compile(r"^(?P<what>.*?)(?: - at `\$\.?(?P<where>[^`]*)`)?$", re.DOTALL)


def _convert(table: Any, file: str, key: str) -> Settings:
    try:
        return msgspec.convert(table, Settings)
    except msgspec.ValidationError as error:
        match = _AT.fullmatch(str(error))
        what, where = (match["what"], match["where"]) if match else (str(error), None)
        raise SettingsError(file, f"{key}.{where}" if where else key, what) from None


def _check(settings: Settings, file: str, key: str) -> None:
    """Check the rules that types cannot express."""
    for at, network in enumerate(settings.http.allow_networks):
        try:
            ip_network(network)
        except ValueError as error:
            raise SettingsError(file, f"{key}.http.allow_networks[{at}]", str(error)) from None
    for name, server in settings.mcp.items():
        if (server.url is None) == (not server.argv):
            raise SettingsError(file, f"{key}.mcp.{name}", "give either url or argv")
    seen: dict[str, str] = {}
    for name, grant in settings.grants.items():
        if (other := seen.setdefault(name.lower(), name)) != name:
            raise SettingsError(file, f"{key}.grants.{name}", f"it is the same secret as {other}, in other letters")
        for at, host in enumerate(grant.hosts or ()):
            try:
                place_of(host)
            except ValueError as error:
                raise SettingsError(file, f"{key}.grants.{name}.hosts[{at}]", str(error)) from None
    owners = [("llm", name, each.key, each.url) for name, each in settings.llm.items()]
    owners += [("mcp", name, each.token, each.url) for name, each in settings.mcp.items() if each.url is not None]
    for kind, name, secret, url in owners:
        if secret is not None:
            try:
                settings.bounds_of(secret).check_target(parse_url(url))
            except OutliveError as error:
                raise SettingsError(file, f"{key}.{kind}.{name}", str(error)) from None
    for kind, programs in (("shell", settings.shell), ("docker", settings.docker)):
        for name, program in programs.items():
            for at, variable in enumerate(program.secrets):
                if why := why_not_settable(variable):
                    reason = f"no flow may set {variable}, which {why}; give it in `env` if the program needs it"
                    raise SettingsError(file, f"{key}.{kind}.{name}.secrets[{at}]", reason)
    for pattern in settings.routes:
        places = _PLACE.findall(pattern)
        if len(places) != len(set(places)):
            raise SettingsError(file, f"{key}.routes.{pattern}", "it has the same place twice")


# -- Those of this process ---------------------------------------------------------------------------------

_current: Settings | None = None


def current() -> Settings:
    """The settings of this process, read when they are first needed.

    Raises:
        SettingsError: see `of_process`.
    """
    global _current  # noqa: PLW0603
    if _current is None:
        _current = of_process()
    return _current


def of_process() -> Settings:
    """The settings in the nearest `outlive.toml`, or in `[tool.outlive]` of a `pyproject.toml`, or in the file that
    OUTLIVE_CONFIG names, with the profile that OUTLIVE_PROFILE names.

    Raises:
        SettingsError: the file cannot be used, or a named file or profile is not there.
    """
    file, profile = find_file(), os.environ.get("OUTLIVE_PROFILE")
    if file is None:
        return read({}, profile=profile)
    return read(file.table.get("flows", {}), file=str(file.path), profile=profile)


def use(settings: Settings) -> None:
    """Let this process use these settings from now on."""
    global _current  # noqa: PLW0603
    _current = settings


@contextmanager
def using(settings: Settings) -> Iterator[Settings]:
    """Let this process use other settings for a while: for tests, and for programs that make their own."""
    global _current  # noqa: PLW0603
    before, _current = _current, settings
    try:
        yield settings
    finally:
        _current = before
