"""What the hub's client raises, said in words that help."""

from __future__ import annotations

from macr_local.errors import DownloadError

_CLIENTS = frozenset({"httpx", "httpx2", "httpcore", "requests", "urllib3", "huggingface_hub"})


def is_fault(error: Exception) -> bool:
    """Whether an exception comes from the network or the hub, and not from a mistake of ours."""
    return isinstance(error, OSError) or type(error).__module__.partition(".")[0] in _CLIENTS


def explained(error: Exception, repo: str, revision: str | None = None) -> Exception:
    """The error to raise for what the client raised; what is no fault of theirs comes back as it is."""
    from huggingface_hub import constants, errors

    endpoint = constants.ENDPOINT
    if not is_fault(error):
        return error
    if isinstance(error, errors.OfflineModeIsEnabled):
        return DownloadError("HF_HUB_OFFLINE is set, so nothing is downloaded", "Unset it, and try again")
    if isinstance(error, errors.GatedRepoError):
        return DownloadError(
            f"{repo} is gated: its owner wants its terms accepted",
            f"Accept them at {endpoint}/{repo}, then log in (hf auth login) or set HF_TOKEN",
        )
    if isinstance(error, errors.RevisionNotFoundError):
        return DownloadError(
            f'{repo} has no revision "{revision}"', "Correct it in models.toml, or leave it out"
        )
    if isinstance(error, errors.RepositoryNotFoundError):
        return DownloadError(
            f"There is no repository {repo} at {endpoint}, or it is private",
            "Correct its name in models.toml; for a private one log in (hf auth login) or set HF_TOKEN",
        )
    response = getattr(error, "response", None)
    status = getattr(response, "status_code", None)
    if status == 401 or status == 403:
        return DownloadError(
            f"{endpoint} refuses access to {repo} ({status})", "Log in (hf auth login), or set HF_TOKEN"
        )
    if status == 429:
        wait = response.headers.get("Retry-After") if response is not None else None
        when = f"in {wait} seconds" if wait else "later"
        return DownloadError(
            f"{endpoint} has had too many requests (429)", f"Try again {when}; who is logged in may ask more"
        )
    if status is not None:
        return DownloadError(f"{endpoint} answered {status} for {repo}", "Try again later")
    return DownloadError(
        f"{endpoint} cannot be reached ({_short(error)})",
        "Check the network, HF_ENDPOINT and the proxy; what was downloaded is kept and gone on with",
    )


def _short(error: Exception) -> str:
    line = str(error).strip().splitlines()
    return (line[0] if line else type(error).__name__)[:120]
