// The page in German: its flows go, and no English text of the catalogue is left.
import { readFileSync, readdirSync } from 'node:fs'
import { fail, idWithin } from './failures.mjs'
import { check, equal } from './visit.mjs'

const source = new URL('../../../app/web/ui/src/', import.meta.url)

/** The texts of a catalogue that no other language has: each literal, and the parts of those with values in them. */
export function english() {
  const texts = { en: new Set(), de: new Set() }
  const values = { en: [], de: [] }
  for (const name of readdirSync(source, { recursive: true }).filter(f => /words(\.(en|de))?\.ts$/i.test(f))) {
    const own = /\.(en|de)\.ts$/.exec(name)?.[1]
    let language = own ?? 'de' // what stands outside belongs to both
    for (const line of readFileSync(new URL(name, source), 'utf8').split('\n')) {
      language = own ?? /^  (en|de): \{$/.exec(line)?.[1] ?? (/^  \},?$/.test(line) ? 'de' : language)
      for (const [, text, given] of line.matchAll(/(\w+): \(([^)]*)\) =>/g)) values[language].push(`${text} of ${given.split(',').length} in ${name.replace(/\.(en|de)\.ts$/, '')}`)
      for (const [, quoted, template] of line.matchAll(/"((?:[^"\\]|\\.)*)"|`((?:[^`\\]|\\.)*)`/g)) {
        for (const part of (quoted ?? template).split(/\$\{[^}]*\}/)) texts[language].add(part.trim())
      }
    }
  }
  equal(values.en.filter(v => !values.de.includes(v)), [], 'texts whose values the German ones do not have')
  // Short words are names in the API, too, and assistant is that of an agent.
  return [...texts.en].filter(t => t.length > 7 && t !== 'assistant' && !texts.de.has(t))
}

/** What people see and hear of the page's own: not what was said, nor what stands in the prompt. If german, the page
 *  shows its English texts in German from then on, until unturn. */
export function shown(german) {
  const out = []
  const said = ':is(.said, .md, .long, .thoughts, pre)[dir=auto], [lang=en]:not(html), style, script'
  const texts = german ? window.texts ?? new Map() : new Map()
  const quoted = [...texts].filter(([en, de]) => en.length > 5 && en.trim() && en !== de).map(([en]) => en).sort((a, b) => b.length - a.length).map(en => en.replace(/[\\^$.*+?()[\]{}|/]/g, '\\$&'))
  const parts = new RegExp(`(?<![\\p{L}\\d])(?:${quoted.join('|') || '(?!)'})(?![\\p{L}\\d])`, 'gu')
  window.unturn = []
  const turn = (was, get, set) => {
    const whole = was.trim()
    if (!whole) return
    let now = was.replace(whole, () => texts.get(whole) ?? whole)
    for (let times = 0; times < 2; times++) now = now.replace(parts, en => texts.get(en)) // a text may have others in it
    out.push(now)
    if (now === was) return
    set(now)
    window.unturn.push(() => get() === now && set(was)) // what has changed meanwhile stays
  }
  const walk = document.createTreeWalker(document.body, NodeFilter.SHOW_ELEMENT | NodeFilter.SHOW_TEXT)
  for (let n = walk.nextNode(); n; n = walk.nextNode()) {
    if (n.nodeType === Node.TEXT_NODE) {
      if (!n.parentElement.closest(said)) turn(n.data, () => n.data, text => { n.data = text })
    } else for (const name of ['aria-label', 'title', 'placeholder', 'alt', 'aria-valuetext']) turn(n.getAttribute(name) ?? '', () => n.getAttribute(name), text => n.setAttribute(name, text))
  }
  return out.map(t => t.replace(/\brun\.[a-z]+/, '')) // without the names of events
}

/** Lets the page note each of its texts in both languages, as it asks for them. */
export async function noteTexts(context) {
  await context.addInitScript(() => {
    const texts = window.texts = new Map() // from English to German
    const both = window.both = (language, en, de) => {
      const [own, other] = language === 'de' ? [de, en] : [en, de]
      if (other === undefined || typeof own !== 'object' && !['string', 'function'].includes(typeof own)) return own
      if (typeof own === 'string') return (texts.set(en.trim(), de.trim()), own)
      if (typeof own === 'object') return Object.keys(own).reduce((all, key) => Object.assign(all, { [key]: both(language, en[key], de[key]) }), Array.isArray(own) ? [] : {})
      return (...values) => both(language, en(...values), de(...values.map(v => texts.get(v?.trim?.()) ?? v)))
    }
  })
  await context.route('**/assets/language-*.js', async route => {
    const source = await (await route.fetch()).text()
    const noting = source.replace(/(\w+)\[(\w+)\]\}/, 'both($2,$1.en,$1.de)}').replace(/(\w+)\[(\w+)\]\(\)\}/, 'Promise.all([$1.en(),$1.de()]).then(t=>both($2,...t))}')
    check(noting.split('both(').length === 3, 'the page takes its texts in another way')
    await route.fulfill({ contentType: 'text/javascript', body: noting })
  })
}

