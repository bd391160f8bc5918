// Texts that hold a digit and are not wholly shown: cut by a box that hides what is too much, ended by an ellipsis, or outside of the page.
// Lines are measured where they are laid out, which an ellipsis, a clamp and a clip do not change.
(() => {
  const found = new Set();
  const isHidden = (overflow) => overflow === 'hidden' || overflow === 'clip';
  const name = (e) => `${e.tagName.toLowerCase()}.${String(e.className).trim().replaceAll(' ', '.')}`;
  const cutBy = (box, e) => {
    for (let up = e; up && up !== document.documentElement; up = up.parentElement) {
      const style = getComputedStyle(up);
      const edge = up.getBoundingClientRect();
      // An ellipsis stands where the padding begins.
      const room = { left: edge.left, right: edge.right - (style.textOverflow === 'ellipsis' ? parseFloat(style.paddingRight) : 0), top: edge.top, bottom: edge.bottom };
      if (style.overflowX === 'auto' || style.overflowX === 'scroll') return ''; // it can be scrolled to
      if (style.display === 'inline') continue;
      if (isHidden(style.overflowX) && (box.right > room.right + 1 || box.left < room.left - 1)) return name(up);
      if (isHidden(style.overflowY) && (box.bottom > room.bottom + 3 || box.top < room.top - 3)) return name(up);
      if (up.classList.contains('item') && box.bottom > room.bottom + 2) return `${name(up)}, which is lower`;
    }
    return box.left < -1 || box.right > document.documentElement.clientWidth + 1 ? 'the page' : '';
  };
  const walker = document.createTreeWalker(document.querySelector('#app'), NodeFilter.SHOW_TEXT);
  for (let node; (node = walker.nextNode());) {
    const e = node.parentElement;
    // What is only spoken, and what the browser itself draws, is not seen as text. Advice is folded to a line, with a button that shows all of it.
    if (!/\d/.test(node.data) || e.closest('.spoken, .skip, select, svg, script, .alert.cut .next') || !e.checkVisibility({ visibilityProperty: true })) continue;
    const range = document.createRange();
    range.selectNodeContents(node);
    for (const box of range.getClientRects()) {
      const by = box.width > 0 && cutBy(box, e);
      if (by) found.add(`"${node.data.trim()}" in ${name(e)} is cut by ${by}`);
    }
  }
  return [...found];
})()
