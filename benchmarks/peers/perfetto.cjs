// Loads a trace into Perfetto's trace processor (the WebAssembly build that its viewer runs) and
// asks it a few questions; prints what took how long as JSON.
//
//     node perfetto.cjs FOLDER TRACE
//     node perfetto.cjs FOLDER TRACE SQL...    answers these instead: a list of rows for each
//
// FOLDER holds the viewer's `engine_bundle.js` and its .wasm files. The bundle is a web worker: it
// gets here what it takes from a browser, and is spoken to in its own messages, the protocol buffers
// of `trace_processor.proto`.
"use strict";

const fs = require("node:fs");
const path = require("node:path");
const vm = require("node:vm");
const zlib = require("node:zlib");

const [folder, trace, ...own] = process.argv.slice(2);
const CHUNK = 32 * 1024 * 1024;
const QUESTIONS = {
  slices: "select count(*), sum(dur), max(depth) from slice",
  names: "select name, count(*), sum(dur) from slice group by name order by 3 desc",
  tracks: "select track_id, count(*), sum(dur) from slice group by track_id",
  lost: "select coalesce(sum(value), 0) from stats where severity in ('error', 'data_loss')",
};

const [APPEND, FINALIZE, QUERY] = [1, 2, 3];
const [ERROR, APPEND_DATA, QUERY_ARGS, APPENDED, ANSWERED] = [5, 101, 103, 201, 203];
const TABLE_ERROR = 2;
const TABLE_BATCH = 3;
const [CELLS, INTEGERS, FLOATS, TEXTS] = [1, 2, 3, 5];
const COLUMN = 1;
const [NULL, INTEGER, FLOAT, TEXT] = [1, 2, 3, 4];

function varint(value) {
  const bytes = [];
  for (; value > 127; value = Math.floor(value / 128)) bytes.push((value % 128) + 128);
  return Buffer.from([...bytes, value]);
}

function field(number, content) {
  return Buffer.concat([varint(number * 8 + 2), varint(content.length), content]);
}

function whole(number, value) {
  return Buffer.concat([varint(number * 8), varint(value)]);
}

function* fields(bytes) {
  let at = 0;
  const next = () => {
    for (let value = 0, factor = 1; ; factor *= 128) {
      const byte = bytes[at++];
      value += (byte & 127) * factor;
      if (byte < 128) return value;
    }
  };
  while (at < bytes.length) {
    const tag = next();
    if (tag % 8 === 0) yield [Math.floor(tag / 8), next()];
    else if (tag % 8 === 2) {
      const size = next();
      yield [Math.floor(tag / 8), bytes.subarray(at, (at += size))];
    } else throw new Error(`a field of an unknown wire type ${tag % 8}`);
  }
}

function found(bytes, number) {
  return [...fields(bytes)].filter(([one]) => one === number).map(([, value]) => value);
}

// What came back of the last message; the engine answers within the call.
let replies = [];
let asked = 0;
const port = { postMessage: (data) => replies.push(Buffer.from(data)) };

function ask(request, ...args) {
  replies = [];
  const message = Buffer.concat([whole(1, asked++), whole(2, request), ...args]);
  port.onmessage({ data: new Uint8Array(field(1, message)) });
  const answers = found(Buffer.concat(replies), 1);
  for (const answer of answers) {
    for (const why of found(answer, ERROR)) throw new Error(why.toString());
    for (const one of found(answer, APPENDED)) {
      for (const why of found(one, TABLE_ERROR)) throw new Error(why.toString());
    }
  }
  return answers;
}

function query(sql) {
  const args = field(QUERY_ARGS, field(1, Buffer.from(sql)));
  let cells = 0;
  const integers = [];
  for (const answer of ask(QUERY, args)) {
    for (const table of found(answer, ANSWERED)) {
      for (const why of found(table, TABLE_ERROR)) throw new Error(`${sql}: ${why}`);
      for (const batch of found(table, TABLE_BATCH)) {
        for (const types of found(batch, CELLS)) cells += types.length;
        for (const packed of found(batch, INTEGERS)) integers.push(...varints(packed));
      }
    }
  }
  return { cells, integers };
}