/** The page's own words and numbers that are cut or broken, and what is wider than the window. */
export function cut() {
  const own = new Set([...window.texts ?? []].flat())
  const found = document.documentElement.scrollWidth > innerWidth ? [`the page is ${document.documentElement.scrollWidth - innerWidth} px wider than the window`] : []
  const walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT)
  const range = document.createRange()
  for (let n = walk.nextNode(); n; n = walk.nextNode()) {
    const text = n.data.trim()
    if (!text || !own.has(text) && !/^[\d.,:% $<>≥–]+$/.test(text)) continue
    for (const { index, 0: word } of n.data.matchAll(/\p{L}+/gu)) {
      range.setStart(n, index)
      range.setEnd(n, index + word.length)
      if (new Set([...range.getClientRects()].map(r => r.top)).size > 1) found.push(`${word} is broken without a hyphen`)
    }
    range.selectNodeContents(n)
    const { left, right, width } = range.getBoundingClientRect()
    if (!width || right <= 0 || n.parentElement.closest('.sr, option')) continue // the closed list stands on the left
    for (let e = n.parentElement; e; e = e.parentElement) {
      const over = getComputedStyle(e).overflowX
      const box = e.getBoundingClientRect()
      if (/auto|scroll/.test(over)) break
      if (over !== 'visible' && (left < box.left - 1 || right > box.right + 1)) found.push(`${text.slice(0, 60)} in ${e.tagName.toLowerCase()}.${e.className}`)
    }
  }
  return found
}

