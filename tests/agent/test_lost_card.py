"""The holder of a card that cannot be read: named with what it holds, and nothing is made up about its use."""

import re
from pathlib import Path

from podgpu.model import Device, Fault, Gpu, Snapshot
from podgpu.views import native
from podgpu.views.exposition import Format, render
from tests.agent.test_attribution import GPU, INTERVAL, Kubelet, Pods, Stage, pod


async def test_the_page_names_the_holder_of_a_lost_card_and_what_it_holds(tmp_path: Path) -> None:
    stage = Stage(tmp_path, Kubelet(chat=GPU), Pods("pods-api", pod()))
    await stage.cycle()
    lost = await stage.see(Device(gpu=Gpu(uuid=GPU, index=0), fault=Fault(reason="lost")))
    shown = Snapshot(node="n", taken_at=1.0, interval_seconds=INTERVAL, version="1.0", cards=lost.cards)
    page = render(native.families(shown, {}), Format.TEXT).decode()
    assert re.search(r'^podgpu_container_info\{.*pod="chat".*\} 1\.0$', page, re.MULTILINE)
    assert re.search(r'^podgpu_container_allocated_ratio\{.*pod="chat".*\} 1\.0$', page, re.MULTILINE)
    for gauge in ("memory_used_bytes", "sm_utilization_ratio", "power_watts", "processes"):
        assert f"podgpu_container_{gauge}{{" not in page
