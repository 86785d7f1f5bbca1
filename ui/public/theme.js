// Sets the chosen theme before the first paint, so that a dark page does not flash white.
(function () {
  try {
    var chosen = localStorage.getItem("prony.theme");
    if (chosen === "light" || chosen === "dark") document.documentElement.dataset.theme = chosen;
  } catch {
    // Where nothing may be stored, the system's own choice stands.
  }
})();
