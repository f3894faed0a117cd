// Keeps the page alive if a panel fails.

import { Component, type ComponentChildren } from "preact";
import { Empty } from "../parts/data/asking.tsx";
import { plain } from "../parts/text/plain.ts";

interface Props {
  title: string;
  children: ComponentChildren;
}

export class Boundary extends Component<Props, { failed: Error | null }> {
  override state: { failed: Error | null } = { failed: null };

  static override getDerivedStateFromError(failed: Error): { failed: Error } {
    return { failed };
  }

  override componentDidCatch(failed: Error): void {
    console.error(failed);
  }

  override render() {
    const { failed } = this.state;
    if (failed === null) return this.props.children;
    return (
      <div class="failed">
        <Empty title={`${this.props.title} failed`} text={plain(failed.message || String(failed))}>
          <p>Other panels still work. This is a fault of selftime: please report it.</p>
          <button type="button" onClick={() => this.setState({ failed: null })}>Try again</button>
        </Empty>
      </div>
    );
  }
}
