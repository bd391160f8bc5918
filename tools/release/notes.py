"""What the changelog says about a version."""

import re

UNRELEASED = "Unreleased"


def notes(changelog: str, version: str) -> str:
    """Return the section of the version, or of what is not released yet, under the version's name."""
    parts = re.split(r"^## (.+)$", changelog, flags=re.MULTILINE)
    sections = {
        title.split()[0].strip("[]"): body.strip() for title, body in zip(parts[1::2], parts[2::2], strict=True)
    }
    body = sections.get(version) or sections.get(UNRELEASED)
    if not body:
        raise SystemExit(f"CHANGELOG.md has no section {version} and none {UNRELEASED}: write what has changed")
    return f"# podgpu {version}\n\n{body}\n"
