"""What is around a page's table: its head, and the policy it is served under.

With JavaScript, podgpu's own modules take the table's place. Without, the table stays and reloads itself.
"""

from base64 import b64encode
from hashlib import sha256

# Before the first paint: the chosen colours, and no table that is about to be replaced. If nothing replaces it
# within a while, the table is shown after all.
BOOT = (
    "(()=>{const e=document.documentElement;try{const t=localStorage.getItem('podgpu-theme');"
    "if(t==='light'||t==='dark')e.dataset.theme=t}catch{}"
    "e.classList.add('js');setTimeout(()=>{if(!e.dataset.app)e.classList.remove('js')},4000)})()"
)


def _hash(text: str) -> str:
    return f"'sha256-{b64encode(sha256(text.encode()).digest()).decode()}'"


# Nothing but podgpu's own files and the one script above; no markup is ever made from text.
POLICY = "; ".join(
    (
        "default-src 'none'",
        f"script-src 'self' {_hash(BOOT)}",
        "style-src 'self'",
        "img-src 'self'",
        "connect-src 'self'",
        "worker-src 'self'",
        "base-uri 'none'",
        "form-action 'none'",
        "frame-ancestors 'none'",
        "require-trusted-types-for 'script'",
        "trusted-types podgpu",
    )
)


def document(title: str, body: str, *, refresh_seconds: int) -> tuple[str, str]:
    """Return what stands before the table and after it. `title` and `body` are HTML."""
    head = (
        '<!DOCTYPE html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width,initial-scale=1">'
        f'<noscript><meta http-equiv="refresh" content="{refresh_seconds}"></noscript>'
        f'<title>{title}</title><link rel="icon" href="page/icon.svg">'
        '<link rel="stylesheet" href="page/table.css"><link rel="stylesheet" href="page/app.css">'
        f'<script>{BOOT}</script><script type="module" src="page/app.js"></script></head>'
        f'<body><div id="app"></div><main id="plain">{body}'
    )
    return head, "</main></body></html>\n"
