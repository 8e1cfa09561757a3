"use strict";
// A click on a heading sorts by that column; another one turns the order round.
for (const table of document.querySelectorAll("table")) {
  const headings = [...table.querySelectorAll("th")];
  headings.forEach((heading, column) => {
    heading.querySelector("button").addEventListener("click", () => {
      const order = heading.getAttribute("aria-sort") === "ascending" ? "descending" : "ascending";
      headings.forEach((other) => other.removeAttribute("aria-sort"));
      heading.setAttribute("aria-sort", order);
      sortRows(table.tBodies[0], column, order === "ascending" ? 1 : -1);
    });
  });
}
function sortRows(body, column, sign) {
  const key = (row) => row.cells[column].dataset.key;
  const rows = [...body.rows];
  rows.sort((a, b) => {
    const one = key(a), two = key(b), difference = Number(one) - Number(two);
    return sign * (Number.isNaN(difference) ? one.localeCompare(two) : difference);
  });
  body.append(...rows);
}
