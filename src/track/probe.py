"""One quick question to a tracking server: is it there, does it let us in, is it MLflow?

Called by store.check before any device work. Never retries, never waits longer than DEADLINE_S,
and never shows a password.
"""

from __future__ import annotations

import contextlib
import os
import socket
import threading
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from ..errors import UserError
from . import redact

if TYPE_CHECKING:
    import requests

ENDPOINT = "/api/2.0/mlflow/experiments/search"
TIMEOUTS_S = (4.0, 6.0)  # to connect, to answer
DEADLINE_S = 10.0  # also for a server that sends one byte at a time
DATABASE_PORTS = {"postgresql": 5432, "mysql": 3306, "mssql": 1433}
OWN_SIGN_IN = ("MLFLOW_TRACKING_AUTH", "MLFLOW_TRACKING_AWS_SIGV4")
INSTEAD = (
    "Type tracking.uri=<another address>, or leave it out: the local store needs no server, and "
    "python -m src.ingest can send the run later."
)


def probe(uri: str) -> None:
    """Raise UserError saying what is wrong with the server or database at `uri`, if anything is."""
    problem = _problem(uri)
    if problem:
        raise UserError(f"tracking.uri={redact.text(uri)}: {redact.text(problem)} {INSTEAD}")


def _problem(uri: str) -> str | None:
    try:
        address = urlsplit(uri)
        if not address.hostname or address.port == 0:
            return "the address names no host."
    except ValueError as error:
        return f"not an address ({error})."
    scheme = address.scheme.partition("+")[0].lower()
    ask = _ask if scheme in ("http", "https") else _knock
    results: list[str | None] = []
    asking = threading.Thread(target=lambda: results.append(ask(uri)), daemon=True)
    asking.start()
    asking.join(DEADLINE_S)
    return results[0] if results else f"the server did not answer within {DEADLINE_S:.0f} s."


def _ask(uri: str) -> str | None:
    import requests

    try:
        with requests.get(
            uri.rstrip("/") + ENDPOINT,
            params={"max_results": "1"},
            timeout=TIMEOUTS_S,
            allow_redirects=False,
            **_sign_in(),
        ) as answer:
            return _verdict(answer)
    except requests.exceptions.SSLError as error:
        return f"no secure connection ({_innermost(error)})."
    except requests.exceptions.Timeout:
        return "the server did not answer in time."
    except requests.exceptions.RequestException as error:
        return f"no connection ({_innermost(error)})."
    except Exception as error:
        # whatever else a strange address or answer causes: the user wants the reason, not a trace
        return f"no connection ({type(error).__name__}: {error})."


def _knock(uri: str) -> str | None:
    """Reach a database server's port; SQLAlchemy's own attempts take minutes."""
    address = urlsplit(uri)
    port = address.port or DATABASE_PORTS.get(address.scheme.partition("+")[0].lower())
    if port is None:
        return None
    try:
        socket.create_connection((address.hostname or "", port), TIMEOUTS_S[0]).close()
    except OSError as error:
        return f"no connection to port {port} ({error.strerror or error})."
    return None


def _sign_in() -> dict[str, Any]:
    """Sign in as MLflow's client would, from its environment variables."""
    arguments: dict[str, Any] = {}
    get = os.environ.get
    if get("MLFLOW_TRACKING_USERNAME") and get("MLFLOW_TRACKING_PASSWORD"):
        arguments["auth"] = (get("MLFLOW_TRACKING_USERNAME"), get("MLFLOW_TRACKING_PASSWORD"))
    elif get("MLFLOW_TRACKING_TOKEN"):
        arguments["headers"] = {"Authorization": f"Bearer {get('MLFLOW_TRACKING_TOKEN')}"}
    if (get("MLFLOW_TRACKING_INSECURE_TLS") or "").lower() in ("true", "1"):
        arguments["verify"] = False
    elif get("MLFLOW_TRACKING_SERVER_CERT_PATH"):
        arguments["verify"] = get("MLFLOW_TRACKING_SERVER_CERT_PATH")
    if get("MLFLOW_TRACKING_CLIENT_CERT_PATH"):
        arguments["cert"] = get("MLFLOW_TRACKING_CLIENT_CERT_PATH")
    return arguments


def _verdict(answer: requests.Response) -> str | None:
    status = answer.status_code
    if status in (401, 403):
        if any(os.environ.get(name) for name in OWN_SIGN_IN):
            return None  # MLflow signs in its own way; the first call will tell
        return (
            f"the server refuses us (status {status}). Set MLFLOW_TRACKING_USERNAME and "
            "MLFLOW_TRACKING_PASSWORD, or MLFLOW_TRACKING_TOKEN."
        )
    if 300 <= status < 400:
        return f"the server sends us on to {answer.headers.get('Location', '?')} (status {status})."
    if status == 404:
        return "there is no MLflow at this address (status 404). Is the path right?"
    if status != 200:
        return f"the server answers with status {status}."
    with contextlib.suppress(ValueError):
        if isinstance(answer.json(), dict):
            return None
    return "the server answers, but not as MLflow does (no JSON). Is the port right?"


def _innermost(error: BaseException) -> str:
    """The one reason inside requests' nested messages: 'Connection refused', not five layers."""
    inner: object = error
    for _ in range(5):
        reason = getattr(inner, "reason", None)
        if isinstance(reason, BaseException):
            inner = reason
        elif (
            isinstance(inner, BaseException) and inner.args and isinstance(inner.args[0], Exception)
        ):
            inner = inner.args[0]
        else:
            break
    return str(inner).rpartition(": ")[2].strip(" )'\"") or type(inner).__name__
