// Canvases with the screen's resolution.

/** Resizes the canvas to its box; returns whether it changed. The context draws in CSS pixels. */
export function fitCanvas(canvas: HTMLCanvasElement, width: number, height: number): boolean {
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
