// Shows a report's HTML in its frame. It is parsed and not loaded, and the policy allows none, so no script in it runs.
addEventListener("message", (event) => {
  if (event.source !== parent || typeof event.data !== "string") return;
  const read = new DOMParser().parseFromString(event.data, "text/html");
  document.replaceChild(document.adoptNode(read.documentElement), document.documentElement);
});
parent.postMessage("ready", "*");
