"use strict";
(() => {
  const { data } = window.kafkascope;
  const order = ["api", "error", "release", "kip", "message", "record", "name", "field"];
  const entries = [];
  const humps = (text) => (text.includes("_") ? text.split("_").map((part) => part[0]).join("") : text.replace(/[^A-Z]/g, "")).toLowerCase();
  const add = (kind, text, about, href, also) => {
    const names = [text, ...also].map((name) => name.toLowerCase());
    entries.push({ kind: order.indexOf(kind), text, about, href, names, humps: humps(text), whole: [...names, about.toLowerCase()].join(" ") });
  };
  for (const [text, about, ...also] of data.api) add("api", text, about, `api/${text}.html`, also);
  for (const [text, about, ...also] of data.error) add("error", text, about, `error/${text}.html`, also);
  for (const [text, about, ...also] of data.release) add("release", text, about, `release/${also[0]}.html`, also);
  for (const [text, about, ...also] of data.kip) add("kip", text, about, `kip/${also[0]}.html`, also);
  for (const [text, about] of data.name) add("name", text, about, `field/${text}.html`, []);
  for (const kind of ["message", "record"]) {
    for (const [name, what, newest, fields, ...also] of data[kind]) {
      add(kind, name, `${what} v${newest}`, `${kind}/${name}/${newest}.html`, also);
      const above = [];
      let last = "";
      // GroupId,Topics(TopicId,Partitions(PartitionIndex)),ReplicaId@14
      for (const [, mark, field, version] of fields.matchAll(/([(),])|(\w+)(?:@(\d+))?/g)) {
        if (mark === "(") above.push(last);
        else if (mark === ")") above.pop();
        else if (field) {
          last = field;
          const path = [...above, field].join(".");
          add("field", field, `${name} ${path}`, `${kind}/${name}/${version || newest}.html#f-${path}`, []);
        }
      }
    }
  }
  const rank = (entry, words) => {
    if (!words.every((word) => entry.whole.includes(word) || entry.humps.startsWith(word))) return -1;
    const [first] = words;
    if (entry.names.includes(first)) return 0;
    if (entry.names.some((name) => name.startsWith(first))) return 1;
    if (entry.humps.startsWith(first)) return 2;
    if (entry.names[0].includes(first)) return 3;
    // One word that is only in a message's name means the message, not each of its fields.
    return entry.kind === 7 && words.length === 1 ? -1 : 4;
  };
  // Of fields those at the top of a message first, those of requests and responses before those of records.
  const depth = (entry) => (entry.kind === 7 ? 2 * (entry.about.split(".").length - 1) + (entry.href.startsWith("record/") ? 1 : 0) : 0);
  window.kafkascope.search = (asked) => {
    const words = asked.toLowerCase().split(/\s+/).filter(Boolean);
    return entries
      .map((entry, at) => [rank(entry, words), entry.kind, depth(entry), at, entry])
      .filter(([found]) => words.length && found >= 0)
      .sort((a, b) => a[0] - b[0] || a[1] - b[1] || a[2] - b[2] || a[3] - b[3])
      .slice(0, 24)
      .map(([, , , , entry]) => [entry.text, entry.about, entry.href]);
  };
})();
