"""`use: shell` and `use: docker`: programs and images that the operator allows, by name.

A flow names one of them and may, where the settings say so, add arguments, environment variables and what the program
reads. It never names a program, an image or an option itself: a person who may change a document could then run
anything.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from typing import Any

import msgspec
from msgspec import UNSET, UnsetType

from outlive._cel import BOOL, MAP, NUMBER, STRING, Type
from outlive._features.flows.built_in.contract import Call
from outlive._features.flows.outside import settings
from outlive._features.flows.outside.program import Ended, Program, why_not_settable
from outlive._features.flows.outside.secrets import Revealed, granted
from outlive._kernel.define.in_step import current_step
from outlive.errors.outside import NotAllowedError, ProgramError, RequestError
from outlive.errors.program import NotInRunError

EXCERPT_CHARACTERS_MAX = 500
RESULT: Type = MAP({"code": NUMBER, "output": STRING, "errors": STRING, "is_cut": BOOL})

_ODD = re.compile(r"[^a-zA-Z0-9_.-]")


class _Given(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """The arguments that `shell` and `docker` have in common."""

    arguments: list[str] = []
    """Added to those of the settings."""
    env: dict[str, str] = {}
    """May hold secrets."""
    input: str = ""
    """The text that the program reads."""
    expect: list[int] | UnsetType = UNSET
    """Codes that are not failures; 0 unless given."""


class ShellArguments(_Given, frozen=True, kw_only=True):
    """`with` of a shell step."""

    command: str
    """The name of a command in the settings."""


class DockerArguments(_Given, frozen=True, kw_only=True):
    """`with` of a docker step."""

    image: str
    """The name of an image in the settings."""


class Shell:
    """`use: shell`."""

    name = "shell"
    arguments = ShellArguments
    takes_secrets = True
    result = RESULT

    async def run(self, call: Call, given: ShellArguments) -> Any:
        """One journaled step."""
        return await call.step(run_command, given, call.secrets)


class Docker:
    """`use: docker`."""

    name = "docker"
    arguments = DockerArguments
    takes_secrets = True
    result = RESULT

    async def run(self, call: Call, given: DockerArguments) -> Any:
        """One journaled step."""
        return await call.step(run_image, given, call.secrets)


async def run_command(given: ShellArguments, grants: list[str]) -> Any:
    """Run a command that the settings name."""
    allowed = settings.current().shell
    command = allowed.get(given.command)
    if command is None:
        key = f"[flows.shell.{given.command}]"
        raise NotAllowedError("shell command", given.command, key=key, allowed=[*allowed])
    with granted(grants, to=f"shell:{given.command}") as revealed:
        real = msgspec.convert(revealed.resolve(msgspec.to_builtins(given)), ShellArguments)
        what = f"command {given.command}"
        _check(what, real, takes_arguments=command.arguments, variables=command.secrets)
        program = Program(
            name=what,
            argv=[*command.argv, *real.arguments],
            env={**command.env, **real.env},
            folder=command.folder,
            seconds_max=command.seconds_max,
            bytes_max=command.output_bytes_max,
        )
        return _result(what, await program.run(real.input.encode()), real, revealed)


async def run_image(given: DockerArguments, grants: list[str]) -> Any:
    """Run a container of an image that the settings name, and remove it."""
    allowed = settings.current().docker
    image = allowed.get(given.image)
    if image is None:
        key = f"[flows.docker.{given.image}]"
        raise NotAllowedError("docker image", given.image, key=key, allowed=[*allowed])
    with granted(grants, to=f"docker:{given.image}") as revealed:
        real = msgspec.convert(revealed.resolve(msgspec.to_builtins(given)), DockerArguments)
        what = f"image {given.image}"
        _check(what, real, takes_arguments=image.arguments, variables=image.secrets)
        container = _container_name()
        # Only the names of variables: other users of the machine can read the arguments of a program.
        names = [part for name in real.env for part in ("--env", name)]
        argv = ["docker", "run", "--rm", "--init", "--interactive", "--name", container, *image.options, *names]
        program = Program(
            name=what,
            argv=[*argv, image.image, *real.arguments],
            env={**image.env, **real.env},
            seconds_max=image.seconds_max,
            bytes_max=image.output_bytes_max,
        )
        has_ended = False
        try:
            ended = await program.run(real.input.encode())
            has_ended = True
        finally:
            if not has_ended:
                await _remove(container, image.env)
        return _result(what, ended, real, revealed)


async def _remove(container: str, env: Mapping[str, str]) -> None:
    """The client was killed; its container runs on until it is removed."""
    argv = ["docker", "rm", "--force", container]
    await Program(name="docker rm", argv=argv, env=env, seconds_max=10.0, bytes_max=0).run()


def _container_name() -> str:
    try:
        step = current_step()
    except NotInRunError:
        return "outlive-tried"
    return f"outlive-{_ODD.sub('-', step.idempotency_key)[-80:]}-{step.attempt}-{step.epoch}"


def _check(what: str, given: _Given, *, takes_arguments: bool, variables: Collection[str]) -> None:
    if given.arguments and not takes_arguments:
        raise RequestError(what, "takes no arguments of a flow; the operator can allow that with arguments = true")
    for name in given.env:
        if name not in variables:
            listed = f"it takes {', '.join(variables)}" if variables else "it takes none"
            reason = f"does not take the variable {name!r} of a flow: {listed}; the operator lists them in `secrets`"
            raise RequestError(what, reason)
        if why := why_not_settable(name):
            raise RequestError(what, f"cannot be given the variable {name!r}, which {why}")


def _result(what: str, ended: Ended, given: _Given, revealed: Revealed) -> dict[str, Any]:
    expected = [0] if given.expect is UNSET else given.expect
    output, errors = (revealed.blot_cut(data.decode("utf-8", "replace"), is_cut=ended.is_cut) for data in ended.streams)
    if ended.code not in expected:
        excerpt = " ".join((errors or output).split())[-EXCERPT_CHARACTERS_MAX:]
        raise ProgramError(what, f"ended with code {ended.code}", code=ended.code, excerpt=excerpt)
    return {"code": ended.code, "output": output, "errors": errors, "is_cut": ended.is_cut}


BUILT_INS = {"shell": Shell(), "docker": Docker()}
