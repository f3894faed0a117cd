import assert from "node:assert/strict";
import { test } from "node:test";
import { change, current, entry, followed, followUrl, formatRoute, go, parseRoute } from "./route.ts";

test("nothing in the address is no panel", () => {
  assert.deepEqual(parseRoute(""), { panel: "", params: {} });
  assert.deepEqual(parseRoute("#/"), { panel: "", params: {} });
});

test("what is written is read again", () => {
  const routes = [
    { panel: "operators", params: {} },
    { panel: "operators", params: { sort: "-count", find: "a&b=c?d#e %", where: '[{"column":"x"}]' } },
    { panel: "lines", params: { file: "/data/ü/<script>.py", line: "12" } },
  ];
  for (const route of routes) assert.deepEqual(parseRoute(formatRoute(route)), route);
});

test("a lone percent sign is read as it is", () => {
  assert.equal(parseRoute("#/50%").panel, "50%");
});

/** As in a browser: the event comes a turn after the URL has changed. */
function openedAt(start: string): { history: string[]; turn: () => Promise<void> } {
  const events = new EventTarget();
  const entries = [start];
  const set = (name: string, value: unknown) =>
    Object.defineProperty(globalThis, name, { value, configurable: true, writable: true });
  set("location", {
    get hash() {
      return entries.at(-1) ?? "";
    },
    set hash(hash: string) {
      entries.push(hash);
      setTimeout(() => events.dispatchEvent(new Event("hashchange")));
    },
    get href() {
      return `http://page/${entries.at(-1)}`;
    },
  });
  const replaceState = (_state: unknown, _title: string, url: string) => entries.splice(-1, 1, url.slice(url.indexOf("#")));
  set("history", { state: null, replaceState });
  set("document", new EventTarget());
  set("addEventListener", events.addEventListener.bind(events));
  followUrl();
  return { history: entries, turn: () => new Promise((done) => void setTimeout(done, 300)) };
}

test("of two changes in one turn none is lost, whichever adds to the history", async () => {
  const page = openedAt("#/flame?trace=a");
  change({ name: "mm" }, { replace: false });
  change({ by: "self" });
  assert.deepEqual(current().params, { trace: "a", name: "mm", by: "self" });
  await page.turn();
  assert.deepEqual(current().params, { trace: "a", name: "mm", by: "self" });
  change({ by: undefined });
  change({ name: undefined }, { replace: false });
  await page.turn();
  assert.deepEqual(page.history, ["#/flame?trace=a", "#/flame?trace=a&name=mm", "#/flame?trace=a"]);
});

test("what is changed on a panel that was just opened stays", async () => {
  const page = openedAt("#/flame?trace=a");
  go("operators");
  change({ sort: "-count" });
  await page.turn();
  assert.deepEqual(page.history, ["#/flame?trace=a", "#/operators?trace=a&sort=-count"]);
});

test("a change that is not written yet gives way to another address", async () => {
  const page = openedAt("#/flame?trace=a");
  change({ by: "self" });
  location.hash = "#/idle?trace=a";
  await page.turn();
  assert.deepEqual(current(), { panel: "idle", params: { trace: "a" } });
});

test("what is changed is written before another address is added", async () => {
  for (const leave of [() => go("operators"), () => followed("#/operators?trace=a")]) {
    const page = openedAt("#/flame?trace=a");
    change({ by: "self" });
    leave();
    await page.turn();
    assert.deepEqual(page.history, ["#/flame?trace=a&by=self", "#/operators?trace=a"]);
    followed("#/operators?trace=a"); // it is shown
    assert.equal(page.history.length, 2);
  }
});

test("a plain click on a link stays in a frame that has no address of its own", async () => {
  const page = openedAt("#/flame");
  const click = (baseURI: string, hash: string | null, more: object = {}) => {
    Object.assign(document, { baseURI, closest: () => hash && { getAttribute: () => hash } });
    const event = Object.assign(new Event("click", { cancelable: true }), { button: 0, ctrlKey: false, metaKey: false, shiftKey: false, ...more });
    document.dispatchEvent(event);
    return event.defaultPrevented;
  };
  assert.ok(click("http://outer/", "#/idle"));
  for (const more of [{ ctrlKey: true }, { metaKey: true }, { shiftKey: true }, { button: 1 }]) assert.ok(!click("http://outer/", "#/other", more));
  assert.ok(!click("http://outer/", null));
  assert.ok(!click("http://page/#/idle", "#/other"));
  await page.turn();
  assert.deepEqual(page.history, ["#/flame", "#/idle"]);
});

test("an entry of the history keeps its number", () => {
  openedAt("#/flame");
  const fresh = entry();
  assert.ok(fresh > 0);
  Object.assign(history, { state: { entry: fresh } });
  assert.equal(entry(), fresh);
  for (const state of [null, "entry", { entry: "1" }, {}]) {
    Object.assign(history, { state });
    assert.notEqual(entry(), fresh);
  }
});
