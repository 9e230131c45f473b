// Find what a reader at this width cannot see: elements beyond the window or wider than their box,
// texts that a chart cuts off, and texts of a chart that cover each other. Boxes that scroll may
// hold wider ones. Arguments: called back with a list of sentences.
const done = arguments[0];
const SLACK = 1.5; // pixels, for rounding
const isSeen = (element) =>
  element.checkVisibility({ checkOpacity: true, checkVisibilityCSS: true });
const scrolls = (element) => ["auto", "scroll"].includes(getComputedStyle(element).overflowX);
const isInScroll = (element) =>
  element !== document.body && (scrolls(element) || isInScroll(element.parentElement));
const name = (element) => {
  const place = element.closest("[id]")?.id;
  return `${place} ${element.tagName} “${element.textContent.trim().slice(0, 40)}”`;
};

function* ofBoxes() {
  for (const element of document.body.querySelectorAll("*:not(svg *, .skip)")) {
    const box = element.getBoundingClientRect();
    if (!box.width || !isSeen(element)) continue;
    if (box.right > innerWidth + SLACK && !isInScroll(element)) {
      yield `beyond the window: ${name(element)}`;
    }
    const room = element.clientWidth; // 0 for what is inline
    if (room && element.scrollWidth > room + SLACK && !scrolls(element)) {
      yield `wider than its box: ${name(element)}`;
    }
  }
}

function* ofChart(svg) {
  const box = svg.getBoundingClientRect();
  const texts = [...svg.querySelectorAll("text")]
    .filter((text) => text.textContent.trim() && isSeen(text))
    .map((text) => [text, text.getBoundingClientRect()]);
  for (const [index, [text, mine]] of texts.entries()) {
    if (mine.left < box.left - SLACK || mine.right > box.right + SLACK ||
        mine.top < box.top - SLACK || mine.bottom > box.bottom + SLACK) {
      yield `cut off: ${name(text)}`;
    }
    for (const [other, its] of texts.slice(index + 1)) {
      const width = Math.min(mine.right, its.right) - Math.max(mine.left, its.left);
      const height = Math.min(mine.bottom, its.bottom) - Math.max(mine.top, its.top);
      // The boxes of lines overlap where their letters do not.
      if (width > SLACK && height > 4) {
        yield `overlap: ${name(text)} and “${other.textContent}”`;
      }
    }
  }
}

async function asSvg(canvas) {
  const plot = canvas.closest(".plot");
  const place = document.createElement("div");
  place.innerHTML = await views.get(plot.dataset.plot).toSVG();
  plot.closest("figure").append(place);
  return place;
}

(async () => {
  const found = [...ofBoxes()];
  const places = await Promise.all([...document.querySelectorAll(".plot canvas")].map(asSvg));
  for (const svg of document.querySelectorAll("svg")) if (isSeen(svg)) found.push(...ofChart(svg));
  for (const place of places) place.remove();
  done(found);
})().catch((error) => done([`the check itself: ${error.stack}`]));
