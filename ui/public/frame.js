// A report's text in, the report out; no script of it runs, for it is parsed and not loaded, and the policy allows none.
addEventListener("message", (event) => {
  if (event.source !== parent || typeof event.data !== "string") return;
  const read = new DOMParser().parseFromString(event.data, "text/html");
  document.replaceChild(document.adoptNode(read.documentElement), document.documentElement);
});
parent.postMessage("ready", "*");
