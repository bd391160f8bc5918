"""What the page asks for about pods: the evidence of their nodes."""

import pytest

from tests.browser.chromium import Browser
from tests.browser.stage import Script, demo_document, staged

pytestmark = pytest.mark.asyncio(loop_scope="package")

NODES = 12
EVIDENCE = f"""import('./page/pod.js').then(async ({{ Evidence }}) => {{
  const asked = [];
  const real = fetch;
  globalThis.fetch = async (path) => (asked.push(path), new Response('{{"cards": []}}'));
  const look = () => {{
    for (let number = 0; number < {NODES}; number += 1) evidence.card({{ uuid: 'GPU-1', node: {{ name: number }} }});
  }};
  const evidence = new Evidence(look);
  look();
  await new Promise((resolve) => setTimeout(resolve, 300));
  globalThis.fetch = real;
  return asked.filter((path) => path.includes('snapshot?node=')).length;
}})"""


async def test_each_of_many_nodes_is_asked_once_for_its_evidence(chromium: Browser) -> None:
    """An owner outside Kubernetes may have the same name on all of them."""
    async with staged(Script(await demo_document())) as url, chromium.page() as page:
        await page.open(url)
        assert await page.run(EVIDENCE) == NODES
