"""check_page.py BROWSER < LINES: pages as they are drawn, on phones, wide screens, in the dark and in print: nothing
overflows, no label covers another, all can be read, and nothing is run or fetched. A line is PAGE and what is wanted of it,
with tabs between: points=N, contains=TEXT, shots=STEM (pictures of it are kept),
scripts=N (default: where there is a roofline its data and what draws it, else none), curves=N."""
import os
import sys

from browser import Browser

SCRIPT = r"""
(function () {
  const bad = [], say = (what, e) => { if (bad.length < 12) bad.push(what + ": " + (e ? e.outerHTML.slice(0, 160) : "")); };
  const shown = e => e.getClientRects().length > 0;
  const inside = (e, selector) => e.parentElement && e.parentElement.closest(selector);

  // ---- widths ----
  const width = document.documentElement.clientWidth;
  if (document.documentElement.scrollWidth > width) say("the page scrolls sideways, to " + document.documentElement.scrollWidth, null);
  for (const e of document.body.querySelectorAll("*")) {
    const r = e.getBoundingClientRect();
    if (!shown(e) || inside(e, ".box") || inside(e, "svg")) continue;
    if (r.right > width + 0.5 || r.left < -0.5) say("past the edge of the page", e);
    if (!e.matches(".box, svg, .nowrap") && e.scrollWidth > e.clientWidth + 1 && e.clientWidth > 0) say("overflows", e);
  }
  if (matchMedia("print").matches)
    for (const e of document.querySelectorAll(".box"))
      if (e.scrollWidth > e.clientWidth + 1 || e.scrollHeight > e.clientHeight + 2) say("cut off in print", e);

  // ---- drawings ----
  const corners = e => {
    const b = e.getBBox(), m = e.getScreenCTM();
    return [[b.x, b.y], [b.x + b.width, b.y], [b.x + b.width, b.y + b.height], [b.x, b.y + b.height]].map(
      ([x, y]) => [m.a * x + m.c * y + m.e, m.b * x + m.d * y + m.f]);
  };
  // Two convex shapes lie apart if they do along the normal of a side. Letters are lower than their line's box: 25 % of it.
  const apart = (p, q) => [p, q].some(s => s.some((c, i) => {
    const d = s[(i + 1) % 4], n = [c[1] - d[1], d[0] - c[0]], l = Math.hypot(...n) || 1;
    const on = t => t.map(v => (v[0] * n[0] + v[1] * n[1]) / l), a = on(p), b = on(q);
    return Math.max(...a) <= Math.min(...b) || Math.max(...b) <= Math.min(...a);
  }));
  const shrink = c => {
    const side = (i, j, t) => [c[i][0] + (c[j][0] - c[i][0]) * t, c[i][1] + (c[j][1] - c[i][1]) * t];
    return [side(0, 3, 0.2), side(1, 2, 0.2), side(1, 2, 0.8), side(0, 3, 0.8)];
  };
  let points = 0, labels = 0, drawings = 0;
  for (const svg of document.querySelectorAll("svg.roofline")) {
    if (!shown(svg)) continue;
    drawings++;
    const frame = svg.getBoundingClientRect(), marks = [...svg.querySelectorAll(".point")], texts = [...svg.querySelectorAll("text")];
    points += marks.length;
    const numbers = new Set(marks.map(m => m.querySelector("title").textContent.split(":")[0]));
    if (numbers.size !== marks.length) say("points share a number", svg);
    const shapes = texts.map(t => shrink(corners(t)));
    texts.forEach((t, i) => {
      const r = t.getBoundingClientRect();
      if (r.left < frame.left - 1 || r.right > frame.right + 1 || r.top < frame.top - 1 || r.bottom > frame.bottom + 1) say("outside of the drawing", t);
      if (parseFloat(getComputedStyle(t).fontSize) * Math.hypot(t.getScreenCTM().a, t.getScreenCTM().b) < 8) say("too small to read", t);
      if (t.matches(".label")) { labels++; if (!numbers.has(t.textContent)) say("a label of no point", t); }
      for (let k = 0; k < i; k++) if (!apart(shapes[i], shapes[k])) say("'" + texts[k].textContent + "' covers", t);
    });
    // Where the ticks say that a value is: from the first two of each axis.
    const axis = (vertical) => {
      const two = texts.filter(t => t.matches(".tick") && (t.getAttribute("text-anchor") === "middle") === vertical).slice(0, 2).map(t => {
        const r = t.getBoundingClientRect();
        return [Math.log10(Number(t.textContent)), vertical ? (r.left + r.right) / 2 : (r.top + r.bottom) / 2];
      });
      if (two.length < 2) return null;
      return value => two[0][1] + (Math.log10(value) - two[0][0]) / (two[1][0] - two[0][0]) * (two[1][1] - two[0][1]);
    };
    const at_x = axis(true), at_y = axis(false);
    if (marks.length && !(at_x && at_y)) say("an axis has no two ticks", svg);
    for (const m of marks) {
      const r = m.getBoundingClientRect(), told = m.querySelector("title").textContent.match(/: ([^ ]+) GFLOP\/s at ([^ ,]+) flop\/byte/);
      if (!told && !m.matches(".suspect")) say("a point has no figures", m);
      if (told && m.matches(".suspect")) say("a suspect point has figures", m);
      if (told && at_x && at_y && Math.hypot((r.left + r.right) / 2 - at_x(Number(told[2])), (r.top + r.bottom) / 2 - at_y(Number(told[1]))) > 6) say("a point is not where the axes have it", m);
      if (!(r.left >= frame.left - 1 && r.right <= frame.right + 1 && r.top >= frame.top - 1 && r.bottom <= frame.bottom + 1)) say("outside of the drawing", m);
    }
  }

  // ---- what scrolls sideways shows that it does ----
  for (const box of document.querySelectorAll(".box")) {
    const attached = getComputedStyle(box).backgroundAttachment;
    if (!matchMedia("print").matches && box.scrollWidth > box.clientWidth + 1 && !(attached.includes("local") && attached.includes("scroll"))) say("no sign that it scrolls", box);
  }

  // ---- heads that stay, numbers that stand one below another ----
  for (const box of document.querySelectorAll(".box")) {
    if (matchMedia("print").matches || box.scrollHeight <= box.clientHeight + 60) continue;
    box.scrollTop = 50 + (box.querySelector("caption") ? box.querySelector("caption").offsetHeight : 0);
    const head = box.querySelector("thead th").getBoundingClientRect().top - box.getBoundingClientRect().top;
    if (Math.abs(head) > 2) say("the head of a table scrolls away, by " + head, box.querySelector("thead"));
    box.scrollTop = 0;
  }
  for (const n of document.querySelectorAll(".number"))
    if (getComputedStyle(n).textAlign !== "right" || !getComputedStyle(n).fontVariantNumeric.includes("tabular-nums")) say("a number is not aligned", n);

  // ---- contrast, as WCAG 2 counts it ----
  const rgb = text => (text.match(/[\d.]+/g) || [0, 0, 0]).slice(0, 3).map(v => text.startsWith("color(srgb") ? 255 * v : Number(v));
  const light = c => { const [r, g, b] = c.map(v => v / 255).map(v => v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4); return 0.2126 * r + 0.7152 * g + 0.0722 * b; };
  const paper = e => { for (; e; e = e.parentElement) { const c = getComputedStyle(e).backgroundColor; if (!/^rgba\(.*, 0\)$/.test(c) && c !== "transparent") return rgb(c); } return [255, 255, 255]; };
  const contrast = (e, colour) => { const a = light(rgb(colour)), b = light(paper(e)); return (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05); };
  for (const e of document.querySelectorAll("h1, h2, h3, p, dt, dd, td, th, small, .unit, .badge, footer, caption, li"))
    if (shown(e) && contrast(e, getComputedStyle(e).color) < 4.5) say("too pale, " + contrast(e, getComputedStyle(e).color).toFixed(1), e);
  for (const e of document.querySelectorAll("svg text")) if (shown(e) && contrast(e, getComputedStyle(e).fill) < 4.5) say("too pale", e);
  for (const e of document.querySelectorAll(".suspect .mark")) if (getComputedStyle(e).fill === getComputedStyle(e).color) say("a suspect mark is not hollow", e);
  for (const e of document.querySelectorAll("svg .point")) if (shown(e) && contrast(e, getComputedStyle(e).color) < 3) say("a mark is too pale", e);

  // ---- nothing of others ----
  if (window.hacked) say("a script of others", document.scripts[0]);
  for (const e of document.querySelectorAll("*")) {
    for (const a of e.attributes) if (/^on|^src$|^srcset$|^href$|^action$/.test(a.name)) say("an attribute " + a.name, e);
    if (/^(img|iframe|object|embed|link|base|form|a)$/i.test(e.tagName)) say("an element", e);
  }
  return {bad, points, labels, drawings, scripts: document.scripts.length, curves: document.querySelectorAll("figure.curve").length, text: document.body.innerText, dark: light(rgb(getComputedStyle(document.body).backgroundColor)) < 0.2};
})()
"""

