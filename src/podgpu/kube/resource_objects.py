"""ResourceClaims and ResourceSlices as the API server writes them, in v1 and both betas of resource.k8s.io."""

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Annotated

from msgspec import Meta, Raw, Struct, field
from msgspec.json import Decoder

from podgpu.kube.api import MALFORMED
from podgpu.kube.object_cache import ObjectMetadata
from podgpu.kube.pod_object import Label, Subdomain, Uid
from podgpu.model import ClaimedDevice, PoolDevice, ResourceClaim

VERSIONS = ("v1", "v1beta2", "v1beta1")  # earlier versions have another shape and were never on by default
ROOTS = [f"/apis/resource.k8s.io/{version}" for version in VERSIONS]
POD_NAME = "resource.kubernetes.io/pod-claim-name"

# A request or an alternative of it: `gpu`, `gpu/small`. A pool: domains with slashes between them.
Request = Annotated[str, Meta(pattern=r"^[a-z0-9][-/a-z0-9]*\Z", max_length=127)]
Pool = Annotated[str, Meta(pattern=r"^[a-z0-9][-./a-z0-9]*\Z", max_length=253)]


class ResultEntry(Struct, rename="camel"):
    request: Request
    driver: Subdomain
    pool: Pool
    device: Label
    admin_access: bool | None = None
    share_id: Uid | None = field(default=None, name="shareID")
    consumed_capacity: dict[str, str | int] | None = None


class ResultList(Struct):
    results: list[ResultEntry] | None = None


class ClaimAllocation(Struct):
    devices: ResultList | None = None


class Consumer(Struct, rename="camel"):
    resource: str
    uid: Uid
    api_group: str = ""


class ClaimStatus(Struct, rename="camel"):
    allocation: ClaimAllocation | None = None
    reserved_for: list[Consumer] | None = None


class ClaimMetadata(ObjectMetadata, rename="camel", kw_only=True):
    name: Subdomain
    namespace: Label
    annotations: dict[str, str] | None = None


class ExactRequest(Struct, rename="camel"):
    device_class_name: str = ""


class RequestEntry(ExactRequest, rename="camel"):
    """Names its device class, depending on the API version, here, in `exactly`, or in each alternative."""

    exactly: ExactRequest | None = None
    first_available: list[ExactRequest] | None = None

    def classes(self) -> Iterator[str]:
        named = (self, self.exactly or self, *(self.first_available or ()))
        yield from (request.device_class_name for request in named if request.device_class_name)


class RequestList(Struct):
    requests: list[RequestEntry] | None = None


class ClaimSpec(Struct):
    devices: RequestList | None = None


class ClaimObject(Struct):
    metadata: ClaimMetadata
    spec: ClaimSpec | None = None
    status: ClaimStatus | None = None

    @property
    def is_allocated(self) -> bool:
        return self.status is not None and self.status.allocation is not None


class AttributeValue(Struct):
    """Exactly one field is set. A list of values sets none of these."""

    string: str | None = None
    version: str | None = None
    number: int | None = field(default=None, name="int")
    truth: bool | None = field(default=None, name="bool")

    def text(self) -> str | None:
        if self.truth is not None:
            return "true" if self.truth else "false"
        return self.string or self.version or (None if self.number is None else str(self.number))


class CapacityValue(Struct):
    value: str | int = ""


class BasicDevice(Struct):
    attributes: dict[str, AttributeValue] | None = None
    capacity: dict[str, CapacityValue] | None = None


class DeviceObject(BasicDevice, kw_only=True):
    """v1beta1 has a device's attributes one level deeper, under `basic`."""

    name: Label
    basic: BasicDevice | None = None


class SlicePool(Struct):
    name: Pool
    generation: int = 0


class SliceSpec(Struct, rename="camel"):
    driver: Subdomain
    pool: SlicePool
    devices: list[Raw] | None = None
    node_name: str | None = None


class SliceObject(Struct):
    spec: SliceSpec
    metadata: ObjectMetadata = field(default_factory=ObjectMetadata)


decode_claim = Decoder(ClaimObject).decode
decode_slice = Decoder(SliceObject).decode
decode_device = Decoder(DeviceObject).decode


def to_claim(item: ClaimObject) -> ResourceClaim:
    """Return a claim with its devices, or with the device classes it asks for while it is not allocated."""
    status = item.status or ClaimStatus()
    results = requests = None
    if status.allocation:
        results = status.allocation.devices and status.allocation.devices.results
    else:
        requests = item.spec and item.spec.devices and item.spec.devices.requests
    users = status.reserved_for or () if status.allocation else ()
    return ResourceClaim(
        namespace=item.metadata.namespace,
        name=item.metadata.name,
        pod_name=(item.metadata.annotations or {}).get(POD_NAME, ""),
        devices=tuple(_claimed(result) for result in results or () if not result.admin_access),
        pod_uids=tuple(user.uid for user in users if (user.api_group, user.resource) == ("", "pods")),
        classes=tuple(dict.fromkeys(name for request in requests or () for name in request.classes())),
        monitored=tuple(_claimed(result) for result in results or () if result.admin_access),
    )


def _claimed(result: ResultEntry) -> ClaimedDevice:
    consumed = result.consumed_capacity or {}
    return ClaimedDevice(
        request=result.request,
        driver=result.driver,
        pool=result.pool,
        device=result.device,
        share_id=result.share_id or "",
        consumed={_bare(name, result.driver): str(value) for name, value in consumed.items()},
    )


def _bare(name: str, driver: str) -> str:
    """Return a name without the driver's domain."""
    return name.removeprefix(f"{driver}/")


def newest(specs: Iterable[SliceSpec]) -> Iterator[SliceSpec]:
    """Leave out slices of an older generation, which remain while a driver rewrites its pool."""
    specs = tuple(specs)
    generations: dict[tuple[str, str], int] = {}
    for spec in specs:
        pool = spec.driver, spec.pool.name
        generations[pool] = max(spec.pool.generation, generations.get(pool, 0))
    return (spec for spec in specs if spec.pool.generation == generations[spec.driver, spec.pool.name])


def pool_devices(specs: Iterable[SliceSpec], errors: Counter[str]) -> Iterator[PoolDevice]:
    """Return the devices that slices offer. Malformed devices are counted in `errors`."""
    for spec in newest(specs):
        for raw in spec.devices or ():
            try:
                yield to_device(spec, decode_device(raw))
            except MALFORMED:
                errors["garbage"] += 1


def to_device(spec: SliceSpec, item: DeviceObject) -> PoolDevice:
    described = item.basic or item
    texts = {_bare(name, spec.driver): value.text() for name, value in (described.attributes or {}).items()}
    capacity = {_bare(name, spec.driver): str(amount.value) for name, amount in (described.capacity or {}).items()}
    return PoolDevice(
        driver=spec.driver,
        pool=spec.pool.name,
        device=item.name,
        attributes={name: text for name, text in texts.items() if text is not None},
        capacity=capacity,
        node=spec.node_name or "",
    )
