
(() => {
/* Tables of cells: what is shown, the paper's order, cells that open. */
const all = (query, within) => Array.from(within.querySelectorAll(query));
const arrows = { ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0] };

function show(part, what) {
  part.dataset.show = what;
  all(".switches button", part).forEach((button) => {
    button.setAttribute("aria-pressed", button.dataset.cells === what);
  });
  all("td.cell", part).forEach((cell) => { cell.dataset.value = cell.dataset[what]; });
  const head = part.querySelector("th[aria-sort=ascending], th[aria-sort=descending]");
  if (!head) return;
  const was = head.getAttribute("aria-sort") === "ascending";
  head.setAttribute("aria-sort", was ? "descending" : "ascending");
  head.querySelector("button").click();
}

function order(part) {
  const body = part.querySelector("tbody");
  const rows = Array.from(body.rows).sort((a, b) => a.dataset.place - b.dataset.place);
  rows.forEach((row) => body.append(row));
  all("th[aria-sort]", part).forEach((head) => head.setAttribute("aria-sort", "none"));
}

/* One pair of arrows goes from dialog to dialog; the page's text names every cell already. */
const moves = document.createElement("span");
[[-1, "‹", "Cell before (←)"], [1, "›", "Next cell (→)"]].forEach(([by, sign, name]) => {
  const button = moves.appendChild(document.createElement("button"));
  Object.assign(button, { type: "button", textContent: sign, title: name, ariaLabel: name });
  button.dataset.step = by;
});
all("td.cell", document).forEach((cell) => {
  cell.dataset.ours = cell.dataset.value;
  cell.firstElementChild.title = cell.firstElementChild.getAttribute("aria-label");
});

function cellOf(dialog) {
  return document.querySelector(`td.cell button[popovertarget="${dialog.id}"]`);
}

function open(button) {
  const dialog = document.getElementById(button.getAttribute("popovertarget"));
  button.focus();
  dialog.querySelector(".moves").prepend(moves);
  dialog.showModal();
}

function step(dialog, by) {
  const button = cellOf(dialog);
  const cells = all("td.cell button", button.closest("tbody"));
  const next = cells[(cells.indexOf(button) + by + cells.length) % cells.length];
  dialog.close();
  open(next);
  moves.children[by > 0 ? 1 : 0].focus();
}

function beside(button, [down, right]) {
  const cell = button.parentNode;
  const row = all("tr", cell.closest("tbody"))[cell.parentNode.sectionRowIndex + down];
  return row && row.cells[cell.cellIndex + right] && row.cells[cell.cellIndex + right].querySelector("button");
}

document.addEventListener("click", (event) => {
  if (event.target.matches("dialog.details")) return event.target.close();
  const button = event.target.closest("button");
  if (!button) return undefined;
  const part = button.closest(".cells");
  const dialog = button.closest("dialog.details");
  const { cells, step: by } = button.dataset;
  if (dialog && button.hasAttribute("popovertarget")) {
    event.preventDefault();
    dialog.close();
  } else if (dialog && by) step(dialog, Number(by));
  else if (cells === "order") order(part);
  else if (cells === "holm") {
    const on = button.getAttribute("aria-pressed") !== "true";
    button.setAttribute("aria-pressed", on);
    part.classList.toggle("holm", on);
  } else if (cells) show(part, cells);
  else if (button.matches("td.cell button")) {
    event.preventDefault();
    open(button);
  }
  return undefined;
});

document.addEventListener("keydown", (event) => {
  const move = arrows[event.key];
  if (!move || event.altKey || event.ctrlKey || event.metaKey) return;
  const dialog = event.target.closest("dialog.details");
  const button = event.target.closest("td.cell button");
  if (dialog && move[1]) step(dialog, move[1]);
  else if (button) {
    const next = beside(button, move);
    if (next) {
      event.preventDefault();
      next.focus();
    }
  }
});
})();
