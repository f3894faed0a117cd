// The dialog of keyboard shortcuts.

import { useEffect, useRef } from "preact/hooks";

/** Keys, those that do the same with ", " between them, and what they do. */
export type KeyLine = [keys: string, does: string];

const EVERYWHERE: readonly KeyLine[] = [
  ["Ctrl+K", "search and commands: panels, names, steps, traces"],
  ["g", "then a letter: another panel, as below"],
  ["Alt+←, Alt+→", "back, forward"],
  ["/", "search"],
  ["Tab, Enter", "next control, open it"],
  ["Esc", "close what is open"],
  ["?", "this sheet"],
];

/** Keys that a panel has besides; a panel with keys adds them here. */
export const KEYS: Record<string, KeyLine[]> = {};

/** Whether a key event belongs to a text field or the browser. */
export function isTyping(event: KeyboardEvent): boolean {
  const target = event.target as HTMLElement | null;
  return target !== null && /^(?:INPUT|TEXTAREA|SELECT)$/.test(target.tagName);
}

interface Props {
  panel: string;
  title: string;
  /** The letter of each panel, and the panel's title. */
  letters: readonly KeyLine[];
  onClose: () => void;
}

export function Keys(props: Props) {
  const dialog = useRef<HTMLDialogElement>(null);
  useEffect(() => dialog.current?.showModal(), []);
  const own = KEYS[props.panel] ?? [];
  const closeOutside = (event: MouseEvent) => {
    if (event.target === dialog.current) dialog.current?.close();
  };
  return (
    <dialog
      ref={dialog}
      class="sheet"
      aria-label="Keys"
      onClose={props.onClose}
      onClick={closeOutside}
    >
      <form method="dialog">
        <button type="submit">Close</button>
      </form>
      <div class="sheet-columns">
        {own.length > 0 && <KeyTable title={props.title} lines={own} />}
        <div>
          <KeyTable title="Everywhere" lines={EVERYWHERE} />
          <h2>Panels, after <kbd>g</kbd></h2>
          <ul class="sheet-letters">
            {props.letters.map(([letter, title]) => (
              <li key={letter}>
                <kbd>{letter}</kbd> {title}
              </li>
            ))}
          </ul>
        </div>
      </div>
    </dialog>
  );
}

function KeyTable(props: { title: string; lines: readonly KeyLine[] }) {
  return (
    <table>
      <caption>{props.title}</caption>
      <tbody>
        {props.lines.map(([keys, does]) => (
          <tr key={keys}>
            <th scope="row">
              {keys.split(", ").map((key) => (
                <kbd key={key}>{key}</kbd>
              ))}
            </th>
            <td>{does}</td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}
