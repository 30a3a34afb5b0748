// The page in German: its flows go, and no English text of the catalogue is left.
import { readFileSync, readdirSync } from 'node:fs'
import { fail } from './failures.mjs'
import { check, equal } from './visit.mjs'

const source = new URL('../../../app/web/ui/src/', import.meta.url)

/** The texts of a catalogue that no other language has: each literal, and the parts of those with values in them. */
function english() {
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

/** What people see and hear of the page's own: not what was said, nor what stands in the prompt. */
function shown() {
  const out = []
  const said = ':is(.said, .md, .long, .thoughts, pre)[dir=auto]'
  const walk = document.createTreeWalker(document.body, NodeFilter.SHOW_ELEMENT | NodeFilter.SHOW_TEXT)
  for (let n = walk.nextNode(); n; n = walk.nextNode()) {
    if (n.nodeType === Node.TEXT_NODE) out.push(n.parentElement.closest(said) ? '' : n.data)
    else for (const name of ['aria-label', 'title', 'placeholder', 'alt', 'aria-valuetext']) out.push(n.getAttribute(name) ?? '')
  }
  return out.map(t => t.replace(/\brun\.[a-z]+/, '')).filter(t => t.trim()) // without the names of events
}

export const cases = {
  /** A day in German: every state of the main flows. */
  async german(open, { theme, width }) {
    const left = english()
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
    await v.button('Neue Antwort', v.answer).click()
    await log.getByText('2 / 2').waitFor()
    await v.idle()
    await field.press('Control+.')
    await v.page.getByRole('complementary', { name: 'Kontext des nächsten Prompts' }).getByText('0 verloren').waitFor()
    await look('context')
    await v.page.keyboard.press('Escape')
    await v.page.keyboard.press('Control+k')
    await v.page.getByRole('combobox', { name: 'In Titeln und Nachrichten suchen' }).fill('Guten')
    await v.page.getByRole('option').first().waitFor()
    await look('search')
    await v.page.keyboard.press('Escape')
    await v.button('Mehr', v.page.getByRole('main')).click()
    await look('menu')
    await v.page.keyboard.press('Escape')

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
    await v.page.getByRole('button', { name: /^Modell: / }).click()
    await v.page.getByRole('menuitemradio', { name: /smaller/ }).click()
    await v.page.getByRole('dialog', { name: 'Zu smaller wechseln?' }).waitFor()
    await v.button('Wechseln').waitFor()
    await look('switch')
    await v.page.keyboard.press('Escape')
    await field.fill('calculate das')
    await field.press('Enter')
    await v.page.getByRole('region', { name: 'Frage: Darf calculator starten?' }).waitFor()
    await look('approval')
    await v.button('Erlauben').click()
    await idle('answer to: calculate das')
    await v.page.getByRole('region', { name: /^Erlaubt/ }).first().waitFor()
    await field.fill('the provider fails here')
    await field.press('Enter')
    await log.getByRole('alert').getByText('Die Antwort brach ab').waitFor()
    await look('error')
    for (const [code, says, lang] of [['disk_full', 'Die Platte der Datenbank ist voll', null], ...['storage_full', 'context_floor', 'of_tomorrow'].map(code => [code, "the server's sentence for 422", 'en'])]) {
      await fail(v, '**/pin', 422, { code })
      await v.button('Anheften', v.answer).click()
      equal(await v.page.getByText(says).getAttribute('lang'), lang, `the language of ${says}`)
    }
    // The rooms behind addresses of their own.
    for (const [name, address] of Object.entries({
      runs: `s/${id}/runs`, prompt: `s/${id}/prompt`, operation: 'operation', ...Object.fromEntries(['runs', 'deliveries', 'usage', 'memories'].map(t => [`operation-${t}`, `operation/${t}`])),
    })) {
      await v.page.goto(`${v.args.url}#/${address}`)
      await v.page.waitForTimeout(700) // it has asked
      await look(name)
    }
    await v.open(id)
    await v.control('refuse', { on: 'true' })
    await v.page.getByText('Keine Verbindung').first().waitFor()
    await look('offline')
    await v.control('refuse', { on: 'false' })
    await v.page.getByText('Keine Verbindung').first().waitFor({ state: 'detached', timeout: 30_000 })
    await v.page.evaluate(() => document.activeElement.blur())
    await v.page.keyboard.press('?')
    await v.page.getByRole('dialog', { name: 'Tastatur' }).waitFor()
    await look('keys')
    equal([...new Set(found)].slice(0, 12), [], 'what is left in English')
  },

  /** The choice in the menu: the page loads anew, with the draft and at the same place. */
  async choice(open) {
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
    await v.showList()
    await v.button('Sprache').click()
    await v.page.getByRole('menuitemradio', { name: 'English' }).click()
    await v.field.waitFor()
    equal(await v.field.inputValue(), 'a draft that stays', 'the draft')
  },
}
