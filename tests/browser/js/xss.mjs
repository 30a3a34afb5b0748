// Hostile text in every place that the page shows: nothing of it runs, and nothing asks another origin.
import { check, equal, until } from './visit.mjs'
import { payloads } from './payloads.mjs'

export const cut = (text, bytes) => { while (Buffer.byteLength(text) > bytes) text = text.slice(0, -1); return text }

/** A list in parts of so many. */
export const parts = (all, size) => Array.from({ length: Math.ceil(all.length / size) }, (_, i) => all.slice(i * size, (i + 1) * size))

/** What must not be in the document, whatever was said. */
export function inspect() {
  const bad = []
  for (const e of document.querySelectorAll('body *')) {
    if (/^(script|iframe|object|embed|form|base|meta|link|style|template|math|foreignobject|animate|use|video|audio)$/i.test(e.localName) && e.localName !== 'form') bad.push(e.outerHTML.slice(0, 120))
    for (const a of e.attributes) {
      if (/^on/i.test(a.name)) bad.push(`${e.localName} ${a.name}=${a.value.slice(0, 80)}`)
      if (/^(href|src|action|formaction|xlink:href|data|srcdoc|poster|background)$/i.test(a.name) && !/^(https?:|mailto:|#|\.?\/?assets\/|blob:)/i.test(a.value)) bad.push(`${e.localName} ${a.name}=${a.value.slice(0, 80)}`)
      if (a.name === 'src' && /^https?:/i.test(a.value)) bad.push(`remote ${a.value}`)
      if (a.name === 'style' && /url\(/i.test(a.value)) bad.push(`style ${a.value.slice(0, 80)}`)
    }
    if (e.localName === 'a' && /^https?:/i.test(e.getAttribute('href')) && !/noopener.*noreferrer|noreferrer.*noopener/.test(e.rel)) bad.push(`link without rel: ${e.getAttribute('href')}`)
  }
  return bad
}

/** Looks, opens what is folded, moves over every link, and looks again. */
async function read(v, what) {
  for (let round = 0; round < 3; round++) { // what opens has folds of its own
    await v.log.evaluate(e => e.querySelectorAll('details').forEach(d => { d.open = true }))
    await v.page.evaluate(() => new Promise(requestAnimationFrame))
  }
  await v.page.evaluate(() => document.querySelectorAll('[role=log] *').forEach(e => {
    for (const name of ['mouseover', 'mouseenter', 'focus', 'animationend', 'toggle']) e.dispatchEvent(new Event(name, { bubbles: true }))
  }))
  equal(await v.page.evaluate(inspect), [], `${what}: in the document`)
}

export const cases = {
  /** The places of a conversation: what people, agents and tools say, thoughts, authors, titles. */
  async thread(open, { payloads: count }) {
    const v = await open()
    const all = payloads(count)
    for (const some of parts(all, 12)) { // the page loads 50 messages
      const messages = some.flatMap((p, i) => {
        const call = `call_${i}`
        return [
          { role: 'user', content: p, author: cut(p, 150) },
          { role: 'assistant', content: p, parts: [{ type: 'reasoning', text: p }], tool_calls: [{ id: call, type: 'function', function: { name: 'calculator', arguments: JSON.stringify({ expression: p }) } }] },
          { role: 'tool', tool_call_id: call, content: p }, { role: 'assistant', content: `drawn ${i}` },
        ]
      })
      await v.open(await v.imported(messages, { title: cut(some[0], 200) }))
      await v.log.getByText(`drawn ${some.length - 1}`, { exact: true }).waitFor()
      equal(await v.articles.count(), 2 * some.length, 'messages in the document')
      await read(v, some[0])
      if (some[0] !== all[0] && !v.args.long) continue
      await v.page.keyboard.press('Alt+3')
      await v.page.getByRole('region', { name: 'The prompt, word for word' }).getByText('drawn 0', { exact: true }).waitFor()
      equal(await v.page.evaluate(inspect), [], `${some[0]} in the prompt`)
    }
    equal(v.foreign, [], 'requests elsewhere')
    return { payloads: all.length }
  },

  /** Titles in the list, the head and the tab; names of files; hits of a search. */
  async names(open, { payloads: count }) {
    const v = await open()
    const all = payloads(count)
    for (const [round, some] of parts(all, 20).entries()) {
      const ids = []
      const files = []
      for (const p of some) {
        ids.push(await v.imported([{ role: 'user', content: `needle${round} ${p}` }], { title: cut(p, 200) }))
        const form = new FormData()
        form.append('file', new Blob(['text of a file'], { type: 'text/plain' }), cut(p.replaceAll(/[\p{Cc}"/\\]/gu, ' '), 100))
        files.push({ blob_id: (await v.api('blobs', { method: 'POST', body: form })).id })
      }
      for (const eight of parts(files, 8)) await v.api(`sessions/${ids[0]}/messages`, { method: 'POST', json: { content: 'with files', parts: eight } })
      await v.open(ids[0])
      await v.settled('answer to: ')
      equal(await v.log.locator('button.file').count(), some.length, 'files')
      await until('they are in the list', async () => {
        const links = await v.list.getByRole('link').evaluateAll(all => all.map(e => e.hash))
        return ids.every(id => links.includes(`#/s/${id}`))
      })
      await read(v, 'names')
      await v.page.keyboard.press('Control+k')
      await v.page.getByRole('combobox').fill(`needle${round}`)
      await until('all are found', async () => await v.page.getByRole('option', { name: `needle${round}` }).count() >= some.length)
      await read(v, 'hits')
      await v.page.keyboard.press('Escape')
    }
    return { payloads: all.length }
  },

  /** A summary whose text is hostile, in the thread and in the panel. */
  async summary(open, { payloads: count }) {
    const v = await open()
    const all = payloads(count)
    const id = await v.imported(Array.from({ length: 60 }, (_, i) => ({ role: i % 2 ? 'assistant' : 'user', content: `turn ${i} ${'of many words '.repeat(40)}` })))
    await v.api(`sessions/${id}/summarize`, { method: 'POST' })
    await v.open(id)
    await v.page.keyboard.press('Control+.')
    await v.page.getByRole('region', { name: 'Summary v1' }).getByRole('button', { expanded: false }).click()
    for (const [round, some] of parts(all, 20).entries()) {
      const version = round + 2
      await v.api(`sessions/${id}/summary`, { method: 'PUT', json: { content: [...some, `the end of v${version}`].join('\n\n').replaceAll('\0', '') } })
      await v.page.getByRole('region', { name: `Summary v${version}` }).getByText(`the end of v${version}`).waitFor()
      await read(v, `the text of v${version}`)
      await v.button(`What v${version} changed`).click()
      await v.page.getByRole('dialog').getByText(`the end of v${version}`).waitFor()
      await read(v, `the changes of v${version}`)
      await v.page.keyboard.press('Escape')
    }
    return { payloads: all.length }
  },

  /** Input that is large or broken is drawn within a moment, and the page goes on. */
  async shapes(open, { long }) {
    const v = await open({ patience: 60_000 })
    const columns = long ? 10_000 : 1000
    const wide = `| ${'a | '.repeat(columns)}\n|${'---|'.repeat(columns)}\n| ${'b | '.repeat(columns)}`
    const shapes = ['x'.repeat(long ? 1 << 20 : 1 << 17), wide, '```js\nhalf a fence', 'null \u0000 byte', '\u202e right to left \u2066 marks', `${'>'.repeat(2000)} deep`, `${'['.repeat(20_000)}`, '*'.repeat(20_000), `${'- '.repeat(500)}x`]
    for (const [i, content] of shapes.entries()) {
      const id = await v.imported([{ role: 'user', content }, { role: 'assistant', content }, { role: 'user', content: `drawn ${i}` }])
      const began = await v.cpu()
      await v.open(id).catch(e => { throw new Error(`shape ${i}: ${e}`) })
      await v.log.getByText(`drawn ${i}`, { exact: true }).waitFor()
      const took = await v.cpu() - began
      check(took < 4, `shape ${i} took ${took} s of the processor`)
      check(await v.page.evaluate(() => document.documentElement.scrollWidth <= innerWidth), `shape ${i} makes the page wider than the window`)
    }
  },

  /** Names that are longer than the API lets them be. */
  async long(open) {
    const v = await open()
    const name = 'name '.repeat(2000)
    const id = await v.imported([{ role: 'user', content: 'said by somebody', author: 'x' }], { title: 'y' })
    await v.page.route(/\/(sessions|messages)(\?|$)|\/sessions\/[\w-]+$/, async route => {
      const response = await route.fetch()
      await route.fulfill({ response, body: (await response.text()).replace(/"(title|author)":"[xy]"/g, `"$1":"${name}"`) })
    })
    await v.open(id)
    await v.page.reload()
    await v.log.getByText('said by somebody').waitFor()
    await v.page.getByRole('heading', { name: 'name name' }).waitFor()
    check((await v.articles.first().innerText()).includes('name name'), 'the author is not shown')
    check(await v.page.evaluate(() => document.documentElement.scrollWidth <= innerWidth), 'a name makes the page wider than the window')
  },

  /** What watches is able to see: a script that is planted is noticed. */
  async watch(open) {
    const v = await open()
    await v.page.evaluate(() => {
      const e = document.createElement('div')
      e.innerHTML = '<img src="data:x" onerror="pwned(1)"><img src="https://evil.test/1">'
      document.body.append(e)
    })
    await until('the violations are seen', () => v.violations.length >= 2)
    check(await v.page.evaluate(inspect).then(bad => bad.length >= 2), 'the document is not inspected')
    v.faults.length = 0
  },
}
