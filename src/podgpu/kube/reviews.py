"""Asks the API server whose token this is, and whether its holder may read a path."""

from collections.abc import Mapping, Sequence

from msgspec import Struct, field

from podgpu.kube.api import Api

TOKENS = "/apis/authentication.k8s.io/v1/tokenreviews"
ACCESS = "/apis/authorization.k8s.io/v1/subjectaccessreviews"


class User(Struct, frozen=True):
    username: str = ""
    uid: str = ""
    groups: Sequence[str] = ()
    extra: Mapping[str, Sequence[str]] = field(default_factory=dict)


class _TokenStatus(Struct):
    authenticated: bool = False
    user: User = User()


class _AccessStatus(Struct):
    allowed: bool = False
    denied: bool = False


class _TokenReview(Struct):
    status: _TokenStatus


class _AccessReview(Struct):
    status: _AccessStatus


async def holder(api: Api, token: str) -> User | None:
    """Return whose token this is; None if it is nobody's. Raises ApiFault."""
    review = _review("authentication", "TokenReview", {"token": token})
    status = (await api.post(TOKENS, _TokenReview, review)).status
    return status.user if status.authenticated and status.user.username else None


async def may(api: Api, user: User, verb: str, path: str) -> bool:
    """Whether the user may do that with a path that is no resource of Kubernetes. Raises ApiFault."""
    spec = {
        "user": user.username,
        "uid": user.uid,
        "groups": user.groups,
        "extra": user.extra,
        "nonResourceAttributes": {"verb": verb, "path": path},
    }
    status = (
        await api.post(ACCESS, _AccessReview, _review("authorization", "SubjectAccessReview", spec))
    ).status
    return status.allowed and not status.denied


def _review(group: str, kind: str, spec: Mapping[str, object]) -> Mapping[str, object]:
    return {"apiVersion": f"{group}.k8s.io/v1", "kind": kind, "spec": spec}
