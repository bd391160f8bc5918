from podgpu.doctor import CHECKS
from tools.checks import markdown


def test_every_check_is_documented_with_its_meaning_and_cure() -> None:
    page = markdown()
    for check in CHECKS:
        assert f"| `{check.id}` | {check.meaning} | {check.remedy} |" in page
