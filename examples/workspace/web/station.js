const now = document.getElementById("now");

async function refresh() {
  const reading = await (await fetch("/reading")).json();
  now.textContent = `${reading.celsius} °C, ${reading.hectopascal} hPa`;
}

// FIXME(ada): stop polling while the page is hidden
setInterval(refresh, 5000);
refresh(); // TODO show an error when the station is offline