export const cases = {
  /** A day in German: states that no other flow has; those of the others are shown in German by make show-page. */
  async german(open, { theme, width }) {
    const left = [...english(), 'did not accept the API key']
    const inEnglish = async v => (await v.page.evaluate(shown)).flatMap(text => left.filter(words => text.includes(words)).map(words => `${text.slice(0, 120)} (${words})`))
    const other = await open()
    await other.field.waitFor()
    check((await inEnglish(other)).length > 5, `none of ${left.length} English texts is found in the English page`)
    const v = await open({ locale: 'de-DE', theme, width })
    const found = []
    const look = async state => {
      found.push(...(await inEnglish(v)).map(text => `${state}: ${text}`))
      await v.state(`${state}-german`)
    }
    const field = v.page.getByRole('textbox', { name: 'Nachricht schreiben' })
    const log = v.log
    const idle = text => log.getByText(text).last().waitFor().then(() => v.idle())
    await field.waitFor()
    equal(await v.page.evaluate(() => document.documentElement.lang), 'de', 'the language of the document')
    await look('empty')
    await field.fill('Guten Tag')
    await field.press('Enter')
    await idle('answer to: Guten Tag')
    await look('chat')
    const id = await v.imported(Array.from({ length: 60 }, (_, i) => ({ role: i % 2 ? 'assistant' : 'user', content: `Zeile ${i} ${'und mehr '.repeat(20)}` })), { title: 'Sechzig Nachrichten', agent: 'careful' })
    await v.api(`sessions/${id}/summarize`, { method: 'POST' })
    await v.open(id)
    await v.answer.focus()
    await v.page.keyboard.press('w')
    await v.page.getByRole('dialog', { name: 'Wo ist diese Nachricht?' }).getByText(/wörtlich/i).waitFor()
    await look('where')
    await v.page.keyboard.press('Escape')
    await field.press('Control+.')
    await v.page.getByRole('complementary').getByText(/^\d+\.\d{3}$/).first().waitFor()
    await look('summaries')
    await v.page.keyboard.press('Escape')
    for (const [question, says] of [['fails here', 'nahm die Anfrage nicht an. Der Anbieter sagt: "the model is out of order'], ['filters this', 'Anders formulieren; hält er auch andere'], ['rejects the key', 'nimmt den Schlüssel des Servers nicht an']]) {
      await field.fill(`the provider ${question}`)
      await field.press('Enter')
      await log.getByRole('alert').getByText(says).waitFor()
    }
    for (const [code, says] of [['disk_full', 'Die Platte der Datenbank ist voll'], ['invalid', 'ändern, was der Server nennt'], ['of_tomorrow', '']]) {
      await fail(v, '**/pin', 422, { code })
      await v.button('Anheften', v.answer).click()
      const line = v.page.getByRole('alert').filter({ hasText: "the server's sentence for 422" })
      if (says) equal(await line.getByText(says).getAttribute('lang'), null, `the language of ${says}`)
      equal(await line.getByText("the server's sentence for 422").evaluate(e => e.closest('[lang]').lang), 'en', "the language of the server's sentence")
      await idWithin(line, 'Anfrage')
      await v.button('Schließen', line).click()
    }
    // A route that comes or goes while another one answers takes that one's request away: these come together.
    let why
    await v.page.route(/context$/, async route => why ? route.fulfill({ json: { ...await (await route.fetch()).json(), breaker: 'open', breaker_reason: why } }) : route.continue())
    await v.page.route(/runs(\/[\w-]+(\/events.*)?|\?.*)?$/, async route => { // of 2.4 seconds
      const response = await route.fetch()
      const body = (await response.text()).replace(/"started_at":"[^"]+"/g, '"started_at":"2026-11-30T12:00:00Z"').replace(/"finished_at":"[^"]+"/g, '"finished_at":"2026-11-30T12:00:02.4Z"')
      await route.fulfill({ response, body })
    })
    await v.page.route('**/api/v1/usage*', async route => { // large numbers
      const usage = await (await route.fetch()).text()
      await route.fulfill({ contentType: 'application/json', body: usage.replace(/"(input_tokens|cache_read_tokens|cost_micro_usd)":\d+/g, '"$1":98765432') })
    })
    await v.page.goto(`${v.args.url}#/operation/usage`)
    await v.page.waitForTimeout(700) // it has asked
    await look('operation-usage')
    await v.page.goto(`${v.args.url}#/s/${id}`)
    for (const [reason, says] of [['the model failed (rate_limit)', 'Der Anbieter des Modells nimmt zurzeit nicht mehr Anfragen an'], ['the model failed (content_filter)', 'Der Inhaltsfilter des Anbieters griff ein'], ['the summary took longer than its time limit (1m30s)', 'Die Zusammenfassung dauerte zu lange'], ['no summary was made: the answer was empty', 'Die Antwort war leer']]) {
      why = reason
      await v.page.reload()
      await log.getByText(`schlug fehl: ${says}`).waitFor()
    }
    await v.page.goto(`${v.args.url}#/s/${id}/runs`)
    await v.page.reload()
    await v.page.getByText('0,5', { exact: true }).waitFor({ state: 'attached' }) // a phone has no axis
    for (const role of ['alert', 'row']) await v.page.getByRole(role).getByText('nimmt den Schlüssel des Servers nicht an').filter({ visible: true }).waitFor()
    await v.page.unrouteAll({ behavior: 'ignoreErrors' })
    await v.open(id)
    await v.page.evaluate(() => document.activeElement.blur())
    await v.page.keyboard.press('?')
    await v.page.getByRole('dialog', { name: 'Tastatur' }).waitFor()
    await look('keys')
    equal([...new Set(found)].slice(0, 12), [], 'what is left in English')
  },

  /** Each reason of the server why a summary was made without its model, a prompt is not as asked, or a run failed is there in German. The choice in the menu: the page loads anew, with the draft and at the same place. */
  async choice(open) {
    const read = name => readFileSync(new URL(name, source), 'utf8')
    const said = (pattern, ...names) => names.flatMap(name => [...read(`../../../${name}.go`).matchAll(pattern)].map(r => r[1] ?? r[2]))
    const words = [
      ...said(/(?:rejection\{"\w+", |fallback \+ |return )"(\w+ [^"]+)"/g, 'core/summarize/gate', 'core/compaction/summary'),
      ...said(/Trigger(?:: |, warning.Reason = )"(\w+)"/g, 'core/compaction/fit', 'agents/nodes/left_out', 'agents/nodes/overflow'),
      ...said(/ErrorKind = "(\w+)"/g, 'core/llm/errors').map(kind => `model_${kind}`), ...said(/\{(?:err|core\.Err|context\.)\w+, "(\w+)"/g, 'runs/finish'), ...said(/Code: "(\w+)"/g, 'agents/engine', 'core/compaction/execute'),
      ...said(/data.Reason = "([^"]+)"|ErrNoGain = errors.New\("([^"]+)"/g, 'core/compaction/commit', 'core/summarize/summarize'),
    ]
    const german = read('context/threadWords.de.ts') + read('problemWords.de.ts')
    equal([words.length > 45, ...words.filter(w => !german.includes(`"${w}": "`) && !new RegExp(`^ +${w}: "`, 'm').test(german))], [true], 'the reasons without German words')
    const v = await open()
    await v.ask('an English beginning')
    await v.field.fill('a draft that stays')
    await v.page.waitForTimeout(500) // the page writes it down after 300 ms
    const address = v.page.url()
    await v.showList()
    await v.button('Language').click()
    await v.page.getByRole('menuitemradio', { name: 'Deutsch' }).click()
    const field = v.page.getByRole('textbox', { name: 'Nachricht schreiben' })
    await field.waitFor()
    equal([v.page.url(), await field.inputValue(), await v.page.evaluate(() => document.documentElement.lang)], [address, 'a draft that stays', 'de'], 'after the choice')
    await v.page.reload()
    await field.waitFor()
    await v.showList()
    await v.button('Sprache').click()
    await v.page.getByRole('menuitemradio', { name: 'English' }).click()
    await v.field.waitFor()
    equal(await v.field.inputValue(), 'a draft that stays', 'the draft')
  },
}
