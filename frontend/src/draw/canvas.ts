// A canvas that is as sharp as the screen.

/** Gives the canvas the size of its box; true if it changed. The context then draws CSS pixels. */
export function fitted(canvas: HTMLCanvasElement, width: number, height: number): boolean {
  const ratio = devicePixelRatio || 1;
  const [wide, high] = [Math.round(width * ratio), Math.round(height * ratio)];
  const changed = canvas.width !== wide || canvas.height !== high;
  if (changed) {
    canvas.width = wide;
    canvas.height = high;
  }
  canvas.getContext("2d", { alpha: false })?.setTransform(ratio, 0, 0, ratio, 0, 0);
  return changed;
}