VIEWS = {"phone": dict(width=360, height=740), "tablet": dict(width=850), "light": dict(width=1280), "dark": dict(width=1280, dark=True),
         "print": dict(width=700, media="print")}


def look(browser, page, wanted, name, view):
    """What is wrong with a page in one view."""
    browser.open(page, **view)
    found = browser.evaluate(SCRIPT)
    complaints = found["bad"] + browser.complaints() + [r for r in browser.requests() if not r.endswith(os.path.basename(page))]
    if found["dark"] != (name == "dark"):
        complaints.append("the paper is " + ("dark" if found["dark"] else "light"))
    if found["scripts"] != int(dict(wanted).get("scripts", 2 if found["drawings"] else 0)):
        complaints.append(f"{found['scripts']} scripts")
    for key, value in wanted:
        if key == "curves" and found["curves"] != int(value):
            complaints.append(f"{found['curves']} curves, not {value}")
        if key == "points" and (found["points"] != int(value) or (found["points"] and not found["labels"])):
            complaints.append(f"{found['points']} points and {found['labels']} labels, not {value}")
        if key == "contains" and " ".join(value.split()) not in " ".join(found["text"].split()):
            complaints.append(f"it does not say '{value}'")
        if key == "shots":
            browser.screenshot(f"{value}-{name}.png")
    return complaints


def prints(browser, page):
    pdf = page + ".pdf"
    browser.print_pdf(pdf)
    with open(pdf, "rb") as file:
        content = file.read()
    os.unlink(pdf)
    return content.startswith(b"%PDF-") and b"/Type /Page" in content


def main():
    bad = pages = 0
    with Browser(sys.argv[1]) as browser:
        for line in sys.stdin:
            page, *wanted = line.rstrip("\n").split("\t")
            pages += 1
            complaints = []
            for name, view in VIEWS.items():
                complaints += [f"{name}: {c[:300]}" for c in look(browser, page, [w.split("=", 1) for w in wanted], name, view)]
            if not prints(browser, page):
                complaints.append("it cannot be printed")
            for complaint in complaints:
                print(f"{os.path.basename(page)}, {complaint}")
            bad += len(complaints)
    print(f"{pages} pages looked at, {bad} complaints")
    return bad > 0 or pages == 0


sys.exit(main())
