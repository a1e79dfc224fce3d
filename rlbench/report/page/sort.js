"use strict";
// Sorts a table by a click on the head of a column. Rows without a value are always last.
for (const table of document.querySelectorAll("table.sortable")) {
  const heads = Array.from(table.tHead.rows[0].cells);
  const body = table.tBodies[0];
  const rows = Array.from(body.rows);
  heads.forEach((head, place) => {
    const button = document.createElement("button");
    button.type = "button";
    button.append(...head.childNodes);
    head.append(button);
    button.addEventListener("click", () => {
      const now = head.getAttribute("aria-sort");
      const down = now === null ? "falling" in head.dataset : now === "ascending";
      const keyOf = (row) => row.cells[place].dataset.key;
      const sorted = rows.slice().sort((one, other) => {
        const a = keyOf(one), b = keyOf(other);
        if (a === "" || b === "") return (a === "") - (b === "");
        return down ? Number(b) - Number(a) : Number(a) - Number(b);
      });
      for (const other of heads) other.removeAttribute("aria-sort");
      head.setAttribute("aria-sort", down ? "descending" : "ascending");
      body.append(...sorted);
    });
  });
}
