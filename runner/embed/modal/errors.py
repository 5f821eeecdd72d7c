"""Modal's errors in this tool's words: what is wrong, and what to do next."""

import os

from runner.base.errors import BackendError, EvalError

_SECRETS = ("MODAL_TOKEN_SECRET", "MODAL_TOKEN_ID", "HF_TOKEN")
_AGAIN = "run the command again"
_ADVICE: tuple[tuple[tuple[str, ...], str, str], ...] = (
    (
        ("AuthError", "PermissionDeniedError"),
        "Modal does not accept the token",
        "run `modal token new`, or set MODAL_TOKEN_ID and MODAL_TOKEN_SECRET",
    ),
    (
        ("ResourceExhaustedError",),
        "Modal gives no more resources",
        "look at the workspace's limits and spending on modal.com, lower --containers, and run the command again",
    ),
    (
        ("ImageBuildError",),
        "Modal could not build the image",
        "its log is on modal.com under the app; the versions are the pins of pyproject.toml",
    ),
    (
        ("InvalidError", "ConflictError", "NotFoundError", "VersionError", "UnimplementedError"),
        "Modal does not accept what was asked for",
        "check --gpu, --containers and Modal's config file, and that modal is the pinned one (`make setup`)",
    ),
    (
        ("ServiceError", "ConnectionError", "InternalError", "TimeoutError", "ClientClosed", "OSError"),
        "Modal cannot be reached",
        f"see status.modal.com; {_AGAIN}",
    ),
)


def explained(error: BaseException) -> BackendError:
    """The error as a BackendError; one of this tool's own passes as it is."""
    if isinstance(error, EvalError):
        return BackendError(str(error))
    names = {kind.__name__ for kind in type(error).__mro__}
    for kinds, what, advice in _ADVICE:
        if names & set(kinds):
            return BackendError(f"{what} ({described(error)}). Next: {advice}.")
    return BackendError(f"Modal failed ({described(error)}). Next: {_AGAIN}.")


def of_the_method(error: BaseException) -> bool:
    """Whether an input failed in the method, or on the way to it, rather than while its container was made ready.

    The method's own errors arrive as Modal's RemoteError, since payloads are no pickles; a container's, before its
    first input, as they were raised, or as an ExecutionError if their kind is not known here.
    """
    return type(error).__module__.startswith("modal.") and type(error).__name__ != "ExecutionError"


def described(error: BaseException) -> str:
    """The error's kind and text on one line, without the secrets of this environment."""
    return without_secrets(f"{type(error).__name__}: {' '.join(str(error).split())}"[:1000])


def without_secrets(text: str) -> str:
    """The text with the values of tokens in this environment blotted out."""
    for name in _SECRETS:
        if value := os.environ.get(name):
            text = text.replace(value, f"[{name}]")
    return text
