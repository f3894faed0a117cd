// The sheet of keys, shown by `?`.

const EVERYWHERE: [string, string][] = [
  ["?", "this sheet"],
  ["/", "search"],
  ["Tab, Enter", "next control, open it"],
  ["Esc", "close what is open"],
];

/** Keys that a panel has besides; a panel with keys adds them here. */
export const KEYS: Record<string, [string, string][]> = {};

export function Keys(props: { panel: string; onClose: () => void }) {
  const own = KEYS[props.panel] ?? [];
  return (
    <div class="sheet" role="dialog" aria-modal="true" aria-label="Keys" onClick={props.onClose}>
      <table onClick={(event) => event.stopPropagation()}>
        <caption>Keys</caption>
        <tbody>
          {[...own, ...EVERYWHERE].map(([key, does]) => (
            <tr key={key}>
              <th scope="row"><kbd>{key}</kbd></th>
              <td>{does}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
