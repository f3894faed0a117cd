// Draws slices of one or two pixels: pixels of each lane are collected and drawn as one image, since
// tens of thousands of rectangles would take too long.

export class NarrowSlices {
  readonly #canvas = document.createElement("canvas");
  readonly #places: { y: number; height: number }[] = [];
  #pixels = new Uint32Array();
  #width = 0;
  #ratio = 1;

  /** Begins a frame of the given width in CSS pixels. */
  begin(width: number, ratio: number): void {
    this.#width = Math.ceil(width * ratio);
    this.#ratio = ratio;
    this.#places.length = 0;
    this.#pixels.fill(0);
  }

  /** Adds a row of pixels at `y`, and returns its index. */
  row(y: number, height: number): number {
    this.#places.push({ y, height });
    const needed = this.#places.length * this.#width;
    if (this.#pixels.length < needed) {
      const more = new Uint32Array(needed * 2);
      more.set(this.#pixels);
      this.#pixels = more;
    }
    return this.#places.length - 1;
  }

  /** Paints the pixels from `left` to before `right`, in CSS pixels. */
  paint(row: number, left: number, right: number, colour: number): void {
    const first = Math.max(Math.round(left * this.#ratio), 0);
    const last = Math.min(Math.round(right * this.#ratio), this.#width);
    const start = row * this.#width;
    for (let at = first; at < last; at++) this.#pixels[start + at] = colour;
  }

  /** Puts all rows on a canvas whose context draws CSS pixels. */
  put(context: CanvasRenderingContext2D): void {
    const count = this.#places.length;
    if (count === 0 || this.#width === 0) return;
    if (this.#canvas.width !== this.#width || this.#canvas.height < count) {
      this.#canvas.width = this.#width;
      this.#canvas.height = count;
    }
    const bytes = new Uint8ClampedArray(this.#pixels.buffer as ArrayBuffer, 0, count * this.#width * 4);
    this.#canvas.getContext("2d")?.putImageData(new ImageData(bytes, this.#width, count), 0, 0);
    context.imageSmoothingEnabled = false;
    const wide = this.#width / this.#ratio;
    for (const [row, { y, height }] of this.#places.entries()) {
      context.drawImage(this.#canvas, 0, row, this.#width, 1, 0, y, wide, height);
    }
  }
}
