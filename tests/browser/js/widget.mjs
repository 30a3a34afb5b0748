// The widget on a site of another origin: visitors talk in its bubble, and nobody else gets in.
import { fail } from './failures.mjs'
import { payloads } from './payloads.mjs'
import { check, equal, until } from './visit.mjs'
import { inspect, parts } from './xss.mjs'

const rich = 'Probably **yes**:\n\n| Bar | Yours |\n|---:|---:|\n| 2 | 0.02 |\n| 4 | 0.09 |\n\n```\nprobe read\n```'

/** A site with the widget, which is open. */
async function visit(open, query = {}, more = {}) {
  const v = await open({ fresh: true, hash: `?${new URLSearchParams(query)}`, ...more })
  v.bubble = v.page.getByRole('button', { name: query.title ?? 'Fieldnote support' })
  v.frame = v.page.frameLocator('bobbin-widget iframe')
  v.write = v.frame.getByRole('textbox')
  await v.bubble.click()
  return v
}

async function say(v, text) {
  await v.write.fill(text)
  await v.write.press('Enter')
}

async function ask(v, text, answer = `answer to: ${text}`) {
  await say(v, text)
  await v.frame.getByText(answer).last().waitFor()
  await v.frame.locator('[role=log][aria-busy=false]').waitFor()
}

const frameOf = v => v.page.frames().find(f => f.url().includes('/widget.html'))

/** Sessions of the site's visitor, newest first. */
const sessions = async v => (await v.api('sessions?user_id=ada')).items

