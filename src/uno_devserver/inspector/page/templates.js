// URI templates (RFC 6570, to level 3, and lists by `*` or cut by `:n` as plain variables). Pure.

const EXPRESSION = /\{([+#./;?&]?)([^{}]+)\}/g;
const OPERATORS = {
  "": { first: "", between: ",", named: false, open: false },
  "+": { first: "", between: ",", named: false, open: true },
  "#": { first: "#", between: ",", named: false, open: true },
  ".": { first: ".", between: ".", named: false, open: false },
  "/": { first: "/", between: "/", named: false, open: false },
  ";": { first: ";", between: ";", named: true, open: false },
  "?": { first: "?", between: "&", named: true, open: false },
  "&": { first: "&", between: "&", named: true, open: false },
};

/** [{ name, required }], each once, in order; variables of a query are optional. */
export function variablesOf(template) {
  const found = new Map();
  for (const [, operator, list] of template.matchAll(EXPRESSION)) {
    for (const name of namesIn(list)) {
      const required = !["?", "&", "#", ";"].includes(operator) || found.get(name)?.required === true;
      found.set(name, { name, required });
    }
  }
  return [...found.values()];
}

/** The URI with these values; variables without a value are left out. */
export function expand(template, values) {
  return template.replaceAll(EXPRESSION, (_, operator, list) => {
    const { first, between, named, open } = OPERATORS[operator];
    const parts = namesIn(list)
      .filter((name) => Object.hasOwn(values, name))
      .map((name) => {
        const value = open ? encodeURI(values[name]) : strict(values[name]);
        return named ? `${name}=${value}` : value;
      });
    return parts.length ? first + parts.join(between) : "";
  });
}

function namesIn(list) {
  return list.split(",").map((each) => each.trim().replace(/\*$|:\d+$/, ""));
}

function strict(text) {
  return encodeURIComponent(text).replace(/[!'()*]/g, (each) => `%${each.charCodeAt(0).toString(16).toUpperCase()}`);
}
