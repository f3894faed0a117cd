// A rule's documentation in a dialog; its name is in the URL.

import "./rule.css";
import type { ComponentChildren } from "preact";
import { useEffect, useRef } from "preact/hooks";
import type { Data } from "../../data/api.ts";
import { QueryResult, useQuery } from "../../parts/data/asking.tsx";
import { Markdown } from "../../parts/text/markdown.tsx";
import { change, current, formatRoute } from "../../route.ts";

export function RuleLink(props: { rule: string; children?: ComponentChildren }) {
  const { panel, params } = current();
  const href = formatRoute({ panel, params: { ...params, rule: props.rule } });
  return <a href={href} class={props.children ? undefined : "mono"}>{props.children ?? props.rule}</a>;
}

export function RuleSheet(props: { data: Data; rule: string }) {
  const { data, rule } = props;
  const asked = useQuery(() => data.rule(rule), rule);
  const dialog = useRef<HTMLDialogElement>(null);
  const close = () => change({ rule: undefined });
  useEffect(() => {
    const shown = dialog.current;
    const before = document.activeElement;
    if (shown !== null && !shown.open) shown.showModal();
    return () => {
      if (before instanceof HTMLElement && before.isConnected) before.focus();
    };
  }, []);
  const onClick = (event: MouseEvent) => event.target === dialog.current && close();
  return (
    <dialog ref={dialog} class="rule-sheet" aria-label={`The rule ${rule}`} onClose={close} onClick={onClick}>
      <div class="rule-page" tabIndex={-1} autofocus>
        <button type="button" class="quiet rule-close" title="Close (Esc)" aria-label="Close" onClick={close}>✕</button>
        <QueryResult asked={asked} what="the page">{(text) => <Markdown text={text} />}</QueryResult>
      </div>
    </dialog>
  );
}
