// Light or dark: what the system says, until the user says otherwise. Runs before the first paint, so it is no module.

(() => {
  const KEY = "Theme";
  const system = matchMedia("(prefers-color-scheme: dark)");
  const root = document.documentElement;

  show(read());
  document.addEventListener("DOMContentLoaded", () => {
    const button = document.getElementById("theme");
    button.addEventListener("click", toggle);
    button.hidden = false;
    name(button);
    system.addEventListener("change", () => name(button));
  });

  function toggle(event) {
    const wanted = isDark() ? "light" : "dark";
    // Back to what the system says anyway: then it is to be followed again, also tomorrow night.
    const chosen = wanted === (system.matches ? "dark" : "light") ? null : wanted;
    show(chosen);
    write(chosen);
    name(event.currentTarget);
  }

  function show(chosen) {
    if (chosen === "light" || chosen === "dark") root.dataset.theme = chosen;
    else delete root.dataset.theme;
  }

  function isDark() {
    return (root.dataset.theme ?? (system.matches ? "dark" : "light")) === "dark";
  }

  function name(button) {
    const now = isDark() ? "dark" : "light";
    button.setAttribute("aria-label", `Theme: ${now}`);
    button.title = `Theme: ${now}. Press for ${isDark() ? "light" : "dark"}.`;
  }

  // A browser that keeps nothing for this page throws; the choice then lasts as long as the page.
  function read() {
    try {
      return localStorage.getItem(KEY);
    } catch {
      return null;
    }
  }

  function write(chosen) {
    try {
      if (chosen === null) localStorage.removeItem(KEY);
      else localStorage.setItem(KEY, chosen);
    } catch {
      // see above
    }
  }
})();
