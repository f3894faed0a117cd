// Opens a line in the reader's editor; which one is chosen once and remembered.

import "./editor-link.css";
import { useEffect, useState } from "preact/hooks";
import { store, stored } from "../controls/stored.ts";
import { EDITOR_NAMES, EDITORS, editorAddress, parseSetting, type Editor, type EditorSetting } from "./editor.ts";

const PLACE = "editor";
/** Tells all links on the page that another editor was chosen. */
const CHANGED = "selftime-editor";

let chosen: EditorSetting | null = null;

function useEditor(): EditorSetting {
  const [setting, set] = useState(() => (chosen ??= parseSetting(stored(PLACE))));
  useEffect(() => {
    const follow = () => chosen !== null && set(chosen);
    addEventListener(CHANGED, follow);
    return () => removeEventListener(CHANGED, follow);
  }, []);
  return setting;
}

function choose(setting: EditorSetting): void {
  chosen = setting;
  store(PLACE, JSON.stringify(setting));
  dispatchEvent(new Event(CHANGED));
}

/** A link to a line in the chosen editor; nothing if none is chosen, or if it has none for this file. */
export function EditorLink(props: { file: string; line: number }) {
  const setting = useEditor();
  const address = editorAddress(setting, props.file, props.line);
  if (address === null) return null;
  const name = setting.editor === "own" ? "Open" : `Open in ${EDITOR_NAMES[setting.editor]}`;
  return <a class="editor-link" href={address} rel="noreferrer" aria-label={`${name}: ${props.file}, line ${props.line}`}>{name}</a>;
}

/** Where a reader says which editor it is. */
export function EditorChoice() {
  const setting = useEditor();
  const { editor, pattern, folder } = setting;
  return (
    <span class="editor-choice">
      <label>
        Lines open in{" "}
        <select value={editor} onChange={(event) => choose({ ...setting, editor: event.currentTarget.value as Editor })}>
          {EDITORS.map((one) => <option key={one} value={one}>{EDITOR_NAMES[one]}</option>)}
        </select>
      </label>
      {editor === "own" && (
        <>
          <label>
            Address{" "}
            <input
              value={pattern}
              size={36}
              spellcheck={false}
              placeholder="https://…/blob/COMMIT/{path}#L{line}"
              title="{file} is the file's path, {path} its path below the folder, {line} the line's number"
              onChange={(event) => choose({ ...setting, pattern: event.currentTarget.value })}
            />
          </label>
          <label>
            below the folder{" "}
            <input
              value={folder}
              size={24}
              spellcheck={false}
              placeholder="the folder of the project"
              onChange={(event) => choose({ ...setting, folder: event.currentTarget.value })}
            />
          </label>
        </>
      )}
    </span>
  );
}
