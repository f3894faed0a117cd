"""What of a page is in the way of what: texts and controls that overlap, or leave the window."""

from typing import Final

from playwright.sync_api import Page

AMISS: Final = """() => {
  const LEAST = 3;  // pixels that two boxes share before it can be seen
  const isShown = (element) => {
    const seen = { opacityProperty: true, visibilityProperty: true };
    if (!element.checkVisibility(seen)) return false;
    return element.closest(".visually-hidden, .skip, [inert]") === null;
  };
  const clips = (style) => style.overflowX !== "visible" || style.overflowY !== "visible";
  // What of a box its ancestors let through, the layer that it is in, and whether it scrolls.
  const placed = (element, box, what) => {
    let { left, top, right, bottom } = box;
    let layer = null;
    let scrolls = false;
    for (let at = element; at !== null && at !== document.body; at = at.parentElement) {
      const style = getComputedStyle(at);
      if ((at !== element || what === "text") && clips(style)) {
        const frame = at.getBoundingClientRect();
        [left, right] = [Math.max(left, frame.left), Math.min(right, frame.right)];
        [top, bottom] = [Math.max(top, frame.top), Math.min(bottom, frame.bottom)];
        scrolls ||= at.scrollWidth > at.clientWidth + 1 && at.tagName !== "MAIN";
      }
      const floats = ["sticky", "fixed"].includes(style.position) || style.zIndex !== "auto";
      if (layer === null && floats) layer = at;
    }
    const cut = Math.max(left - box.left, box.right - right);
    return { left, top, right, bottom, layer, scrolls, cut };
  };
  const found = [];
  const add = (element, box, words, what) => {
    const at = placed(element, box, what);
    if (at.right - at.left < 1 || at.bottom - at.top < 1) return;
    const told = words.trim().replace(/\\s+/g, " ").slice(0, 60);
    found.push({ element, words: told, what, ...at });
  };
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  for (let node = walker.nextNode(); node !== null; node = walker.nextNode()) {
    const element = node.parentElement;
    if (node.data.trim() === "" || !isShown(element)) continue;
    if (["SCRIPT", "STYLE", "OPTION"].includes(element.tagName)) continue;
    const range = document.createRange();
    range.selectNodeContents(node);
    for (const box of range.getClientRects()) add(element, box, node.data, "text");
  }
  for (const element of document.querySelectorAll("button, input, select, textarea")) {
    if (!isShown(element)) continue;
    const words = element.ariaLabel ?? element.innerText ?? "";
    add(element, element.getBoundingClientRect(), words, "control");
  }
  const told = ({ what, words, element }) => {
    return `${what} "${words}" in ${element.tagName} ${element.getAttribute("class") ?? ""}`;
  };
  const beyond = found
    .filter((one) => !one.scrolls && (one.right > innerWidth + 1 || one.left < -1))
    .map((one) => `beyond the window: ${told(one)}`);
  const main = document.querySelector("main");
  const wider = main.scrollWidth - main.clientWidth;
  if (wider > 1) beyond.push(`main scrolls sideways by ${wider} px`);
  const overlaps = [];
  const sorted = found.toSorted((one, other) => one.top - other.top);
  sorted.forEach((one, at) => {
    for (const other of sorted.slice(at + 1)) {
      if (other.top >= one.bottom - LEAST) break;
      if (one.layer !== other.layer) continue;
      const [outer, inner] = [one.element, other.element];
      if (outer.contains(inner) || inner.contains(outer)) continue;
      const wide = Math.min(one.right, other.right) - Math.max(one.left, other.left);
      const high = Math.min(one.bottom, other.bottom) - Math.max(one.top, other.top);
      if (wide > LEAST && high > LEAST) overlaps.push(`overlap: ${told(one)} and ${told(other)}`);
    }
  });
  return [...new Set([...beyond, ...overlaps])];
}"""
"""A box of text that another box of text or a control covers is amiss unless one of both floats."""

TEXTS: Final = """() => {
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_ELEMENT);
  const texts = [];
  for (let element = walker.nextNode(); element !== null; element = walker.nextNode()) {
    if (element.closest("script, style, pre, code") !== null) continue;
    const nodes = [...element.childNodes].filter((node) => node.nodeType === 3);
    const hasWords = nodes.some((node) => node.data.trim() !== "");
    if (hasWords && element.checkVisibility()) texts.push(element.textContent);
  }
  return [...new Set(texts)];
}"""


def amiss(page: Page) -> list[str]:
    """Sentences on what overlaps or leaves the window of a page."""
    found: list[str] = page.evaluate(AMISS)
    return found


def texts(page: Page) -> list[str]:
    """What the elements of a page say that have words of their own, but for code."""
    found: list[str] = page.evaluate(TEXTS)
    return found
