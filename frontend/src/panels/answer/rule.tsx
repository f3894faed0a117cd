// A rule's page, over the answer: the address names it, so that it can be sent.

import "./rule.css";
import type { ComponentChildren } from "preact";
import { useEffect, useRef } from "preact/hooks";
import type { Data } from "../../api.ts";
import { Answered, useAsked } from "../../parts/asking.tsx";
import { Markdown } from "../../parts/markdown.tsx";
import { change, current, write } from "../../route.ts";

export function RuleLink(props: { rule: string; children?: ComponentChildren }) {
  const { panel, params } = current();
  const href = write({ panel, params: { ...params, rule: props.rule } });
  return <a href={href} class={props.children ? undefined : "mono"}>{props.children ?? props.rule}</a>;
}

export function RuleSheet(props: { data: Data; rule: string }) {
  const { data, rule } = props;
  const asked = useAsked(() => data.rule(rule), rule);
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
        <Answered asked={asked} what="the page">{(text) => <Markdown text={text} />}</Answered>
      </div>
    </dialog>
  );
}
