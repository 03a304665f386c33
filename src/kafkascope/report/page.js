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
    try { localStorage.setItem("kafkascope-theme", theme); } catch { /* a page without storage forgets it */ }
    show(theme);
  });

  // A browser's own tooltip comes late and cannot be read in the dark theme.
  const tip = document.createElement("div");
  tip.className = "tip";
  tip.setAttribute("aria-hidden", "true");
  document.body.append(tip);
  const said = (target) => {
    for (let mark = target; mark instanceof SVGElement; mark = mark.parentElement) {
      const title = mark.querySelector(":scope > title");
      if (title) { mark.dataset.tip = title.textContent; title.remove(); }
      if (mark.dataset.tip) return mark.dataset.tip;
    }
    return null;
  };
  document.addEventListener("pointermove", (event) => {
    const text = said(event.target);
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
