"""Which project is this? Solutions, global.json, and the choice between them."""
