// Every step as a bar, and the same as a table.

import "./style.css";
import type { Panel } from "../panel.ts";
import { StepsPanel } from "./steps.tsx";

export const steps: Panel = {
  name: "steps",
  title: "Steps",
  group: "time",
  component: StepsPanel,
};
