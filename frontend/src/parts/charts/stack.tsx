// Parts of a whole as one bar, each with its name and number below.

import "./stack.css";

export interface StackPart {
  label: string;
  /** The variable of style.css. */
  colour: string;
  size: number;
  /** The value as text. */
  text: string;
  /** The tooltip. */
  doc?: string | undefined;
  href?: string | undefined;
}

export function Stack(props: { parts: readonly StackPart[]; label: string; height?: number; legend?: boolean }) {
  const { parts, label, height = 18, legend = true } = props;
  const whole = parts.reduce((sum, part) => sum + part.size, 0);
  if (whole <= 0) return null;
  const said = parts.map((part) => `${part.label} ${part.text}`).join(", ");
  return (
    <div class="stack">
      <div class="stack-bar" role="img" aria-label={`${label}: ${said}`} style={{ height: `${height}px` }}>
        {parts.map((part) => (
          <span
            key={part.label}
            title={[`${part.label}: ${part.text}`, part.doc].filter(Boolean).join("\n")}
            style={{ flexGrow: part.size / whole, background: `var(--${part.colour})` }}
          />
        ))}
      </div>
      {legend && (
        <ul class="stack-legend">
          {parts.map((part) => (
            <li key={part.label} title={part.doc}>
              <Swatch colour={part.colour} />
              {part.href === undefined ? part.label : <a href={part.href}>{part.label}</a>}{" "}
              <span class="muted">{part.text}</span>
            </li>
          ))}
        </ul>
      )}
    </div>
  );
}

export function Swatch(props: { colour: string }) {
  return <span class="swatch" style={{ background: `var(--${props.colour})` }} aria-hidden="true" />;
}