function varints(packed) {
  const values = [];
  let value = 0;
  let factor = 1;
  for (const byte of packed) {
    value += (byte & 127) * factor;
    factor *= 128;
    if (byte < 128) {
      values.push(value);
      [value, factor] = [0, 1];
    }
  }
  return values;
}

// The rows of an answer. Integers are exact: those beyond what a double holds are texts.
function table(sql) {
  const rows = [];
  let columns = [];
  for (const answer of ask(QUERY, field(QUERY_ARGS, field(1, Buffer.from(sql))))) {
    for (const one of found(answer, ANSWERED)) {
      for (const why of found(one, TABLE_ERROR)) throw new Error(`${sql}: ${why}`);
      columns = [...columns, ...found(one, COLUMN)];
      for (const batch of found(one, TABLE_BATCH)) rows.push(...cells(batch, columns.length));
    }
  }
  return rows;
}

function cells(batch, width) {
  const integers = found(batch, INTEGERS).flatMap((packed) => [...signed(packed)]);
  const floats = found(batch, FLOATS).flatMap((packed) =>
    Array.from({ length: packed.length / 8 }, (_, at) => packed.readDoubleLE(at * 8)),
  );
  const texts = found(batch, TEXTS).flatMap((text) => text.toString().split("\0").slice(0, -1));
  const read = {
    [NULL]: () => null,
    [INTEGER]: () => integers.shift(),
    [FLOAT]: () => floats.shift(),
    [TEXT]: () => texts.shift(),
  };
  const values = found(batch, CELLS).flatMap((kinds) => [...kinds].map((kind) => read[kind]()));
  return Array.from({ length: values.length / width }, (_, at) =>
    values.slice(at * width, (at + 1) * width),
  );
}

function* signed(packed) {
  let value = 0n;
  let shift = 0n;
  for (const byte of packed) {
    value |= BigInt(byte & 127) << shift;
    shift += 7n;
    if (byte < 128) {
      const whole = BigInt.asIntN(64, value);
      yield Number.isSafeInteger(Number(whole)) ? Number(whole) : String(whole);
      [value, shift] = [0n, 0n];
    }
  }
}

// The bundle reads its .wasm as a worker does: at once, by XMLHttpRequest. It refuses to run in Node,
// but not in a program that has a page in it.
async function engine() {
  process.type = "renderer";
  globalThis.WorkerGlobalScope = Object;
  globalThis.self = globalThis;
  globalThis.location = { href: `file://${folder}/` };
  globalThis.importScripts = () => undefined;
  globalThis.XMLHttpRequest = class {
    open(_, name) {
      this.name = path.basename(name);
    }
    send() {
      this.status = 200;
      this.response = new Uint8Array(fs.readFileSync(path.join(folder, this.name))).buffer;
    }
  };
  vm.runInThisContext(fs.readFileSync(path.join(folder, "engine_bundle.js"), "utf8"));
  globalThis.onmessage({ data: port });
  await new Promise(setImmediate); // it is ready in the turn after
}

function load() {
  const file = fs.openSync(trace, "r");
  const buffer = Buffer.alloc(CHUNK);
  for (let size; (size = fs.readSync(file, buffer, 0, CHUNK, null)) > 0; ) {
    ask(APPEND, field(APPEND_DATA, buffer.subarray(0, size)));
  }
  fs.closeSync(file);
  ask(FINALIZE);
}

function timed(act) {
  const begin = process.hrtime.bigint();
  const value = act();
  return [value, Number(process.hrtime.bigint() - begin) / 1e9];
}

async function main() {
  await engine();
  const [, loaded] = timed(load);
  if (own.length) {
    console.log(JSON.stringify(own.map(table)));
    return;
  }
  const [answers, answered] = timed(() =>
    Object.fromEntries(Object.entries(QUESTIONS).map(([name, sql]) => [name, query(sql)])),
  );
  const [events] = answers.slices.integers;
  const [lost] = answers.lost.integers;
  const told = { load_s: loaded, answers_s: answered, events, rows: answers.names.cells / 3, lost };
  console.log(JSON.stringify(told));
}

main().catch((error) => {
  console.error(String(error.message).split("\n")[0]);
  process.exit(1);
});
