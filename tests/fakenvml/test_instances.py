"""The fake library: MIG instances, GPM samples, events and the files that are held open."""

import ctypes
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pynvml

from tests.fakenvml.fake_node import FakeEvent, FakeFault, FakeNode, h200
from tests.fakenvml.stage import Stage, code_of, gpu, mig_card

# --- MIG ---


def test_instances_are_found_by_index_with_holes(stage: Stage) -> None:
    card = stage.play(mig_card())
    assert pynvml.nvmlDeviceGetMigMode(card) == [1, 1]
    assert pynvml.nvmlDeviceGetMaxMigDeviceCount(card) == 7
    mig = pynvml.nvmlDeviceGetMigDeviceHandleByIndex(card, 2)
    by_index = pynvml.nvmlDeviceGetMigDeviceHandleByIndex
    assert code_of(lambda: by_index(card, 1)) == pynvml.NVML_ERROR_NOT_FOUND
    assert code_of(lambda: by_index(card, 7)) == pynvml.NVML_ERROR_INVALID_ARGUMENT
    assert pynvml.nvmlDeviceIsMigDeviceHandle(mig).value == 1
    parent = pynvml.nvmlDeviceGetDeviceHandleFromMigDeviceHandle(mig)
    assert pynvml.nvmlDeviceGetUUID(parent) == stage.node.gpus[0].uuid
    assert pynvml.nvmlDeviceGetName(mig) == "NVIDIA H200 MIG 2g.35gb"
    assert pynvml.nvmlDeviceGetUUID(mig) == "MIG-b"
    assert (pynvml.nvmlDeviceGetGpuInstanceId(mig), pynvml.nvmlDeviceGetComputeInstanceId(mig)) == (9, 0)
    shape = pynvml.nvmlDeviceGetAttributes(mig)
    assert (shape.multiprocessorCount, shape.gpuInstanceSliceCount, shape.memorySizeMB) == (32, 2, 16384)


def test_a_gpu_instance_reports_its_first_memory_slice(stage: Stage) -> None:
    card = stage.play(mig_card())
    by_id = pynvml.nvmlDeviceGetGpuInstanceById
    info = pynvml.nvmlGpuInstanceGetInfo(by_id(card, 9))
    assert (info.id, info.placement.start, info.placement.size) == (9, 2, 2)
    assert pynvml.nvmlDeviceGetUUID(info.device) == stage.node.gpus[0].uuid
    assert code_of(lambda: by_id(card, 8)) == pynvml.NVML_ERROR_NOT_FOUND
    mig = pynvml.nvmlDeviceGetMigDeviceHandleByIndex(card, 0)
    assert code_of(lambda: by_id(mig, 9)) == pynvml.NVML_ERROR_NOT_SUPPORTED


def test_a_card_that_is_not_cut_has_no_gpu_instances(stage: Stage) -> None:
    card = stage.play(h200(0))
    refusal = code_of(lambda: pynvml.nvmlDeviceGetGpuInstanceById(card, 0))
    assert refusal == pynvml.NVML_ERROR_NOT_SUPPORTED


def test_an_instance_answers_for_itself_or_not_at_all(stage: Stage) -> None:
    card = stage.play(mig_card())
    mig = pynvml.nvmlDeviceGetMigDeviceHandleByIndex(card, 0)
    assert pynvml.nvmlDeviceGetMemoryInfo(mig).total == 16 << 30
    assert pynvml.nvmlDeviceGetComputeMode(mig) == 0
    assert [p.pid for p in pynvml.nvmlDeviceGetComputeRunningProcesses(mig)] == [70]
    both = pynvml.nvmlDeviceGetComputeRunningProcesses(card)
    assert [(p.pid, p.gpuInstanceId, p.computeInstanceId) for p in both] == [(70, 7, 0), (90, 9, 0)]
    for refusal in (
        lambda: pynvml.nvmlDeviceGetUtilizationRates(mig),
        lambda: pynvml.nvmlDeviceGetUtilizationRates(card),
        lambda: pynvml.nvmlDeviceGetPowerUsage(mig),
        lambda: pynvml.nvmlDeviceGetTotalEnergyConsumption(mig),
        lambda: pynvml.nvmlDeviceGetTemperature(mig, 0),
        lambda: pynvml.nvmlDeviceGetClockInfo(mig, 0),
        lambda: pynvml.nvmlDeviceGetProcessUtilization(mig, 0),
        lambda: pynvml.nvmlDeviceGetProcessUtilization(card, 0),
        lambda: pynvml.nvmlDeviceGetAttributes(card),
    ):
        assert code_of(refusal) == pynvml.NVML_ERROR_NOT_SUPPORTED
    assert pynvml.nvmlDeviceGetFieldValues(mig, [83])[0].nvmlReturn == pynvml.NVML_ERROR_NOT_SUPPORTED


