// A table as CSV, on the clipboard; where there is no clipboard, as a file.

const LABEL = "Copy as CSV";

function cell(value) {
  if (value === null || value === undefined) return "";
  if (typeof value === "number") return String(value);
  // A spreadsheet would take such a text for a formula, and compute it.
  const text = /^[=+\-@\t\r]/.test(value) ? `'${value}` : String(value);
  return /[",\n\r]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

export function toCsv(head, rows) {
  return [head, ...rows].map((row) => row.map(cell).join(",")).join("\r\n") + "\r\n";
}

export function copiesCsv(button, name, table) {
  button.addEventListener("click", async () => {
    const { head, rows } = table();
    const text = toCsv(head, rows);
    let said = "Copied";
    try {
      await navigator.clipboard.writeText(text);
    } catch {
      const link = document.createElement("a");
      link.href = URL.createObjectURL(new Blob([text], { type: "text/csv" }));
      link.download = `${name}.csv`;
      link.click();
      setTimeout(() => URL.revokeObjectURL(link.href), 10000);
      said = "Saved";
    }
    button.textContent = said;
    setTimeout(() => (button.textContent = LABEL), 1500);
  });
}
