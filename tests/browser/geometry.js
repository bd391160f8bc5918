// Texts are measured where they are drawn, less what their boxes cut off. A text that is cut must be in a title, or in the name that pointing at it shows.
(() => {
  const found = [], seen = [], name = e => `${e.tagName}.${e.className} "${e.textContent.trim().slice(0, 40)}"`;
  const over = (a, b) => Math.min(a.right, b.right) - Math.max(a.left, b.left) > 1.5 && Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top) > 2.5;
  const clip = (box, by) => ({ left: Math.max(box.left, by.left), right: Math.min(box.right, by.right), top: Math.max(box.top, by.top), bottom: Math.min(box.bottom, by.bottom) });
  const wide = document.documentElement.scrollWidth - innerWidth;
  if (wide > 0) found.push(`${wide} px too wide`);
  const items = [...document.querySelectorAll('.item')].filter(e => e.checkVisibility()).map(e => [e, e.getBoundingClientRect()]);
  items.sort((a, b) => a[1].top - b[1].top);
  items.forEach(([e, box], at) => {
    if (at && items[at - 1][1].bottom > box.top + 0.6) found.push(`${name(e)} over ${name(items[at - 1][0])}`);
  });
  const walker = document.createTreeWalker(document.querySelector('#app'), NodeFilter.SHOW_TEXT);
  texts: for (let node; (node = walker.nextNode());) {
    const e = node.parentElement;
    if (!node.data.trim() || e.closest('.spoken, .skip, select, svg, [aria-hidden=true]:not(.heads):not(.heads *)') || !e.checkVisibility({ visibilityProperty: true })) continue;
    const range = document.createRange();
    range.selectNodeContents(node);
    for (const whole of range.getClientRects()) {
      let box = whole, isCut = false, isScrolled = false;
      for (let up = e; up && up.id !== 'app'; up = up.parentElement) {
        const style = getComputedStyle(up);
        if (style.clipPath !== 'none') continue texts;
        if (style.overflowX === 'visible') continue;
        const room = up.getBoundingClientRect();
        isScrolled ||= style.overflowX === 'auto';
        if (!isScrolled && (whole.right > room.right + 1 || whole.bottom > room.bottom + 3)) isCut = true;
        box = clip(box, room);
      }
      if (isCut && !e.closest('[title]:not([title=""]), [data-tip]:not([data-tip=""])')) found.push(`${name(e)} is cut without a title`);
      const item = e.closest('.item');
      if (item && box.bottom > item.getBoundingClientRect().bottom + 1) found.push(`${name(e)} leaves its row`);
      if (box.right > box.left && box.bottom > box.top) {
        for (const [other, there] of seen) if (other !== e && over(box, there)) found.push(`${name(e)} over ${name(other)}`);
        seen.push([e, box]);
      }
    }
  }
  return [...new Set(found)].slice(0, 12);
})()
