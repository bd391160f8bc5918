// What can be folded. The reader's own choice wins over what the page would do, and is kept.

const KEY = "podgpu-folds";

function kept() {
  try {
    return JSON.parse(localStorage.getItem(KEY)) ?? {};
  } catch {
    return {}; // Without storage a choice lasts as long as the page.
  }
}

export class Fold {
  constructor(name) {
    this.name = name;
    this.chosen = kept()[name];
  }

  /** `byDefault` counts while the reader has not chosen. */
  isOpen(byDefault) {
    return this.chosen ?? byDefault;
  }

  choose(isOpen) {
    this.chosen = isOpen;
    try {
      localStorage.setItem(KEY, JSON.stringify({ ...kept(), [this.name]: isOpen }));
    } catch {
      // As above.
    }
  }
}
