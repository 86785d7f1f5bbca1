// Search the documentation: lunr and the index are loaded when the search is first used, also from file://.
"use strict";

const base = document.documentElement.dataset.base;
const input = document.getElementById("search");
const found = document.getElementById("found");
const MOST = 12;
const AROUND = 70; // letters that are shown before a word that was found
let loading = null;

function loadScript(path) {
  return new Promise((resolve, reject) => {
    const script = document.createElement("script");
    script.src = `${base}/search/${path}`;
    script.onload = resolve;
    script.onerror = () => reject(new Error(`${path} cannot be loaded`));
    document.head.append(script);
  });
}

async function loadIndex() {
  await Promise.all([loadScript("lunr.js"), loadScript("index.js")]);
  const sections = new Map(window.searchIndex.map((one) => [one.location, one]));
  const index = lunr(function () {
    this.ref("location");
    this.field("title", { boost: 10 });
    this.field("text");
    for (const one of sections.values()) this.add(one);
  });
  return { index, sections };
}

async function search() {
  const words = input.value.toLowerCase().match(/[\p{L}\p{N}_]+/gu) ?? [];
  found.hidden = words.length === 0;
  if (found.hidden) return;
  loading ??= loadIndex();
  const asked = input.value;
  try {
    const { index, sections } = await loading;
    if (asked === input.value) show(find(index, words).map((hit) => sections.get(hit.ref)), words, sections);
  } catch (error) {
    loading = null;
    found.replaceChildren(element("p", `The search does not work: ${error.message}.`));
  }
}

// A whole word counts more than the beginning of one, so that results appear while you type.
function find(index, words) {
  return index
    .query((query) => {
      for (const word of words) {
        query.term(word, { boost: 10 });
        query.term(word, { wildcard: lunr.Query.wildcard.TRAILING, usePipeline: false });
      }
    })
    .slice(0, MOST);
}

function show(results, words, sections) {
  if (results.length === 0) {
    found.replaceChildren(element("p", "Nothing found. Try another word."));
    return;
  }
  found.replaceChildren(
    ...results.map((one) => {
      const page = sections.get(one.location.split("#")[0]);
      const link = element("a", page && page !== one ? `${page.title}: ${one.title}` : one.title);
      link.href = `${base}/${one.location}`;
      link.append(element("small", excerpt(one.text, words)));
      return link;
    }),
  );
}

function excerpt(text, words) {
  const places = words.map((word) => text.toLowerCase().indexOf(word)).filter((place) => place >= 0);
  const start = Math.max(0, Math.min(...places, text.length) - AROUND);
  const from = places.length ? start : 0;
  return `${from ? "…" : ""}${text.slice(from, from + 3 * AROUND)}…`;
}

function element(name, text) {
  const made = document.createElement(name);
  made.textContent = text;
  return made;
}

input.addEventListener("input", search);
input.addEventListener("keydown", (event) => {
  if (event.key === "Escape") input.value = "";
  if (event.key === "Enter") found.querySelector("a")?.click();
  if (event.key === "Escape") found.hidden = true;
});
found.addEventListener("click", () => (found.hidden = true));
document.addEventListener("keydown", (event) => {
  if (event.key !== "/" || event.target === input || event.ctrlKey || event.metaKey) return;
  event.preventDefault();
  input.focus();
});
document.addEventListener("click", (event) => {
  if (!event.target.closest(".search")) found.hidden = true;
});
