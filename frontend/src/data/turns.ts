// Answers that take time to read are read one a frame, so that a picture that moves meanwhile stays smooth.

export class Turns {
  readonly #frame: () => Promise<void>;
  #last: Promise<void> = Promise.resolve();

  /** `frame` resolves after the next frame. */
  constructor(frame: () => Promise<void> = afterFrame) {
    this.#frame = frame;
  }

  /** Resolves when it is the turn of whoever asks: at once, unless another had its turn in this frame. */
  next(): Promise<void> {
    const turn = this.#last;
    this.#last = turn.then(this.#frame);
    return turn;
  }
}

/** A page that is hidden has no frames, and a program without a page neither. */
function afterFrame(): Promise<void> {
  if (globalThis.document?.hidden ?? true) return Promise.resolve();
  return new Promise((resolve) => {
    requestAnimationFrame(() => setTimeout(resolve)); // once the frame is drawn
    document.addEventListener("visibilitychange", () => resolve(), { once: true });
  });
}