export const cases = {
  /** Token that has expired, a talk with a tool, closing, another page, a new conversation. */
  async talk(open) {
    const v = await visit(open, { life: -3600 })
    await v.frame.getByText('Ask about probes').waitFor()
    await ask(v, 'how do I calculate it?')
    equal(await v.page.evaluate(() => asked), 2, 'tokens that the site was asked for')
    const [session, ...others] = await sessions(v)
    equal([session.user_id, session.source], ['ada', 'web'], 'the session')
    const { items } = await v.api(`sessions/${session.id}/messages`)
    check(items.some(m => m.role === 'tool'), 'no tool was called')
    const words = await v.frame.locator('body').innerText()
    check(!/calculator|token|\b42\b|6\*7/i.test(words), `the widget tells too much: ${words}`)
    await v.write.press('Escape')
    await until('the bubble has the focus', () => v.bubble.evaluate(e => e.getRootNode().activeElement === e && e.ariaExpanded === 'false'))
    await v.page.reload()
    await v.bubble.click()
    await v.frame.getByText('answer to: how do I calculate it?').waitFor()
    equal(await v.page.evaluate(() => asked), 2, 'tokens that the site was asked for after several refusals at once')
    check(await v.write.evaluate(e => e === document.activeElement), 'the field has no focus')
    await v.frame.getByRole('button', { name: 'New conversation' }).click()
    await v.frame.getByText('answer to:').waitFor({ state: 'detached' })
    await ask(v, 'and another one')
    equal((await sessions(v)).length, others.length + 2, 'conversations')
    equal(await v.page.evaluate(() => [document.cookie, localStorage.length, sessionStorage.length, e]), ['', 0, 0, 'of the page'], 'what the site holds')
  },

  /** An origin that is not allowed: no frame, and the console says what to set. */
  async refused(open, { foreign }) {
    const v = await visit(open, {}, { url: foreign })
    await until('the console says what to set', () => v.faults.some(f => f.includes(`Add ${new URL(foreign).origin} to server.widget_origins`)))
    await v.bubble.waitFor({ state: 'detached' })
    check(v.faults.every(f => /frame-ancestors|server\.widget_origins/.test(f)), `other faults: ${v.faults}`)
    v.faults.length = 0
  },

  /** Only the page around the frame is listened to; without a token nothing works, and it says so. */
  async messages(open) {
    const v = await visit(open)
    await ask(v, 'with my own token')
    const frame = frameOf(v)
    await v.page.evaluate(() => {
      const other = document.createElement('iframe')
      document.body.append(other)
      const target = document.querySelector('bobbin-widget').shadowRoot.querySelector('iframe').contentWindow
      const script = other.contentDocument.createElement('script')
      other.contentWindow.target = target
      script.textContent = 'target.postMessage({ bobbin: "token", token: "of somebody else" }, "*"); target.postMessage({ bobbin: "start", look: { title: "evil" }, token: "x" }, "*")'
      other.contentDocument.body.append(script)
    })
    await ask(v, 'still with my own token')
    equal(await frame.evaluate(() => document.title), 'Fieldnote support', 'the title')
    // What the page itself says twice, or wrongly, changes nothing.
    await v.page.evaluate(() => {
      const target = document.querySelector('bobbin-widget').shadowRoot.querySelector('iframe').contentWindow
      for (const what of [null, 'text', 7, {}, { bobbin: 'start', look: null, token: 5 }, { bobbin: 'nothing' }]) target.postMessage(what, '*')
    })
    await ask(v, 'and once more')
    const alone = await visit(open, { function: 'nobody' })
    await say(alone, 'without a token')
    await alone.frame.getByText('Your sign-in on this page has ended.').waitFor()
    await until('the console says what is wrong', () => alone.faults.some(f => f.includes('data-token-function is "nobody"')))
    alone.faults.length = 0
  },

  /** A stream that ends with its token goes on with the next one; what breaks is said in words. */
  async away(open) {
    const v = await visit(open, { life: 4 })
    await say(v, 'hold-widget one two three')
    await v.control('release', { mark: 'hold-widget', pieces: 2 })
    await v.frame.getByText('answer to:').waitFor()
    await until('the site was asked again', () => v.page.evaluate(() => asked >= 2), 60_000)
    await v.control('release', { mark: 'hold-widget', pieces: 20 })
    await v.frame.getByText('answer to: hold-widget one two three').waitFor()
    await v.control('refuse', { on: 'true' })
    await v.frame.getByText('No connection').first().waitFor()
    await say(v, 'written without a connection')
    await v.control('refuse', { on: 'false' })
    await v.frame.getByText('answer to: written without a connection').waitFor()
    await say(v, 'the provider fails here')
    const broke = v.frame.getByRole('alert').getByText('The answer broke off')
    await broke.waitFor()
    await ask(v, 'the provider cuts this', 'half an answer')
    await broke.waitFor()
    await v.frame.getByRole('status').getByText('The answer broke off').waitFor({ state: 'attached' })
    // What was refused is said until the answer ends.
    await say(v, 'hold-on one two')
    await fail(v, '**/cancel', 500)
    await v.frame.getByRole('button', { name: 'Stop' }).click()
    await v.frame.getByRole('alert').getByText('That did not work').waitFor()
    await v.control('release', { mark: 'hold-on', pieces: 20 })
    await v.frame.getByText(/hold-on one two$/).last().waitFor()
    await v.frame.getByRole('alert').waitFor({ state: 'detached' })
  },

  /** What a visitor has written is not lost: beside an answer, when it is refused, and by a reload. */
  async written(open) {
    const v = await visit(open)
    const back = async (refused, typed) => {
      await fail(v, /\/(sessions|messages)$/, 403, { code: 'missing_scope' })
      await say(v, refused)
      await v.frame.getByRole('alert').getByText('This key may not do this').waitFor()
      await v.write.fill(typed)
      await v.frame.getByRole('button', { name: 'Put back to edit' }).click()
      equal(await v.write.inputValue(), `${refused}\n\n${typed}`, 'the field')
      equal(await v.frame.locator('.waits').count(), 0, 'messages that wait')
    }
    await back('the first one', 'typed meanwhile')
    await v.page.waitForTimeout(500) // written down after 300 ms
    await v.page.reload()
    await v.bubble.click()
    await until('the draft is there', async () => await v.write.inputValue() === 'the first one\n\ntyped meanwhile')
    await ask(v, 'a question')
    await back('another one', 'typed again')
    await say(v, 'hold-written one two')
    await v.write.fill('the next question')
    await v.frame.getByRole('button', { name: 'Send' }).waitFor()
    await v.frame.getByRole('button', { name: 'Stop' }).press('Enter')
    await v.frame.getByRole('log').getByText('You stopped it').waitFor()
    const focused = () => v.write.evaluate(e => e === document.activeElement)
    equal([await v.write.inputValue(), await focused()], ['the next question', true], 'the field after the stop')
    await v.control('release', { mark: 'hold-written', pieces: 20 })
    // What failed is said until the visitor goes on.
    await fail(v, '**/regenerate', 403, { code: 'missing_scope' })
    await v.frame.getByRole('button', { name: 'Answer again' }).click()
    const refusal = v.frame.getByRole('alert').filter({ hasText: 'This key may not do this' })
    await refusal.getByRole('button', { name: 'Close' }).click()
    await refusal.waitFor({ state: 'detached' })
    check(await focused(), 'the focus is lost with the button')
    await fail(v, '**/regenerate', 403, { code: 'missing_scope' })
    await v.frame.getByRole('button', { name: 'Answer again' }).press('Enter')
    await refusal.waitFor()
    check(await focused(), 'the field has no focus after Answer again')
    await ask(v, 'it goes on')
    equal(await v.frame.getByRole('alert').count(), 0, 'failures after the next answer')
  },

  /** A tool that has to be allowed: the visitor is told that somebody has to, and not which. */
  async waits(open) {
    const v = await visit(open, { agent: 'careful' })
    await say(v, 'calculate this')
    const waits = v.frame.getByRole('log').getByText('An answer has to be allowed by somebody first.')
    await waits.waitFor()
    check(!/calculator|6\*7/.test(await v.frame.locator('body').innerText()), 'the widget names the tool')
    const run = await v.api(`runs/${(await sessions(v))[0].active_run_id}`)
    await v.api(`runs/${run.id}/approvals/${run.approvals[0].id}`, { method: 'POST', json: { decision: 'approve' } })
    await v.frame.getByText('answer to: calculate this').waitFor()
    await waits.waitFor({ state: 'detached' })
  },

  /** Title, greeting, what visitors and models say: nothing runs. */
  async hostile(open) {
    const all = payloads(300).map(p => p.replaceAll('\0', ''))
    const look = async (v, what) => {
      equal(await frameOf(v).evaluate(inspect), [], `in the frame: ${what}`)
      equal(v.foreign, [], 'requests elsewhere')
    }
    for (const some of parts(all, 50)) {
      const title = some[0].replaceAll(/\s+/g, ' ').trim().slice(0, 100)
      const v = await visit(open, { title: `Chat ${title}`, greeting: some.join('\n') })
      await v.frame.getByRole('heading', { level: 1 }).waitFor()
      await look(v, title)
    }
    const v = await visit(open)
    await ask(v, 'and now the messages')
    const [{ id }] = await sessions(v)
    for (const [round, some] of parts(all, 20).entries()) { // the widget loads 50 messages
      const messages = [...some.flatMap(content => ['user', 'assistant'].map(role => ({ role, content }))), { role: 'user', content: `drawn ${round}` }]
      await v.api(`sessions/${id}/messages/import`, { method: 'POST', type: 'application/jsonl', body: messages.map(m => JSON.stringify(m)).join('\n') })
      await v.page.reload()
      await v.bubble.click()
      await v.frame.getByText(new RegExp(`drawn ${round}$`)).waitFor()
      await look(v, some[0])
    }
    return { payloads: all.length }
  },

  /** The text on each accent can be read. */
  async look(open) {
    const v = await visit(open, { accent: '#ffe100', side: 'left', lang: 'de' })
    await ask(v, 'schwarz auf gelb')
    const colors = e => [getComputedStyle(e).backgroundColor, getComputedStyle(e).color]
    equal(await v.frame.locator('.me').first().evaluate(colors), ['rgb(255, 225, 0)', 'rgb(0, 0, 0)'], 'a light accent')
    await v.frame.getByText('Ein Assistent antwortet sofort').waitFor()
    await v.write.press('Escape') // on a phone the open chat covers the bubble
    equal(await v.bubble.evaluate(colors), ['rgb(255, 225, 0)', 'rgb(0, 0, 0)'], 'the bubble')
    check(await v.bubble.evaluate(e => e.getBoundingClientRect().left < 100), 'it is not on the left')
    // A reader's own colors leave borders only.
    for (const part of [v.bubble, v.frame.locator('.me').first()]) equal(await part.evaluate(e => getComputedStyle(e).border), '1px solid rgba(0, 0, 0, 0)', 'a border')
    const dark = await visit(open, { accent: '#102030' })
    await ask(dark, 'white on blue')
    equal(await dark.frame.locator('.me').first().evaluate(colors), ['rgb(16, 32, 48)', 'rgb(255, 255, 255)'], 'a dark accent')
  },

  /** Axe in each theme and width. */
  async audit(open, args) {
    const looks = args.theme ? [args] : ['light', 'dark'].flatMap(theme => ['wide', 'phone'].map(width => ({ theme, width })))
    for (const { theme, width } of looks) {
      const v = await visit(open, {}, { theme, width })
      await v.frame.getByText('Ask about probes').waitFor()
      await v.state('widget-empty', { within: frameOf(v) })
      await ask(v, rich, 'Yours')
      await v.frame.locator('table').first().waitFor()
      await v.state('widget', { within: frameOf(v) })
      await v.state('widget')
      check(await frameOf(v).evaluate(() => document.documentElement.scrollWidth <= innerWidth), 'the widget is wider than its frame')
    }
  },
}
