// The sign of each verdict on the health of a trace, beside the word.

export const HEALTH_MARKS: Readonly<Record<string, string>> = { good: "✓", degraded: "!", unusable: "✕" };