def test_a_fault_can_strike_one_instance_and_an_instance_can_go(stage: Stage) -> None:
    card = stage.play(mig_card(), faults=[FakeFault("return 15", "nvmlDeviceGetMemoryInfo", "0:2")])
    first, two = (pynvml.nvmlDeviceGetMigDeviceHandleByIndex(card, index) for index in (0, 2))
    assert pynvml.nvmlDeviceGetMemoryInfo(first).total == 16 << 30
    assert code_of(lambda: pynvml.nvmlDeviceGetMemoryInfo(two)) == pynvml.NVML_ERROR_GPU_IS_LOST
    stage.node.gpus[0].migs.pop(0)
    stage.rewrite()
    assert code_of(lambda: pynvml.nvmlDeviceGetMemoryInfo(first)) == pynvml.NVML_ERROR_INVALID_ARGUMENT


# --- GPM ---


def metrics(first: Any, second: Any, ids: list[int]) -> list[tuple[int, float]]:
    get = pynvml.c_nvmlGpmMetricsGet_t()
    get.version, get.numMetrics = pynvml.NVML_GPM_METRICS_GET_VERSION, len(ids)
    get.sample1, get.sample2 = first, second
    for place, id_ in enumerate(ids):
        get.metrics[place].metricId = id_
    pynvml.nvmlGpmMetricsGet(get)
    return [(get.metrics[place].nvmlReturn, get.metrics[place].value) for place in range(len(ids))]


def test_gpm_answers_zero_for_ids_nobody_knows(stage: Stage) -> None:
    handle = stage.play(h200(0))
    assert pynvml.nvmlGpmQueryDeviceSupport(handle).isSupportedDevice == 1
    first, second = (pynvml.nvmlGpmSampleAlloc() for _ in range(2))
    assert stage.lib.fakenvml_live_samples() == 2
    assert code_of(lambda: metrics(first, second, [2])) == pynvml.NVML_ERROR_INVALID_ARGUMENT
    for sample in (first, second):
        pynvml.nvmlGpmSampleGet(handle, sample)
    assert metrics(first, second, [2, 3, 14, 170, 210]) == [
        (0, 89.3),
        (0, 13.2),
        (0, 0.0),
        (0, 0.0),
        (2, 0.0),
    ]
    for sample in (first, second):
        pynvml.nvmlGpmSampleFree(sample)
    assert stage.lib.fakenvml_live_samples() == 0


def test_gpm_knows_instances_and_old_cards(stage: Stage) -> None:
    old = gpu(1, values={"architecture": 8})
    card = stage.play(mig_card(), old)
    first, second = (pynvml.nvmlGpmSampleAlloc() for _ in range(2))
    for sample in (first, second):
        pynvml.nvmlGpmMigSampleGet(card, 9, sample)
    assert metrics(first, second, [2]) == [(0, 40.0)]
    pynvml.nvmlGpmSampleGet(pynvml.nvmlDeviceGetMigDeviceHandleByIndex(card, 0), first)
    assert code_of(lambda: metrics(first, second, [2])) == pynvml.NVML_ERROR_INVALID_ARGUMENT
    ampere = pynvml.nvmlDeviceGetHandleByIndex(1)
    assert pynvml.nvmlGpmQueryDeviceSupport(ampere).isSupportedDevice == 0
    assert code_of(lambda: pynvml.nvmlGpmSampleGet(ampere, first)) == pynvml.NVML_ERROR_NOT_SUPPORTED


# --- events and descriptors ---


def test_two_equal_xids_are_two_events(stage: Stage) -> None:
    stage.play(h200(0), h200(1), events=[FakeEvent(1, 13, 1)])
    cards = [pynvml.nvmlDeviceGetHandleByIndex(index) for index in range(2)]
    events = pynvml.nvmlEventSetCreate()
    pynvml.nvmlDeviceRegisterEvents(cards[1], pynvml.nvmlEventTypeXidCriticalError, events)
    assert code_of(lambda: pynvml.nvmlEventSetWait(events, 0)) == pynvml.NVML_ERROR_TIMEOUT
    stage.node.events += [FakeEvent(0, 79, 1), FakeEvent(1, 31, 2), FakeEvent(1, 31, 3)]
    stage.rewrite()
    seen = [pynvml.nvmlEventSetWait(events, 1000) for _ in range(2)]
    assert [(event.eventType, event.eventData, event.gpuInstanceId) for event in seen] == [(8, 31, 0xFFFFFFFF)] * 2
    assert pynvml.nvmlDeviceGetIndex(seen[0].device) == 1
    assert code_of(lambda: pynvml.nvmlEventSetWait(events, 20)) == pynvml.NVML_ERROR_TIMEOUT
    later = pynvml.nvmlEventSetCreate()
    pynvml.nvmlDeviceRegisterEvents(cards[1], pynvml.nvmlEventTypeXidCriticalError, later)
    assert code_of(lambda: pynvml.nvmlEventSetWait(later, 0)) == pynvml.NVML_ERROR_TIMEOUT


def test_a_waiter_is_woken_by_an_event_that_comes_later(stage: Stage) -> None:
    card = stage.play(h200(0))
    events = pynvml.nvmlEventSetCreate()
    pynvml.nvmlDeviceRegisterEvents(card, pynvml.nvmlDeviceGetSupportedEventTypes(card), events)
    with ThreadPoolExecutor() as pool:
        waiting = pool.submit(pynvml.nvmlEventSetWait, events, 10_000)
        stage.node.events = [FakeEvent(0, 94, 5)]
        stage.rewrite()
        assert waiting.result(5).eventData == 94


