"use strict";
// Every page works without this script. It adds the search, the theme button, copy buttons, and linked bytes.
(() => {
  const root = document.documentElement;
  const remembered = () => { try { return localStorage.getItem("kafkascope-theme"); } catch { return null; } };
  const dark = matchMedia("(prefers-color-scheme: dark)");
  const isDark = () => (root.dataset.theme || (dark.matches ? "dark" : "light")) === "dark";
  // Before the first paint, so that nothing flashes.
  if (["dark", "light"].includes(remembered())) root.dataset.theme = remembered();

  const theme = (button) => {
    const name = () => { button.textContent = isDark() ? "Light" : "Dark"; button.setAttribute("aria-label", isDark() ? "Light theme" : "Dark theme"); };
    name();
    button.hidden = false;
    dark.addEventListener("change", name);
    button.addEventListener("click", () => {
      root.dataset.theme = isDark() ? "light" : "dark";
      try { localStorage.setItem("kafkascope-theme", root.dataset.theme); } catch { /* without storage the choice is forgotten */ }
      name();
    });
  };

  const copying = (button) => {
    const source = document.getElementById(button.dataset.copy);
    // Of a transcript what somebody typed.
    const typed = [...source.querySelectorAll("code > b")];
    const text = () => {
      if (source.classList.contains("bytes")) return source.textContent.replace(/\s+/g, "");
      return typed.length ? typed.map((line) => line.textContent).join("\n") : source.textContent.trimEnd();
    };
    const said = button.textContent;
    button.hidden = false;
    button.addEventListener("click", async () => {
      try { await navigator.clipboard.writeText(text()); } catch {
        // Pages from disk, and from hosts other than loopback, have no clipboard API.
        const field = document.createElement("textarea");
        field.value = text();
        document.body.append(field);
        field.select();
        document.execCommand("copy");
        field.remove();
        button.focus();
      }
      button.textContent = "Copied";
      setTimeout(() => { button.textContent = said; }, 1500);
    });
  };

  // A link mark beside each heading and field with an address of its own.
  const marking = (heading) => {
    const id = (heading.closest("[id]") ?? heading).id;
    if (!id || id === "main") return;
    const link = document.createElement("a");
    link.className = "perma";
    link.href = `#${id}`;
    link.setAttribute("aria-label", `Link to ${id.replace(/^f-/, "")}`);
    heading.append(link);
  };

  // One Tab stop per group of pieces; the arrow keys move within it.
  const roving = (group, pieces) => {
    let at = 0;
    pieces.forEach((piece, index) => { piece.tabIndex = index ? -1 : 0; });
    const go = (to) => {
      pieces[at].tabIndex = -1;
      at = Math.max(0, Math.min(pieces.length - 1, to));
      pieces[at].tabIndex = 0;
      pieces[at].focus();
    };
    group.addEventListener("focusin", (event) => { const found = pieces.indexOf(event.target); if (found >= 0) at = found; });
    group.addEventListener("keydown", (event) => {
      const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
      if (step) go(at + step); else if (event.key === "Home") go(0); else if (event.key === "End") go(pieces.length - 1); else return;
      event.preventDefault();
    });
  };

  const linking = (pair) => {
    // A piece that continues in the next row has a span in each.
    const parts = new Map();
    let begun = null;
    for (const span of pair.querySelectorAll(".bytes [data-p]")) {
      if (span.dataset.c === undefined) parts.set((begun = span), []);
      parts.get(begun).push(span);
    }
    const bytes = [...parts.keys()];
    const whole = (pieces) => pieces.flatMap((one) => parts.get(one));
    const lines = [...pair.querySelectorAll(".json [data-p]")];
    // On a page with several pairs, [data-scope] shows which table belongs to which.
    const scope = pair.closest("[data-scope]") ?? document;
    // A cell that links to a field is matched by the field's path, in the spelling of JSON.
    const small = (name) => name[0].toLowerCase() + name.slice(1);
    for (const link of scope.querySelectorAll(".cell .name a")) {
      link.closest(".cell").dataset.f ??= decodeURIComponent(link.hash.slice(3)).split(".").map(small).join(".");
    }
    const cells = [...scope.querySelectorAll("[data-f]")];
    const told = pair.querySelector(".told");
    const rows = [...scope.querySelectorAll(".span-table tbody tr")];
    const bare = (path) => path.replace(/\[\d+\]/g, "");
    const key = (one) => bare(one.dataset.p) + (one.dataset.t === "tags" ? "#tags" : "");
    const within = (path, inner) => inner === path || inner.startsWith(`${path}.`) || inner.startsWith(`${path}[`);
    const light = (wanted) => {
      for (const one of document.querySelectorAll(".lit")) one.classList.remove("lit");
      for (const one of wanted) one.classList.add("lit");
    };
    const tell = (found) => {
      const first = bytes.indexOf(found[0]);
      if (!rows[first]) return;
      const [at, , field, type, value] = [...rows[first].cells].map((cell) => cell.textContent.trim());
      const many = found.length > 1 ? ` and ${found.length - 1} more` : "";
      told.textContent = `offset ${at}: ${field} (${type}) = ${value}${many}`;
    };
    // The line of its parent if it has none of its own: a record's delta, a batch inside a field.
    const linesOf = (path) => {
      const held = lines.filter((line) => within(line.dataset.p, path));
      const longest = Math.max(0, ...held.map((line) => line.dataset.p.length));
      return held.filter((line) => line.dataset.p.length === longest);
    };
    const fromByte = (one) => {
      light([...whole([one]), ...linesOf(one.dataset.p), ...cells.filter((cell) => cell.dataset.f === key(one))]);
      tell([one]);
    };
    const fromLine = (line) => {
      const found = bytes.filter((one) => within(line.dataset.p, one.dataset.p));
      light([line, ...whole(found), ...cells.filter((cell) => cell.dataset.f === bare(line.dataset.p))]);
      if (found.length) tell(found);
    };
    const fromCell = (cell) => {
      const found = bytes.filter((one) => key(one) === cell.dataset.f);
      light([cell, ...whole(found), ...lines.filter((line) => bare(line.dataset.p) === cell.dataset.f)]);
      if (found.length) tell(found);
    };
    told.hidden = false;
    told.textContent = "Point at a byte or a line, or use the arrow keys.";
    for (const [pieces, light_up] of [[bytes, fromByte], [lines, fromLine], [cells, fromCell]]) {
      for (const piece of pieces) {
        for (const span of parts.get(piece) ?? [piece]) span.addEventListener("pointerenter", () => light_up(piece));
        piece.addEventListener("focusin", () => light_up(piece));
      }
    }
    if (bytes.length) roving(pair.querySelector(".bytes"), bytes);
    if (lines.length) roving(pair.querySelector(".json"), lines);
  };

  // The search index, loaded once.
  let loading = null;
  const load = () => {
    loading ??= new Promise((done, failed) => {
      const script = document.createElement("script");
      script.src = `${document.body.dataset.root}search.js`;
      script.onload = done;
      script.onerror = failed;
      document.head.append(script);
    });
    return loading;
  };

  // Completes names of messages: with the newest version, and after a colon with each version.
  const naming = (input) => {
    let shown = "";
    const fill = async () => {
      await load();
      const name = input.value.includes(":") ? input.value.split(":")[0].toLowerCase() : "";
      if (shown === `:${name}`) return;
      shown = `:${name}`;
      const own = window.kafkascope.messages.filter(([one]) => one.toLowerCase() === name);
      const pairs = own.length ? own.flatMap(([one, versions]) => versions.map((version) => `${one}:${version}`)).reverse()
        : window.kafkascope.messages.map(([one, versions]) => `${one}:${versions.at(-1)}`);
      input.list.replaceChildren(...pairs.map((pair) => new Option(pair, pair)));
    };
    input.addEventListener("focus", fill);
    input.addEventListener("input", fill);
  };

  const searching = (form) => {
    const input = form.querySelector("input");
    const list = form.querySelector(".found");
    const here = document.body.dataset.root;
    let chosen = -1;
    const close = () => { list.hidden = true; chosen = -1; input.setAttribute("aria-expanded", "false"); input.removeAttribute("aria-activedescendant"); };
    const choose = (to) => {
      const items = [...list.children];
      if (!items.length || items[0].dataset.href === undefined) return;
      chosen = (to + items.length) % items.length;
      items.forEach((item, index) => item.setAttribute("aria-selected", String(index === chosen)));
      items[chosen].scrollIntoView({ block: "nearest" });
      input.setAttribute("aria-activedescendant", items[chosen].id);
    };
    const show = async () => {
      const asked = input.value.trim();
      if (!asked) { close(); return; }
      await load();
      if (asked !== input.value.trim()) return;
      const results = window.kafkascope.search(asked);
      list.replaceChildren(...results.map(([text, about, href], index) => {
        const item = document.createElement("li");
        item.id = `${list.id}-${index}`;
        item.setAttribute("role", "option");
        item.dataset.href = href;
        const small = document.createElement("small");
        small.textContent = about;
        item.append(text, small);
        return item;
      }));
      if (!results.length) {
        const item = document.createElement("li");
        item.setAttribute("role", "option");
        item.setAttribute("aria-disabled", "true");
        item.textContent = "no results for this name or number";
        list.append(item);
      }
      list.hidden = false;
      input.setAttribute("aria-expanded", "true");
      choose(0);
    };
    const open = (item) => { if (item?.dataset.href) location.href = here + item.dataset.href; };
    form.hidden = false;
    input.setAttribute("role", "combobox");
    input.setAttribute("aria-expanded", "false");
    input.setAttribute("aria-controls", list.id);
    input.setAttribute("aria-autocomplete", "list");
    input.addEventListener("focus", load);
    input.addEventListener("input", show);
    input.addEventListener("keydown", (event) => {
      if (event.key === "ArrowDown") { if (list.hidden) show(); else choose(chosen + 1); }
      else if (event.key === "ArrowUp") choose(chosen - 1);
      else if (event.key === "Escape") close();
      else return;
      event.preventDefault();
    });
    form.addEventListener("submit", async (event) => { event.preventDefault(); if (list.hidden || chosen < 0) await show(); open(list.children[chosen]); });
    list.addEventListener("pointerdown", (event) => { event.preventDefault(); open(event.target.closest("li")); });
    input.addEventListener("blur", close);
    return input;
  };

  // A file dropped anywhere on the form is decoded.
  const dropping = (form) => {
    const input = form.querySelector("input[type=file]");
    const over = (on) => (event) => {
      if (![...event.dataTransfer.types].includes("Files")) return;
      event.preventDefault();
      form.classList.toggle("over", on);
    };
    form.addEventListener("dragover", over(true));
    form.addEventListener("dragleave", over(false));
    form.addEventListener("drop", (event) => {
      over(false)(event);
      if (!event.dataTransfer.files.length) return;
      input.files = event.dataTransfer.files;
      form.requestSubmit();
    });
  };

  document.addEventListener("DOMContentLoaded", () => {
    const button = document.getElementById("theme");
    if (button) theme(button);
    document.querySelectorAll("[data-copy]").forEach(copying);
    document.querySelectorAll("[data-linked]").forEach(linking);
    document.querySelectorAll("[data-drop]").forEach(dropping);
    document.querySelectorAll("input[list]").forEach(naming);
    // After the first paint: marks aren't needed earlier.
    setTimeout(() => document.querySelectorAll("main section[id] > h2, main section[id] > h3, .tree [id] > .field").forEach(marking), 100);
    const inputs = [...document.querySelectorAll("form.seek")].map(searching);
    document.addEventListener("keydown", (event) => {
      const typing = event.target.closest("input, textarea, select, [contenteditable]");
      const held = event.ctrlKey || event.metaKey;
      // On some keyboards a slash needs Shift.
      const slash = event.key === "/" && !typing && !held && !event.altKey;
      const control = event.key.toLowerCase() === "k" && held && !event.altKey && !event.shiftKey;
      if ((!slash && !control) || !inputs.length) return;
      event.preventDefault();
      inputs[0].focus();
      inputs[0].select();
    });
  });
})();
