"""Asks the API server who a token belongs to, and whether a user may read a path."""

from collections.abc import Mapping, Sequence
from typing import Generic, TypeVar

from msgspec import Struct, field

from podgpu.kube.api import ApiServer

TOKENS = "/apis/authentication.k8s.io/v1/tokenreviews"
ACCESS = "/apis/authorization.k8s.io/v1/subjectaccessreviews"

T = TypeVar("T")


class User(Struct, frozen=True):
    username: str = ""
    uid: str = ""
    groups: Sequence[str] = ()
    extra: Mapping[str, Sequence[str]] = field(default_factory=dict)


class _TokenStatus(Struct):
    authenticated: bool = False
    user: User = User()
    audiences: Sequence[str] | None = None


class _AccessStatus(Struct):
    allowed: bool = False
    denied: bool = False


class _Review(Struct, Generic[T]):
    status: T


async def token_user(api: ApiServer, token: str, audiences: Sequence[str] = ()) -> User | None:
    """Return the token's user; None if it is not valid, or not for one of the `audiences`. Raises ApiFault.

    Without audiences the token must be for the API server itself.
    """
    wanted = {"audiences": list(audiences)} if audiences else {}
    review = _review("authentication", "TokenReview", {"token": token, **wanted})
    status = (await api.post(TOKENS, _Review[_TokenStatus], review)).status
    # A server that does not support audiences lists none: then the token is for the server itself.
    is_for_us = not audiences or bool({*audiences} & {*(status.audiences or ())})
    return status.user if status.authenticated and status.user.username and is_for_us else None


async def may_use(api: ApiServer, user: User, verb: str, path: str) -> bool:
    """Return whether the user may use a path that is no Kubernetes resource. Raises ApiFault."""
    spec = {
        "user": user.username,
        "uid": user.uid,
        "groups": user.groups,
        "extra": user.extra,
        "nonResourceAttributes": {"verb": verb, "path": path},
    }
    review = _review("authorization", "SubjectAccessReview", spec)
    status = (await api.post(ACCESS, _Review[_AccessStatus], review)).status
    return status.allowed and not status.denied


def _review(group: str, kind: str, spec: Mapping[str, object]) -> Mapping[str, object]:
    return {"apiVersion": f"{group}.k8s.io/v1", "kind": kind, "spec": spec}
