// The recording at a glance.

import "./style.css";
import type { Panel } from "../panel.ts";
import { OverviewPanel } from "./overview.tsx";

export const overview: Panel = {
  name: "overview",
  title: "Overview",
  group: "answer",
  component: OverviewPanel,
};
