// Columns are sorted by a click on their names, largest first, then the other way round.
for (const table of document.querySelectorAll("table.bars")) {
  const body = [...table.tBodies].find((part) => !part.classList.contains("sum"));
  const number = (row, column) => {
    const text = row.cells[column].textContent.replace("<", "");
    return text === "new" ? Infinity : text === "gone" || text === "-" ? -Infinity : parseFloat(text);
  };
  const keys = (column) =>
    column === 0 ? (row) => row.cells[0].textContent
      : column === 1 ? (row) => Math.abs(number(row, 2))
        : (row) => number(row, column);
  [...table.tHead.rows[0].cells].forEach((cell, column) => {
    const button = document.createElement("button");
    button.textContent = cell.textContent;
    cell.replaceChildren(button);
    button.onclick = () => {
      const up = cell.ariaSort ? cell.ariaSort === "descending" : column === 0;
      for (const other of table.tHead.rows[0].cells) other.ariaSort = null;
      cell.ariaSort = up ? "ascending" : "descending";
      const key = keys(column);
      const rows = [...body.rows].map((row) => [key(row), row]);
      rows.sort(([a], [b]) => (a < b ? -1 : a > b ? 1 : 0) * (up ? 1 : -1));
      body.append(...rows.map(([, row]) => row));
    };
  });
  const change = table.tHead.rows[0].cells[2];
  change.ariaSort = "descending";
}
