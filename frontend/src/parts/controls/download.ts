// Saves a text as a file, without a server.

export function download(name: string, type: string, text: string): void {
  const url = URL.createObjectURL(new Blob([text], { type }));
  const anchor = document.createElement("a");
  anchor.href = url;
  anchor.download = name;
  anchor.click();
  // Firefox reads the address after the click; a moment later nobody does.
  setTimeout(() => URL.revokeObjectURL(url), 10_000);
}
