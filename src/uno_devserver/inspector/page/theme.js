// Light or dark: the system's setting, until the user chooses. Runs before the first paint, so it is not a module.

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
    // The choice equals the system's setting, so the system is followed again.
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

  // Without storage the browser throws; the choice then lasts as long as the page.
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
