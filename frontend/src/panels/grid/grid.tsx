// The table of one view.

import { Answered, useAsked } from "../../parts/asking.tsx";
import type { PanelProps } from "../panel.ts";

export function Grid(props: PanelProps & { view: string }) {
  const { data, trace, view } = props;
  const asked = useAsked(() => data.page(trace.id, view, {}, {}), `${trace.id} ${view}`);
  return <Answered asked={asked}>{(page) => <p>{page.total} rows</p>}</Answered>;
}
