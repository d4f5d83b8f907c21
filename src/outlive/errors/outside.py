"""The errors of a flow that reaches outside: what it may not reach, and how a request has failed."""

from __future__ import annotations

from outlive.errors.base import ConfigurationError, OutliveError


class OutsideError(OutliveError):
    """Root of what goes wrong between a step of a flow and the world outside."""


class UrlError(OutsideError, ValueError):
    """A URL that no step may ask for, whatever the settings allow."""

    def __init__(self, url: str, reason: str) -> None:
        self.url, self.reason = url, reason
        super().__init__(f"the URL {url!r} {reason}")


class RequestError(OutsideError, ValueError):
    """A request that cannot be sent as it is given."""

    def __init__(self, what: str, reason: str) -> None:
        self.what, self.reason = what, reason
        super().__init__(f"{what} {reason}")


class AddressRefusedError(OutsideError):
    """A host that is, or resolves to, an address that flows may not reach."""

    def __init__(self, host: str, address: str, kind: str) -> None:
        self.host, self.address, self.kind = host, address, kind
        where = host if host == address else f"{host} resolves to {address}, which"
        super().__init__(
            f"{where} is {kind}, and flows may not reach that; if it is meant, allow it in the settings: "
            f'[flows.http] allow_hosts = ["{host}"], or allow_networks = ["{address}"]'
        )


class HostRefusedError(OutsideError):
    """The settings do not list this host (`only_hosts`)."""

    def __init__(self, host: str) -> None:
        self.host = host
        super().__init__(f"{host} is not in [flows.http] only_hosts of the settings, and flows may reach no other host")


class UnreachableError(OutsideError, ConnectionError):
    """A host gave no complete answer: no address, no connection, or one that was lost or took too long."""

    def __init__(self, origin: str, reason: str) -> None:
        self.origin, self.reason = origin, reason
        super().__init__(f"{origin} {reason}")


class RedirectError(OutsideError):
    """A redirect that is not followed."""

    def __init__(self, url: str, reason: str) -> None:
        self.url, self.reason = url, reason
        super().__init__(f"the redirect of {url} is not followed: {reason}")


class AnswerError(OutsideError):
    """An answer that cannot be taken: too large, or not what it says it is."""

    def __init__(self, origin: str, reason: str) -> None:
        self.origin, self.reason = origin, reason
        super().__init__(f"the answer of {origin} {reason}")


class HttpStatusError(OutsideError):
    """An answer with a status that the step does not expect."""

    def __init__(self, status: int, *, request: str, excerpt: str = "", retry_after: float | None = None) -> None:
        self.status, self.request, self.excerpt = status, request, excerpt
        self.retry_after = retry_after
        """Seconds after which the server wants to be asked again, if it said so."""
        shown = f": {excerpt}" if excerpt else ""
        super().__init__(f"{request} answered with status {status}{shown}")


class NotAllowedError(OutsideError):
    """Something that only the operator can allow, by name, and has not."""

    def __init__(self, what: str, name: str, *, key: str, allowed: list[str]) -> None:
        self.what, self.name, self.key, self.allowed = what, name, key, allowed
        known = f"allowed are {', '.join(sorted(allowed))}" if allowed else "none is allowed"
        super().__init__(
            f"{what} {name!r} is not allowed here ({known}); the operator allows it in the settings: {key}"
        )


class SecretError(OutsideError):
    """A secret that has no value here, or that this step may not use."""

    def __init__(self, name: str, reason: str) -> None:
        self.name, self.reason = name, reason
        super().__init__(f"secret {name!r} {reason}")


class SettingsError(ConfigurationError):
    """Settings of flows that cannot be used."""

    def __init__(self, file: str, key: str, reason: str) -> None:
        self.file, self.key, self.reason = file, key, reason
        super().__init__(f"{file}: {key}: {reason}" if key else f"{file}: {reason}")


class ProgramError(OutsideError):
    """A program that could not begin, took too long, or ended with a code that the step does not expect."""

    def __init__(self, name: str, reason: str, *, code: int | None = None, excerpt: str = "") -> None:
        self.name, self.reason, self.exit_code, self.excerpt = name, reason, code, excerpt
        said = f": {excerpt}" if excerpt else ""
        super().__init__(f"{name} {reason}{said}")


class ToolError(OutsideError):
    """A tool of a Model Context Protocol server that reports an error, or a server that cannot be talked to."""

    def __init__(self, server: str, reason: str) -> None:
        self.server, self.reason = server, reason
        super().__init__(f"MCP server {server}: {reason}")


class BlobError(OutsideError):
    """A file or blob that cannot be loaded or stored."""

    def __init__(self, name: str, reason: str) -> None:
        self.name, self.reason = name, reason
        super().__init__(f"{name} {reason}")


class DeliveryRefusedError(OutsideError):
    """An event that a sink does not take, and will not take later either; it is a dead letter."""

    def __init__(self, sink: str, event_id: str, reason: str) -> None:
        self.sink, self.event_id, self.reason = sink, event_id, reason
        super().__init__(f"event {event_id} was not delivered to sink {sink}: {reason}")


class ServerError(OutsideError):
    """A server refused a request for a reason that no engine in this process would have: a key, a limit, a bug."""

    def __init__(self, status: int, code: str, detail: str, next: str) -> None:  # noqa: A002 (what it is called in the body)
        self.status, self.detail, self.next = status, detail, next
        self.code = code or self.code
        refusal = f"{status} {code}" if code else str(status)
        super().__init__(f"the server answered {refusal}: {detail}" + (f"; {next}" if next else ""))
