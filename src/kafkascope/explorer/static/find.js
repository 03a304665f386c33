"use strict";
(() => {
  const { data } = window.kafkascope;
  const order = ["api", "page", "error", "release", "kip", "message", "record", "manual", "name", "field"];
  const named = ["api", "page", "error", "message", "record"].map((kind) => order.indexOf(kind));
  const field = order.indexOf("field");
  const entries = [];
  const messages = [];
  const humps = (text) => (text.includes("_") ? text.split("_").map((part) => part.slice(0, 1)).join("") : text.replace(/[^A-Z]/g, "")).toLowerCase();
  // "share fetch", "share-fetch" and "ShareFetch" are one name; the sign of -1 counts.
  const bare = (name) => name.slice(0, 1) + name.slice(1).replace(/[ _-]/g, "");
  const add = (kind, text, about, href, also, versions = []) => {
    const names = [text, ...also].map((name) => name.toLowerCase());
    entries.push({ kind: order.indexOf(kind), text, about, href, versions, names, bares: names.map(bare), humps: humps(text), whole: [...names, about.toLowerCase()].join(" ") });
  };
  for (const [text, about, ...also] of data.api) add("api", text, about, `api/${text}.html`, also);
  for (const [text, about, href, ...also] of data.page) add("page", text, about, href, also);
  for (const [text, about, ...also] of data.error) add("error", text, about, `error/${text}.html`, also);
  for (const [text, about, ...also] of data.release) add("release", text, about, `release/${also[0]}.html`, also);
  for (const [text, about, ...also] of data.kip) add("kip", text, about, `kip/${also[0]}.html`, also);
  const slug = (title) => title.toLowerCase().replace(/[^\p{L}\p{N}_\- ]/gu, "").replaceAll(" ", "-");
  for (const [page, title, ...parts] of data.manual) {
    add("manual", title, "manual", `docs/${page}.html`, [page]);
    for (const part of parts) {
      const [text, place] = Array.isArray(part) ? part : [part, slug(part)];
      add("manual", text, `manual: ${title}`, `docs/${page}.html#${place}`, []);
    }
  }
  for (const [text, about] of data.name) add("name", text, about, `field/${text}.html`, []);
  for (const kind of ["message", "record"]) {
    for (const [name, what, newest, others, fields, ...also] of data[kind]) {
      const versions = Array.isArray(others) ? others : Array.from({ length: newest - others + 1 }, (_, at) => others + at);
      messages.push([name, versions]);
      add(kind, name, `${what} v${newest}`, `${kind}/${name}/${newest}.html`, also, versions);
      const above = [];
      let last = "";
      // GroupId,Topics(TopicId,Partitions(PartitionIndex)),ReplicaId@14
      for (const [, mark, inner, version] of fields.matchAll(/([(),])|(\w+)(?:@(\d+))?/g)) {
        if (mark === "(") above.push(last);
        else if (mark === ")") above.pop();
        else if (inner) {
          last = inner;
          const path = [...above, inner].join(".");
          add("field", inner, `${name} ${path}`, `${kind}/${name}/${version || newest}.html#f-${path}`, []);
        }
      }
    }
  }
  const rank = (entry, words, joined) => {
    if (joined && entry.bares.includes(joined)) return 0;
    if (!words.every((word) => entry.whole.includes(word) || entry.humps.startsWith(word))) return -1;
    const [first] = words;
    if (entry.names.some((name) => name.startsWith(first))) return 1;
    if (entry.humps.startsWith(first)) return 2;
    if (entry.names[0].includes(first)) return 3;
    // One word that only a message's name contains means the message, not each of its fields.
    return entry.kind === field && words.length === 1 ? -1 : 4;
  };
  // Fields at the top of a message come first, and fields of requests and responses before those of records.
  const depth = (entry) => (entry.kind === field ? 2 * (entry.about.split(".").length - 1) + (entry.href.startsWith("record/") ? 1 : 0) : 0);
  const sorted = (rows) => rows.sort((a, b) => a[0] - b[0] || a[1] - b[1] || a[2] - b[2] || a[3] - b[3]).map(([, , , , entry]) => entry);
  const ranked = (words) => {
    const joined = bare(words.join(""));
    return sorted(entries.map((entry, at) => [rank(entry, words, joined), entry.kind, depth(entry), at, entry]).filter(([found]) => found >= 0));
  };
  const namedBy = (words) => (words.length > 1 && /^v?[0-9]{1,3}$/.test(words.at(-1)) ? words.slice(0, -1) : words);
  const versioned = (words) => {
    const name = namedBy(words);
    if (name === words) return [];
    const version = Number(words.at(-1).replace("v", ""));
    return ranked(name).filter((entry) => entry.versions.includes(version)).map((entry) => (
      { text: `${entry.text} v${version}`, about: entry.about.split(" ")[0], href: `${order[entry.kind]}/${entry.text}/${version}.html` }));
  };
  // Number of letters to insert, drop, change or swap.
  const distance = (a, b, most) => {
    if (Math.abs(a.length - b.length) > most) return most + 1;
    let before = [];
    let row = Array.from({ length: b.length + 1 }, (_, at) => at);
    for (let i = 1; i <= a.length; i += 1) {
      const above = row;
      row = [i];
      for (let j = 1; j <= b.length; j += 1) {
        let cost = Math.min(above[j] + 1, row[j - 1] + 1, above[j - 1] + (a[i - 1] === b[j - 1] ? 0 : 1));
        if (i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1]) cost = Math.min(cost, before[j - 2] + 1);
        row.push(cost);
      }
      before = above;
      if (Math.min(...row) > most) return most + 1;
    }
    return row.at(-1);
  };
  const near = (word) => {
    const most = word.length < 4 || word.length > 60 ? 0 : word.length < 6 ? 1 : 2;
    if (!most) return [];
    return sorted(entries.map((entry, at) => [named.includes(entry.kind) ? distance(word, entry.names[0], most) : most + 1, entry.kind, 0, at, entry]).filter(([far]) => far <= most));
  };
  window.kafkascope.messages = messages;
  window.kafkascope.search = (asked) => {
    const words = asked.toLowerCase().split(/[\s:]+/).filter((word) => /[0-9a-z_]/.test(word));
    if (!words.length) return [];
    const versions = versioned(words);
    const listed = versions.map((entry) => entry.href);
    const results = [...versions, ...ranked(words).filter((entry) => !listed.includes(entry.href))];
    return (results.length ? results : near(namedBy(words).join(""))).slice(0, 24).map((entry) => [entry.text, entry.about, entry.href]);
  };
})();
