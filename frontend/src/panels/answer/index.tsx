// The panel of the advice: what to change, on which line, with confidence and saving.

import "./style.css";
import { KEYS } from "../../parts/controls/keys.tsx";
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
