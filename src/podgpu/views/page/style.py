"""The status page's look. Inline, so that the page needs nothing but itself."""

CSS = """
:root{color-scheme:light dark;--ink:#1b2126;--soft:#5d6872;--line:#dfe4e8;--paper:#f5f7f8;--card:#fff;
--good:#1a7f47;--goodbg:#e3f4ea;--bad:#b3261e;--badbg:#fdeceb;--bar:#3d7fd1;--track:#e4e9ee;--demo:#7a4b00;--demobg:#fff1d2}
@media(prefers-color-scheme:dark){:root{--ink:#e5e9ec;--soft:#9aa5af;--line:#2c343b;--paper:#12161a;--card:#1a2026;
--good:#63d492;--goodbg:#123322;--bad:#ff8b83;--badbg:#3c1715;--bar:#5b9df0;--track:#2a323a;--demo:#ffd27a;
--demobg:#3a2a08}}
*{box-sizing:border-box}
body{margin:0;background:var(--paper);color:var(--ink);
font:15px/1.45 system-ui,-apple-system,"Segoe UI",Roboto,sans-serif}
main{max-width:1240px;margin:0 auto;padding:1.25rem}
a{color:var(--bar)}
header{display:flex;flex-wrap:wrap;align-items:baseline;gap:.3rem 1rem;margin-bottom:1rem}
h1{font-size:1.5rem;margin:0;letter-spacing:-.02em}
h2{font-size:1rem;margin:1.6rem 0 .5rem}
header .node{font-size:1.15rem;font-weight:600;overflow-wrap:anywhere}
header .age{margin-left:auto}
.soft{color:var(--soft);font-size:.87rem}
.place{white-space:nowrap}
.banner{padding:.6rem .9rem;border-radius:8px;margin-bottom:1rem;background:var(--demobg);color:var(--demo)}
.banner.stale{background:var(--badbg);color:var(--bad)}
.pill{display:inline-block;padding:.05rem .6rem;border-radius:99px;font-size:.82rem;
font-weight:600;white-space:nowrap}
.good{background:var(--goodbg);color:var(--good)}.bad{background:var(--badbg);color:var(--bad)}
.box{background:var(--card);border:1px solid var(--line);border-radius:10px;overflow-x:auto}
ul.list{list-style:none;margin:0;padding:0}
.list li{padding:.55rem .9rem;display:flex;flex-wrap:wrap;gap:.15rem .8rem;align-items:baseline}
.list li+li{border-top:1px solid var(--line)}
.list .why{flex-basis:100%;overflow-wrap:anywhere}
.next::before{content:"Next: ";font-weight:600}
table{border-collapse:collapse;width:100%;font-variant-numeric:tabular-nums}
th{font-size:.78rem;font-weight:600;color:var(--soft);text-align:right;padding:.5rem .6rem;white-space:nowrap}
td{padding:.5rem .6rem;text-align:right;vertical-align:top;white-space:nowrap}
th.left,td.left{text-align:left}
td.left{white-space:normal;overflow-wrap:anywhere}
@media(min-width:1240px){th.model{min-width:21rem}}
tbody tr{border-top:1px solid var(--line)}
tr.mig,tr.who{border-top:0}
tr.mig td,tr.who td{padding-top:.15rem}
tr.mig td:nth-child(2),tr.who td:nth-child(2){padding-left:1.6rem}
tr.deep td:nth-child(2){padding-left:2.6rem}
tr.rest{color:var(--soft)}
.fine{font-size:.78rem;color:var(--soft)}
.share{white-space:nowrap}
.method{display:block}
td.index{font-weight:700;font-size:1.05rem;text-align:left}
.bar{display:block;height:5px;width:100%;min-width:4.5rem;margin-top:.3rem;border-radius:3px;background:var(--track)}
.bar i{display:block;height:5px;border-radius:3px;background:var(--bar)}
.bar{position:relative;print-color-adjust:exact;-webkit-print-color-adjust:exact}
.bar b{position:absolute;top:-2px;height:9px;min-width:2px;border:solid var(--ink);border-width:0 1px}
.bar b::before{content:"";position:absolute;top:4px;left:0;right:0;border-top:1px solid var(--ink)}
.bounds{color:var(--soft)}
.spoken{position:absolute;width:1px;height:1px;overflow:hidden;clip-path:inset(50%)}
.uuid{font:.75rem ui-monospace,Menlo,Consolas,monospace;color:var(--soft)}
footer{margin-top:1.5rem;display:flex;flex-wrap:wrap;gap:.3rem 1.2rem}
@media(max-width:900px){
main{padding:.8rem}
thead{display:none}
table,tbody{display:block}
tbody tr{display:grid;grid-template-columns:1fr 1fr;gap:.1rem .9rem;padding:.7rem .9rem}
tbody td,tbody td.left,tr.mig td,tr.who td,tr.mig td:nth-child(2),tr.who td:nth-child(2){display:block;padding:.1rem 0;
text-align:left;white-space:normal}
td[data-label]::before{content:attr(data-label);display:block;font-size:.74rem;color:var(--soft)}
td.index::before{display:inline;content:"GPU "}
td.wide{grid-column:1/-1}
tbody tr.mig,tbody tr.who{margin:0 .9rem .6rem;padding:0 0 0 .7rem;border-left:3px solid var(--track)}
tbody tr.deep{margin-left:1.7rem;border-left-color:var(--bar)}
tr.who .method{display:inline}
td.empty{display:none!important}
header .age{margin-left:0}
}
"""
