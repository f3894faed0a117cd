// A flame graph of memory: a sentence, what is pointed at or in focus, and the boxes.

import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";
import type { Box, Tree } from "../../draw/tree.ts";
import type { IcicleProps } from "../../parts/trees/icicle.tsx";
import { Icicle } from "../../parts/trees/icicle.tsx";
import { nodeInAddress } from "../../parts/trees/treerows.ts";
import { change } from "../../route.ts";
import type { PanelProps } from "../panel.ts";

interface FocusedIcicleProps {
  tree: Tree;
  params: PanelProps["params"];
  title: string;
  look: Pick<IcicleProps, "colour" | "strength" | "hatched" | "label" | "linked">;
  describe: (node: number) => string;
  hits: ReadonlySet<number> | null;
  summary: ComponentChildren;
  find?: ComponentChildren;
  /** The details of a node; -1 for none. */
  details: (node: number) => ComponentChildren;
}

export function FocusedIcicle(props: FocusedIcicleProps) {
  const { tree, params } = props;
  const [hover, setHover] = useState<Box | null>(null);
  const focus = nodeInAddress(params["focus"], tree);
  const focusOn = (node: number) => change({ focus: node < 0 ? undefined : String(node) }, { replace: false });
  const shown = hover?.node ?? focus;
  return (
    <>
      <div class="memory-summary">
        {props.summary}
        {focus >= 0 && <button type="button" onClick={() => focusOn(-1)}>show all</button>}
        {props.find}
      </div>
      {shown < 0
        ? <p class="memory-node muted">Point at a box for its bytes; a click focuses it.</p>
        : props.details(shown)}
      <Icicle
        {...props.look}
        tree={tree}
        describe={props.describe}
        focus={focus}
        cursor={focus}
        hits={props.hits}
        title={props.title}
        onHover={setHover}
        onChoose={focusOn}
        onPress={focusOn}
        onFocus={focusOn}
      />
    </>
  );
}
