// A visit is one person's tab: what they see and do, and what the page did that it must not.
import { mkdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { cut, english, noteTexts, shown } from './language.mjs'

const report = process.env.REPORT
let left // English texts
const axe = readFileSync(new URL('node_modules/axe-core/axe.min.js', import.meta.url), 'utf8')
/** The widest layout begins at 1180; only the report's pictures need the size of the design's, and drawing costs. */
const wide = { viewport: report ? { width: 1440, height: 900 } : { width: 1200, height: 640 } }
const phone = { viewport: { width: 375, height: 844 }, deviceScaleFactor: 2, hasTouch: true }

/** Contexts by what they look like, and in each the tabs that no case has any more: a tab that is open already needs
 *  half of the processor's time for the next case's document. */
const contexts = new Map()

function contextOf(browser, { width, theme = 'light', locale = 'en-US', fresh }) {
  const make = async () => {
    const context = await browser.newContext({ ...(width === 'phone' ? phone : wide), colorScheme: theme, reducedMotion: 'reduce', locale })
    if (report) await noteTexts(context)
    return context
  }
  if (fresh) return make()
  const key = `${width} ${theme} ${locale}`
  if (!contexts.has(key)) contexts.set(key, make())
  return contexts.get(key)
}

const unused = new WeakMap()

/** A tab of the context. What it does is noted in the visit that has it. */
async function newTab(context) {
  const tab = { page: await context.newPage() }
  const { page } = tab
  const fault = text => tab.visit?.faults.push(text)
  page.on('dialog', d => { fault(`dialog: ${d.message()}`); void d.dismiss() })
  page.on('pageerror', e => fault(`error: ${e.stack ?? e}`))
  page.on('popup', p => fault(`window: ${p.url()}`))
  page.on('console', m => {
    if (m.type() === 'error' && !/Failed to load resource|net::ERR_/.test(m.text())) fault(`console: ${m.text()}`)
  })
  for (const end of ['requestfinished', 'requestfailed']) page.on(end, r => tab.visit?.held.delete(r))
  page.on('request', r => {
    const url = r.url()
    if (url.endsWith('/events')) tab.visit?.held.add(r)
    // A site that shows the widget loads it from Bobbin.
    const own = tab.visit ? [tab.visit.args.url, tab.visit.args.bobbin ?? tab.visit.args.url].map(a => new URL(a).origin) : []
    if (tab.visit && !own.some(o => url.startsWith(o)) && !/^(data|blob|about):/.test(url)) { tab.visit.foreign.push(url); fault(`request: ${url}`) }
  })
  await page.exposeFunction('tellViolation', text => { tab.visit?.violations.push(text); fault(`policy: ${text}`) })
  await page.exposeFunction('pwned', text => fault(`script: ${text}`))
  await page.addInitScript(() => {
    new MutationObserver((_, observer) => {
      if (!document.querySelector('textarea')) return
      window.usableAt = performance.now()
      observer.disconnect()
    }).observe(document, { childList: true, subtree: true })
    addEventListener('securitypolicyviolation', e => window.tellViolation(`${e.violatedDirective} ${e.blockedURI} ${e.sample}`))
  })
  return tab
}

/** Notes in the page when what the selector names is there. */
function noteShown(selector) {
  new MutationObserver((_, observer) => {
    if (!document.querySelector(selector)) return
    window.shownAt = performance.now()
    observer.disconnect()
  }).observe(document, { childList: true, subtree: true })
}

export class Visit {
  static async open(browser, args, label) {
    const visit = new Visit()
    Object.assign(visit, { args, label, faults: [], foreign: [], violations: [], held: new Set(), states: new Set() })
    visit.context = args.share?.context ?? await contextOf(browser, args)
    visit.tab = unused.get(visit.context)?.pop() ?? await newTab(visit.context)
    visit.tab.visit = visit
    visit.page = visit.tab.page
    visit.page.setDefaultTimeout(args.patience ?? 15_000)
    if (args.shows) await visit.page.addInitScript(noteShown, args.shows)
    await visit.page.goto(args.url + (args.hash ?? ''))
    return visit
  }

  get field() { return this.page.getByRole('textbox', { name: /^Write / }) }
  get log() { return this.page.getByRole('log') }
  get articles() { return this.log.getByRole('article') }
  get answer() { return this.articles.last() }
  get list() { return this.page.getByRole('navigation', { name: /^(All conversations|Alle Unterhaltungen)$/ }) }
  button(name, within = this.page) { return within.getByRole('button', { name, exact: true }) }

  /** Opens the list where it is a drawer. */
  async showList() {
    const menu = this.page.getByRole('button', { name: /^(Show the list|Liste zeigen)$/ })
    await menu.or(this.list).filter({ visible: true }).first().waitFor()
    if (await menu.isVisible() && await menu.getAttribute('aria-expanded') === 'false') await menu.click()
  }

  async send(text) {
    await this.field.fill(text)
    await this.field.press('Enter')
  }

  /** Sends and waits for the whole answer. */
  async ask(text) {
    await this.send(text)
    await this.settled(`answer to: ${text}`)
  }

  /** Waits until the text is in the thread and nothing is being written. */
  async settled(text) {
    await this.log.getByText(text).last().waitFor()
    await this.idle()
  }

  async idle() {
    await this.page.locator('[role=log][aria-busy=false]').waitFor()
    await this.log.locator('article[aria-busy=true]').first().waitFor({ state: 'detached' })
  }

  session() { return /#\/s\/([\w-]+)/.exec(this.page.url())?.[1] ?? '' }

  /** What was said, text by text, without names, times and buttons; also out of sight, where nothing has an inner text. */
  async texts() {
    const said = ':is(.said, .long, .md)'
    return this.articles.locator(`${said}:not(${said} ${said})`).allTextContents()
  }

  async control(path, values = {}) {
    const answer = await fetch(`${this.args.control}/${path}`, { method: 'POST', body: new URLSearchParams(values) })
    if (!answer.ok) throw new Error(`${path}: ${answer.status}`)
  }

  /** Asks the API as the page's person does, without the page. */
  async api(path, { method = 'GET', json, body, type } = {}) {
    const answer = await fetch(new URL('api/v1/' + path, this.args.bobbin ?? this.args.url), {
      method,
      headers: { ...(this.args.key ? { Authorization: `Bearer ${this.args.key}` } : {}), ...(json ? { 'Content-Type': 'application/json' } : type ? { 'Content-Type': type } : {}) },
      body: json ? JSON.stringify(json) : body,
    })
    if (!answer.ok) throw new Error(`${method} ${path}: ${answer.status} ${await answer.text()}`)
    return answer.status === 204 ? undefined : answer.json()
  }

  /** The events of the open conversation after a number, through the first of a kind, as they were sent. */
  async events(after, last) {
    const stop = new AbortController()
    const answer = await fetch(new URL(`api/v1/sessions/${this.session()}/events?after=${after}`, this.args.url), { signal: stop.signal })
    let text = ''
    for await (const piece of answer.body.pipeThrough(new TextDecoderStream())) {
      text += piece
      if (text.includes(`event: ${last}\n`) && text.endsWith('\n\n')) break
    }
    stop.abort()
    return text.split('\n\n').filter(e => e.includes('event: '))
  }

  /** A conversation with a history, without a run. */
  async imported(messages, session = {}) {
    const { id } = await this.api('sessions', { method: 'POST', json: { agent: 'assistant', ...session } })
    if (messages.length) await this.api(`sessions/${id}/messages/import`, { method: 'POST', type: 'application/jsonl', body: messages.map(m => JSON.stringify(m)).join('\n') })
    return id
  }

  async open(session, seq) {
    await this.page.goto(`${this.args.url}#/s/${session}${seq ? `/m/${seq}` : ''}`)
    await this.idle()
  }

  /** Presses what is in the conversation's menu. */
  async menu(name) {
    await this.page.getByRole('main').getByRole('button', { name: /^(More|Mehr)$/ }).click()
    await this.page.getByRole('menuitem', { name }).click()
  }

  /** Gives a file, of a path if it has no text, to what asks for one after a press. */
  async choose(press, name, text) {
    const [chooser] = await Promise.all([this.page.waitForEvent('filechooser'), press()])
    await chooser.setFiles(text === undefined ? name : { name, mimeType: name.endsWith('.json') ? 'application/json' : 'text/plain', buffer: Buffer.from(text) })
  }

  /** Holds the next answer that fits, which is the server's if none is given; asked: it is there, and waits for release. */
  async hold(pattern, answer) {
    const gate = {}
    let told
    const held = new Promise(done => (gate.release = done))
    gate.asked = new Promise(done => (told = done))
    await this.page.route(pattern, async route => {
      const given = answer ?? { response: await route.fetch() }
      told()
      await held
      await route.fulfill(given)
    }, { times: 1 })
    return gate
  }

  /** Seconds of the processor that the page's main thread has taken so far. */
  async cpu() {
    if (!this.tab.devtools) {
      this.tab.devtools = await this.context.newCDPSession(this.page)
      await this.tab.devtools.send('Performance.enable', { timeDomain: 'threadTicks' })
    }
    const { metrics } = await this.tab.devtools.send('Performance.getMetrics')
    return metrics.find(m => m.name === 'TaskDuration').value
  }

  /** A state: axe finds nothing in it, or of some rules only; and a picture for the report, if one is wanted. CI looks
   *  at those states that a case calls main. */
  async state(name, { main = false, within = this.page, rules } = {}) {
    if (main || this.args.long) {
      if (!await within.evaluate('typeof axe === "object"')) await within.evaluate(axe + ';0')
      const found = await within.evaluate(runOnly => window.axe.run(document, { resultTypes: ['violations'], preload: false, ...runOnly && { runOnly } }).then(r => r.violations.map(b => `${b.id}: ${b.nodes.slice(0, 3).map(n => n.html.slice(0, 160)).join(' | ')}`)), rules)
      this.faults.push(...found.map(f => `axe in ${name}: ${f}`))
      this.states.add(name)
    }
    if (!report || rules) return // what is looked at again is in the other theme
    await this.look(name)
    if (this.args.locale === 'de-DE') return
    left ??= english()
    for (const text of await this.inFrames(shown, true)) {
      const words = left.find(w => text.includes(w))
      if (words) this.faults.push(`${name} in German: ${text.slice(0, 120)} (${words})`)
    }
    await this.look(`${name}-german`)
    await this.inFrames(() => window.unturn.forEach(put => put()))
  }

  /** Nothing is cut; and the picture. */
  async look(name) {
    const theme = this.args.theme ?? 'light'
    const width = this.args.width ?? 'wide'
    this.faults.push(...(await this.inFrames(cut)).map(f => `cut in ${name}: ${f}`))
    mkdirSync(join(report, 'shots'), { recursive: true })
    await this.page.screenshot({ path: join(report, 'shots', `${name}-${theme}-${width}.png`) })
  }

  async inFrames(what, value) {
    return (await Promise.all(this.page.frames().map(f => f.evaluate(what, value)))).flat().filter(Boolean)
  }

  async describe() {
    const text = await this.page.locator('body').ariaSnapshot().catch(() => '')
    return `at ${this.page.url()}, with ${this.faults.join('; ') || 'no faults'}:\n${text.length > 5000 ? text.slice(0, 1500) + '\n…\n' + text.slice(-3500) : text}`
  }

  /** What a case has left in its tab goes: the next one is another person's. */
  async close() {
    await this.page.unrouteAll({ behavior: 'ignoreErrors' }).catch(() => {})
    if (this.args.fresh) return this.context.close().catch(() => {})
    try {
      await this.page.evaluate(() => { localStorage.clear(); sessionStorage.clear() })
      await this.page.goto('about:blank')
      this.tab.visit = undefined
      unused.set(this.context, [...unused.get(this.context) ?? [], this.tab])
    } catch {
      await this.page.close().catch(() => {}) // it hangs, or is gone
    }
  }
}

/** What the locator names has the focus, now or soon. */
export function focused(v, what, locator) {
  return until(`the focus is on ${what}`, () => locator.evaluate(e => e === document.activeElement))
}

export function equal(got, want, what) {
  if (JSON.stringify(got) !== JSON.stringify(want)) throw new Error(`${what}: got ${JSON.stringify(got)}, want ${JSON.stringify(want)}`)
}

export function check(holds, what) {
  if (!holds) throw new Error(what)
}

/** Asks until it holds: for what the page does not tell by an event. */
export async function until(what, holds, ms = 15_000) {
  for (const limit = Date.now() + ms; ; await new Promise(r => setTimeout(r, 50))) {
    if (await holds()) return
    if (Date.now() > limit) throw new Error(`not within ${ms} ms: ${typeof what === 'function' ? await what() : what}`)
  }
}