def test_shutdown_closes_all_files_but_those_of_forgotten_event_sets(stage: Stage) -> None:
    FakeNode([h200(0), h200(1)]).make_device_files(stage.directory / "dev")
    stage.play(h200(0), h200(1))
    pynvml.nvmlInit()
    freed, _forgotten = pynvml.nvmlEventSetCreate(), pynvml.nvmlEventSetCreate()
    assert stage.open_files() == ["nvidia0", "nvidia0", "nvidia0", "nvidia1", "nvidiactl"]
    pynvml.nvmlEventSetFree(freed)
    pynvml.nvmlShutdown()
    assert stage.open_files() == ["nvidia0", "nvidia0", "nvidia1", "nvidiactl"]
    pynvml.nvmlShutdown()
    assert stage.open_files() == ["nvidia0"]
    assert stage.lib.fakenvml_live_event_sets() == 1


# --- MIG profiles: what NVIDIA's device plugin and DRA driver name instances by ---


class GpuInstanceProfile(ctypes.Structure):
    """The first version, which the bindings for Python do not ask for."""

    names = ("id", "p2p", "slices", "instances", "multiprocessors", "copy", "decoders", "encoders", "jpegs", "ofas")
    _fields_ = (*((name, ctypes.c_uint) for name in names), ("memory_mib", ctypes.c_ulonglong))


class ComputeInstanceProfile(ctypes.Structure):
    _fields_ = (
        *((name, ctypes.c_uint) for name in ("id", "slices", "instances", "multiprocessors")),
        ("engines", ctypes.c_uint * 5),
    )


def test_an_instance_is_of_a_profile_that_its_card_offers(stage: Stage) -> None:
    card = stage.play(mig_card())
    offered = {}
    for which in range(pynvml.NVML_GPU_INSTANCE_PROFILE_COUNT):
        profile = GpuInstanceProfile()
        code = stage.lib.nvmlDeviceGetGpuInstanceProfileInfo(card, which, ctypes.byref(profile))
        assert code in {pynvml.NVML_SUCCESS, pynvml.NVML_ERROR_NOT_SUPPORTED}
        if code == pynvml.NVML_SUCCESS:
            offered[profile.id] = (profile.slices, profile.memory_mib)
    assert sorted(offered) == [0, 5, 9, 14, 15, 19, 20]
    info = pynvml.nvmlGpuInstanceGetInfo(pynvml.nvmlDeviceGetGpuInstanceById(card, 9))
    assert offered[info.profileId] == (2, 2 * 150_754_820_096 // 8 >> 20)


def test_a_profile_says_where_an_instance_may_start(stage: Stage) -> None:
    card = stage.play(mig_card())

    def starts(profile: int) -> list[tuple[int, int]]:
        count = ctypes.c_uint()
        ask = stage.lib.nvmlDeviceGetGpuInstancePossiblePlacements_v2
        assert ask(card, profile, None, ctypes.byref(count)) == 0
        places = (pynvml.c_nvmlGpuInstancePlacement_t * count.value)()
        assert ask(card, profile, places, ctypes.byref(count)) == 0
        return [(place.start, place.size) for place in places]

    assert starts(9) == [(0, 4), (4, 4)]
    assert starts(14) == [(0, 2), (2, 2), (4, 2)]
    assert len(starts(19)) == 7
    count = ctypes.c_uint(1)
    room = (pynvml.c_nvmlGpuInstancePlacement_t * 1)()
    ask = stage.lib.nvmlDeviceGetGpuInstancePossiblePlacements_v2
    assert ask(card, 9, room, ctypes.byref(count)) == pynvml.NVML_ERROR_INSUFFICIENT_SIZE
    assert ask(card, 77, None, ctypes.byref(count)) == pynvml.NVML_ERROR_NOT_SUPPORTED


def test_a_compute_instance_is_of_a_profile_of_its_gpu_instance(stage: Stage) -> None:
    whole = mig_card()
    whole.migs[1].compute_slices = 2
    card = stage.play(whole)
    instance = pynvml.nvmlDeviceGetGpuInstanceById(card, 9)
    compute = pynvml.nvmlGpuInstanceGetComputeInstanceById(instance, 0)
    info = pynvml.nvmlComputeInstanceGetInfo(compute)
    profile = ComputeInstanceProfile()
    of = stage.lib.nvmlGpuInstanceGetComputeInstanceProfileInfo
    assert of(instance, info.profileId, 0, ctypes.byref(profile)) == pynvml.NVML_SUCCESS
    assert (info.id, profile.slices, profile.multiprocessors) == (0, 2, 32)
    three_slices_of_two = of(instance, 2, 0, ctypes.byref(profile))
    assert three_slices_of_two == pynvml.NVML_ERROR_NOT_SUPPORTED
    assert code_of(lambda: pynvml.nvmlGpuInstanceGetComputeInstanceById(instance, 1)) == pynvml.NVML_ERROR_NOT_FOUND
