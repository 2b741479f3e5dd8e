"use strict";
(() => {
document.documentElement.classList.add("js");

const each = (list, act) => Array.prototype.forEach.call(list, act);
const all = (query, within) => (within || document).querySelectorAll(query);

/* Tables: a click on a head sorts, a second one reverses; what is not known stays last. */
function sort(head) {
  const table = head.closest("table");
  const place = Array.prototype.indexOf.call(head.parentNode.children, head);
  const numeric = head.dataset.sort === "number";
  const was = head.getAttribute("aria-sort");
  const down = was === "none" ? numeric : was === "ascending";
  const body = table.tBodies[0];
  const rows = Array.from(body.rows, (row) => ({ row, key: row.cells[place].dataset.value || "" }));
  rows.sort((a, b) => {
    if (a.key === "" || b.key === "") return (a.key === "") - (b.key === "");
    const order = numeric ? a.key - b.key : a.key.localeCompare(b.key);
    return down ? -order : order;
  });
  each(all("th[aria-sort]", table), (other) => other.setAttribute("aria-sort", "none"));
  head.setAttribute("aria-sort", down ? "descending" : "ascending");
  rows.forEach(({ row }) => body.append(row));
}

/* Curves: names at the ends move apart as report/svg.py moves them. */
function spread(wanted, gap, low, high) {
  const centre = (group) => {
    const half = (gap * (group.length - 1)) / 2;
    const mean = group.reduce((sum, place) => sum + wanted[place], 0) / group.length;
    return Math.max(low + half, Math.min(high - half, mean));
  };
  const groups = [];
  const order = wanted.map((_, place) => place).sort((a, b) => wanted[a] - wanted[b]);
  for (const place of order) {
    let group = [place];
    while (groups.length) {
      const before = groups[groups.length - 1];
      if (centre(group) - centre(before) >= (gap * (group.length + before.length)) / 2) break;
      group = groups.pop().concat(group);
    }
    groups.push(group);
  }
  const placed = [];
  groups.forEach((group) => group.forEach((place, i) => {
    placed[place] = centre(group) + gap * (i - (group.length - 1) / 2);
  }));
  return placed;
}

function label(picture) {
  const [gap, low, high] = picture.dataset.ends.split(" ").map(Number);
  const room = Math.floor((high - low) / gap);
  const ends = Array.from(all(".line .end", picture));
  ends.forEach((end) => end.classList.remove("placed"));
  const lit = ends.filter((end) => end.closest(".line").classList.contains("on")).slice(0, room);
  const spots = spread(lit.map((end) => Number(end.dataset.end)), gap, low, high);
  lit.forEach((end, i) => put(end, spots[i]));
}

function put(end, spot) {
  const x = Number(end.getAttribute("x"));
  const near = Math.abs(spot - end.dataset.end) <= 45;
  const lead = near ? `M${x - 15} ${end.dataset.end}L${x - 3} ${spot}` : "";
  end.classList.add("placed");
  end.setAttribute("y", spot + 4);
  end.parentNode.querySelector(".leader").setAttribute("d", lead);
}

function light(button, on) {
  button.setAttribute("aria-pressed", on);
  each(all(`[data-line="${button.dataset.toggle}"]`), (line) => {
    line.classList.toggle("on", on);
    if (on) line.parentNode.append(line);
  });
}

function choose(figure, pick) {
  each(all("[data-toggle]", figure), (button) => light(button, pick(button)));
  each(all("svg[data-ends]", figure), label);
}

each(all("[data-toggle]"), (button) => {
  button.dataset.first = button.getAttribute("aria-pressed");
  const lines = all(`[data-line="${button.dataset.toggle}"]`);
  const over = (on) => () => each(lines, (line) => line.classList.toggle("over", on));
  button.addEventListener("mouseenter", over(true));
  button.addEventListener("mouseleave", over(false));
});

function copy(button, source) {
  const was = button.textContent;
  const done = () => {
    button.textContent = "Copied";
    setTimeout(() => { button.textContent = was; }, 1500);
  };
  const byHand = () => {
    source.hidden = false;
    source.select();
    document.execCommand("copy");
    source.hidden = true;
    done();
  };
  if (navigator.clipboard) navigator.clipboard.writeText(source.value).then(done, byHand);
  else byHand();
}

document.addEventListener("click", (event) => {
  const button = event.target.closest("button");
  if (!button) return;
  const { toggle, open } = button.dataset;
  const figure = button.closest("figure");
  const pressed = button.getAttribute("aria-pressed") === "true";
  if (button.parentNode.dataset.sort) sort(button.parentNode);
  else if (toggle) {
    light(button, !pressed);
    each(all("svg[data-ends]", figure), label);
  } else if (open) {
    button.setAttribute("aria-pressed", !pressed);
    button.textContent = pressed ? "Open all rows" : "Close all rows";
    each(all("details", document.getElementById(open)), (row) => { row.open = !pressed; });
  } else if (button.dataset.copy) copy(button, document.getElementById(button.dataset.copy));
  else if (button.dataset.all) choose(figure, () => true);
  else if (button.dataset.none) choose(figure, () => false);
  else if (button.dataset.reset) choose(figure, (other) => other.dataset.first === "true");
});
})();
