// The answer: what to change, on which line, how sure it is, and what it saves.

import "./style.css";
import { KEYS } from "../../parts/keys.tsx";
import type { Panel } from "../panel.ts";
import { AnswerPanel } from "./answer.tsx";

KEYS["answer"] = [
  ["↑ ↓", "previous, next finding"],
  ["Enter", "open or close a finding"],
];

export const answer: Panel = {
  name: "answer",
  title: "Answer",
  group: "answer",
  component: AnswerPanel,
};
