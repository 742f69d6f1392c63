// Takes the one-time code out of the address, and exchanges it for the key of this page. Runs before anything else is
// loaded, so that the code stands neither in the address bar nor in the history; therefore it is not a module.
//
// The key is kept for this tab, and sent in a header: a cookie would be sent to every port of this machine.

window.pageKey = (async () => {
  const NAME = "uno-devserver:key";
  const code = new URLSearchParams(location.search).get("code");
  if (location.search) history.replaceState(null, "", location.pathname + location.hash);
  const key = (code && (await exchanged())) || read();
  if (key) write(key);
  return key; // null: this page may see nothing

  async function exchanged() {
    const response = await fetch("key", { method: "POST", body: code }).catch(() => null); // the proxy has just ended
    return response?.ok ? (await response.json()).key : null;
  }

  // Without storage the browser throws; the key then lasts as long as the page.
  function read() {
    try {
      return sessionStorage.getItem(NAME);
    } catch {
      return null;
    }
  }

  function write(key) {
    try {
      sessionStorage.setItem(NAME, key);
    } catch {
      // see above
    }
  }
})();
