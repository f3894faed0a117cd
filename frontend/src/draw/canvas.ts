// Canvases with the screen's resolution; their contexts draw in CSS pixels.

interface Size {
  width: number;
  height: number;
}

/** Resizes an opaque canvas to its size on the screen; returns whether it changed. */
export function fitCanvas(canvas: HTMLCanvasElement, width: number, height: number): boolean {
  const changed = resize(canvas, { width, height });
  scaled(canvas.getContext("2d", { alpha: false }));
  return changed;
}

/** Resizes a transparent canvas to its size on the screen, and returns its context. */
export function prepareCanvas(canvas: HTMLCanvasElement, size: Size): CanvasRenderingContext2D | null {
  resize(canvas, size);
  return scaled(canvas.getContext("2d"));
}

/** To set a size clears the canvas, even if the size stays the same. */
function resize(canvas: HTMLCanvasElement, size: Size): boolean {
  const ratio = devicePixelRatio || 1;
  const [width, height] = [Math.round(size.width * ratio), Math.round(size.height * ratio)];
  if (canvas.width === width && canvas.height === height) return false;
  canvas.width = width;
  canvas.height = height;
  return true;
}

function scaled(context: CanvasRenderingContext2D | null): CanvasRenderingContext2D | null {
  const ratio = devicePixelRatio || 1;
  context?.setTransform(ratio, 0, 0, ratio, 0, 0);
  return context;
}
