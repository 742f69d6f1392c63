// Edit this sentence, save, and let the agent call the tool again.
export function greeting(name: string): string {
  return `Hello, ${name}!`;
}
