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
    await v.page.evaluate(() => document.querySelectorAll('main details').forEach(d => { d.open = true }))
    await v.page.evaluate(() => new Promise(requestAnimationFrame))
  }
  await v.page.evaluate(() => document.querySelectorAll('main *').forEach(e => {
    for (const name of ['mouseover', 'mouseenter', 'focus', 'animationend', 'toggle']) e.dispatchEvent(new Event(name, { bubbles: true }))
  }))
  equal(await v.page.evaluate(inspect), [], `${what}: in the document`)
}

/** What the API has from people, models, tools, Slack and receivers, by its name. */
const foreign = new Set(['title', 'content', 'author', 'message', 'detail', 'error', 'arguments', 'edited_arguments', 'comment', 'decided_by', 'tool', 'tool_name', 'name', 'description', 'target', 'event', 'user_id', 'reason', 'channel_name', 'model', 'finish_reason', 'note', 'code'])

/** Puts the next hostile text in the place of each foreign one; counts them. */
function poison(value, next, key = '') {
  if (Array.isArray(value)) return value.map(v => poison(v, next, key))
  if (value && typeof value === 'object') return Object.fromEntries(Object.entries(value).map(([k, v]) => [k, poison(v, next, k)]))
  if (typeof value !== 'string' || value === '') return value
  if (key === 'key') return value.replace(/ .*/s, () => ` ${next()}`) // a day and an agent
  return foreign.has(key) || key === 'system' ? next() : value
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

  /** The rooms beside the chat, in both languages: whatever a server may say there is hostile. */
  async rooms(open, { payloads: count }) {
    const all = payloads(count).map(p => p.replaceAll('\0', ''))
    const v = await open()
    const id = await v.imported([{ role: 'user', content: 'said before' }, { role: 'assistant', content: 'heard' }], { agent: 'careful', title: 'with runs' })
    for (const content of ['one', 'the provider fails here', 'calculate this']) await v.api(`sessions/${id}/messages`, { method: 'POST', json: { content } })
    await v.api('memories', { method: 'POST', json: { content: 'The inspection is on Friday.', user_id: 'carol' } })
    const run = (await v.api(`sessions/${id}/runs`)).items[0].id
    const now = new Date().toISOString()
    const made = {
      deliveries: { items: ['pending', 'failed', 'delivered'].map(state => ({ id: crypto.randomUUID(), session_id: id, run_id: run, kind: 'webhook', event: 'x', target: 'x', state, attempt: 3, next_at: now, error: 'x', created_at: now })), next_cursor: null },
      slack: { session_id: id, team: 'T1', channel: 'C1', thread: '1700000000.000100', mode: 'two_way', channel_name: 'x', posted: 1, behind_since: now, reason: 'x', next_at: now, faults: ['failed', 'unknown'].map((state, part) => ({ item_id: id, part, state, reason: 'x', created_at: now })) },
    }
    let given = 0
    const next = () => all[given++ % all.length]
    const rooms = [`s/${id}/runs`, `s/${id}/prompt`, 'operation', 'operation/runs', 'operation/deliveries', 'operation/usage', 'operation/memories', `s/${id}`]
    for (const locale of ['en-US', 'de-DE']) {
      const one = locale === 'en-US' ? v : await open({ locale })
      await one.page.route(/\/api\/v1\/(?!.*(events|\/graph)$)/, async route => {
        const name = /\/(deliveries|slack)(\?|$)/.exec(route.request().url())?.[1]
        const state = new URL(route.request().url()).searchParams.get('state')
        if (name === 'deliveries') return route.fulfill({ json: poison({ ...made.deliveries, items: made.deliveries.items.filter(d => !state || d.state === state) }, next) })
        if (name) return route.fulfill({ json: poison(made[name], next) })
        const response = await route.fetch()
        const json = await response.json().catch(() => undefined)
        if (/\/sessions\/[\w-]+$/.test(route.request().url())) json.slack = true
        return route.fulfill(json ? { response, json: poison(json, next) } : { response })
      })
      for (const address of rooms) {
        for (const limit = given + all.length, most = v.args.long ? 40 : 1, from = { rounds: 0 }; given < limit && from.rounds < most; from.rounds++) {
          await one.page.goto('about:blank')
          await one.page.goto(`${v.args.url}#/${address}`)
          if (address === `s/${id}`) await one.menu(/Slack/)
          await until(`${address} has asked`, async () => await one.page.locator('main .spin').count() === 0 && await one.page.locator('main').innerText() !== '')
          await one.page.evaluate(() => document.querySelectorAll('main [aria-expanded=false]:not([aria-haspopup])').forEach(e => e.click()))
          await read(one, `${address} in ${locale}`)
          equal(one.faults, [], `${address} in ${locale}`)
        }
      }
      equal(one.foreign, [], 'requests elsewhere')
      await one.page.unrouteAll({ behavior: 'ignoreErrors' })
    }
    check(given >= all.length, `only ${given} hostile texts were given`)
    return { payloads: given }
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

  /** Code has colors, and what is hostile in it is text; a block whose colors take too long has none, and holds nothing up. */
  async code(open, { long }) {
    const v = await open()
    const hostile = '<img src=x onerror=pwned(1)></span><script>pwned(2)</script>'
    const blocks = [
      ['go', `func main() { // ${hostile}\n\tprint("${hostile}") }`, { keyword: 'func', string: `"${hostile}"`, comment: `// ${hostile}` }],
      ['ts', `const f: string = "${hostile}"`, { keyword: 'const', string: `"${hostile}"` }],
      ['py', `def f():\n    return 42 # ${hostile}`, { keyword: 'def', number: '42', comment: `# ${hostile}` }],
      ['html', `<a href="x">${hostile}</a>`, { name: 'a', string: '"x"' }],
      ['diff', `- was ${hostile}\n+ is ${hostile}`, { deletion: `- was ${hostile}`, addition: `+ is ${hostile}` }],
      ['sql', `select '${hostile}' -- none`, { keyword: 'select', string: `'${hostile}'`, comment: '-- none' }],
    ]
    if (long) blocks.unshift(['md', '[a]('.repeat(4000), {}])
    const content = blocks.map(([lang, text]) => `\`\`\`${lang}\n${text}\n\`\`\``).join('\n\n')
    await v.open(await v.imported([{ role: 'user', content: 'some code' }, { role: 'assistant', content }]))
    if (long) await v.ask('while the colors of one are looked for')
    for (const [i, [lang, text, tokens]] of blocks.entries()) {
      const block = v.log.locator('figure.code code').nth(i)
      for (const [token, of] of Object.entries(tokens)) {
        const first = block.locator(`.hljs-${token}`).first()
        await first.waitFor()
        equal(await first.textContent(), of, `the first ${token} of ${lang}`)
        check(await first.evaluate(e => getComputedStyle(e).color !== getComputedStyle(e.closest('code')).color), `${token} of ${lang} has no color`)
      }
      equal(await block.textContent(), text, `the text of ${lang}`)
    }
    await read(v, 'code')
    return { payloads: blocks.length }
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
