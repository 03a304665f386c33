"use strict";
(() => {
  const root = document.documentElement;
  const button = document.getElementById("theme");
  const dark = matchMedia("(prefers-color-scheme: dark)");
  const remembered = () => { try { return localStorage.getItem("kafkascope-theme"); } catch { return null; } };
  const isDark = () => (root.dataset.theme || (dark.matches ? "dark" : "light")) === "dark";
  const show = (theme) => {
    if (theme) root.dataset.theme = theme;
    button.textContent = isDark() ? "Light theme" : "Dark theme";
  };
  show(remembered());
  button.hidden = false;
  dark.addEventListener("change", () => show());
  button.addEventListener("click", () => {
    const theme = isDark() ? "light" : "dark";
    try { localStorage.setItem("kafkascope-theme", theme); } catch { /* without storage the choice is forgotten */ }
    show(theme);
  });

  // Times in the text are UTC; a click adds local times.
  const local = document.getElementById("local");
  const months = "Jan Feb Mar Apr May Jun Jul Aug Sep Oct Nov Dec".split(" ");
  const clock = String.raw`\d\d:\d\d(?::\d\d(?:\.\d{3})?)?`;
  const moment = new RegExp(String.raw`(\d{1,2}) (${months.join("|")}) (\d{4}) (${clock})(?: – (${clock}))?(?: UTC)?`, "g");
  const at = (day, month, year, time) => {
    const utc = new Date(`${year}-${String(months.indexOf(month) + 1).padStart(2, "0")}-${day.padStart(2, "0")}T${time}Z`);
    const there = new Date(utc.getTime() - 60000 * utc.getTimezoneOffset()).toISOString();
    return there.slice(0, 10) === utc.toISOString().slice(0, 10) ? there.slice(11, 11 + time.length) : there.slice(0, 11 + time.length).replace("T", " ");
  };
  const addLocal = () => {
    const texts = [], walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
    for (let text = walker.nextNode(); text; text = walker.nextNode()) {
      if (!text.parentElement.closest("svg, script, style, code, .local") && text.data.search(moment) >= 0) texts.push(text);
    }
    for (const text of texts) {
      const parts = [];
      let end = 0;
      for (const found of text.data.matchAll(moment)) {
        const [whole, day, month, year, from, to] = found;
        const words = to ? `${at(day, month, year, from)} – ${at(day, month, year, to)}` : at(day, month, year, from);
        parts.push(text.data.slice(end, found.index + whole.length));
        parts.push(Object.assign(document.createElement("span"), { className: "local", textContent: ` (${words} local)` }));
        end = found.index + whole.length;
      }
      text.replaceWith(...parts, text.data.slice(end));
    }
  };
  local.hidden = false;
  local.addEventListener("click", () => {
    if (!root.dataset.times) addLocal();
    root.dataset.times = root.dataset.times === "both" ? "utc" : "both";
    local.setAttribute("aria-pressed", String(root.dataset.times === "both"));
  });

  for (const copy of document.querySelectorAll(".copy")) {
    copy.hidden = false;
    copy.addEventListener("click", async () => {
      const command = copy.parentElement.querySelector("code");
      try {
        await navigator.clipboard.writeText(command.textContent);
        copy.textContent = "Copied";
      } catch { // a page opened from a file may not write to the clipboard: select the command instead
        getSelection().selectAllChildren(command);
        copy.textContent = document.execCommand("copy") ? "Copied" : "Selected";
      }
      setTimeout(() => { copy.textContent = "Copy"; }, 2000);
    });
  }

  // The target of a link may be in a closed <details>.
  const unfold = () => {
    const target = document.getElementById(decodeURIComponent(location.hash.slice(1)));
    for (let part = target; part; part = part.parentElement) if (part.tagName === "DETAILS") part.open = true;
    if (target) target.scrollIntoView();
  };
  addEventListener("hashchange", unfold);
  if (location.hash) unfold();

  // The browser's own tooltip appears late and is unreadable in the dark theme.
  const tip = document.createElement("div");
  tip.className = "tip";
  tip.setAttribute("aria-hidden", "true");
  document.body.append(tip);
  const tooltip = (target) => {
    for (let mark = target; mark instanceof SVGElement; mark = mark.parentElement) {
      const title = mark.querySelector(":scope > title");
      if (title) { mark.dataset.tip = title.textContent; title.remove(); }
      if (mark.dataset.tip) return mark.dataset.tip;
    }
    return null;
  };
  document.addEventListener("pointermove", (event) => {
    const text = tooltip(event.target);
    tip.hidden = !text;
    if (!text) return;
    tip.replaceChildren(...text.split("; ").map((line) => Object.assign(document.createElement("div"), { textContent: line })));
    const { width, height } = tip.getBoundingClientRect();
    const x = Math.max(4, Math.min(event.clientX + 14, innerWidth - width - 4));
    const y = event.clientY + 18 + height > innerHeight ? event.clientY - height - 12 : event.clientY + 18;
    tip.style.translate = `${x}px ${y}px`;
  });
  document.addEventListener("pointerleave", () => { tip.hidden = true; });
  tip.hidden = true;

  addEventListener("beforeprint", () => {
    for (const one of document.querySelectorAll("details.group:not([open])")) { one.open = true; one.dataset.shut = ""; }
  });
  addEventListener("afterprint", () => {
    for (const one of document.querySelectorAll("details[data-shut]")) { one.open = false; delete one.dataset.shut; }
  });
})();
