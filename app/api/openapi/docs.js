// The page works without this script, which adds a filter, copy buttons, and this
// server's address to the examples.
"use strict";

const filter = document.getElementById("filter");
filter.hidden = false;
filter.addEventListener("input", () => {
  const words = filter.value.toLowerCase().split(/\s+/).filter(Boolean);
  for (const section of document.querySelectorAll("nav section")) {
    let shown = 0;
    for (const item of section.querySelectorAll("li")) {
      const text = (item.textContent + " " + item.firstElementChild.title).toLowerCase();
      item.hidden = !words.every((word) => text.includes(word));
      shown += item.hidden ? 0 : 1;
    }
    section.hidden = shown === 0;
  }
});

for (const block of document.querySelectorAll(".copy")) {
  const code = block.querySelector("code");
  code.textContent = code.textContent.replace(/\w+:\/\/127\.0\.0\.1:8080\//, location.origin + "/");
  const button = document.createElement("button");
  button.type = "button";
  button.textContent = "Copy";
  button.addEventListener("click", async () => {
    let said = "Copied";
    try {
      await navigator.clipboard.writeText(code.textContent);
    } catch {
      said = "Copying failed: select the text";
    }
    button.textContent = said;
    setTimeout(() => { button.textContent = "Copy"; }, 1500);
  });
  block.append(button);
}
