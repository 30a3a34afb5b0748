/** An input method is at work, and the key is its own. Safari says so by the code 229 alone, of the Enter that ends a composition. */
export function isComposing(e: KeyboardEvent): boolean {
  return e.isComposing || e.keyCode === 229;
}
