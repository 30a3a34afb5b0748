// What can fail, and what the page says and does then.
import { check, equal, until } from './visit.mjs'
import { compare } from './chat.mjs'

/** Answers the next request that fits, or so many, with a problem; those after them reach Bobbin. */
export function fail(v, pattern, status, { code = '', times = 1, ...headers } = {}) {
  const answer = { status, contentType: 'application/problem+json', headers: { 'X-Request-Id': '01a1fd1b-c4bd-7000', ...headers }, body: JSON.stringify({ type: 'about:blank', title: 'No', status, code, detail: `the server's sentence for ${status}` }) }
  return v.page.route(pattern, route => route.fulfill(answer), { times })
}

/** The request's id beside what failed, as the server gave it: in the window, with nothing over it. */
export async function idWithin(place, what = 'request') {
  const id = place.getByRole('button', { name: `${what} 01a1fd1b-c4bd` }).first()
  await id.waitFor()
  await until('the failure is in sight', () => id.evaluate(e => {
    const { top, bottom, left, right } = e.getBoundingClientRect()
    return top >= 0 && left >= 0 && bottom <= innerHeight && right <= innerWidth && e.contains(document.elementFromPoint((left + right) / 2, (top + bottom) / 2))
  }))
}

/** The page's one line says why something failed. */
export async function refused(v, text) {
  const line = v.page.getByRole('alert').filter({ hasText: text })
  await idWithin(line)
  await v.button('Close', line).click()
}

/** What a refused message says; what waits for a while is sent by itself, the rest by a press. */
const refusals = [
  { status: 403, code: 'missing_scope', says: 'This key may not do this' },
  { status: 409, code: 'stale', says: 'Someone else was faster' },
  { status: 413, says: 'Too large' },
  { status: 429, code: 'spend_limit', 'Retry-After': '3600', says: 'the limit of this key is spent' },
  { status: 429, 'Retry-After': '2', says: 'Too many at once', later: true },
  { status: 503, 'Retry-After': '3', says: 'Not available at the moment', later: true },
  { status: 503, code: 'not_ready', 'Retry-After': '2', says: 'Bobbin is starting again', later: true },
  { status: 401, says: 'Your key is no longer valid', sign: true },
]

export const cases = {
  async refusals(open) {
    const v = await open()
    await v.ask('a conversation')
    for (const { says, later, sign, status, ...more } of refusals) {
      const text = `refused with ${status} ${more.code ?? 'at once'}`
      await fail(v, '**/messages', status, more)
      await v.send(text)
      await v.page.getByText(says).first().waitFor()
      await idWithin(v.page.getByRole('main'))
      await v.page.getByText(text).first().waitFor()
      if (sign) {
        await fail(v, /sessions\?/, 500)
        for (const says of ["the server's sentence for 500", text]) {
          await v.page.getByLabel('Key or token').fill('any-key-will-do-on-this-server-here')
          await v.button('Sign in').click()
          await v.page.getByText(says).first().waitFor()
        }
      } else if (later) {
        await v.page.getByText('Next try in 1 s').waitFor() // of 3: it counts down
      } else {
        await v.log.getByText(`the server's sentence for ${status}`).waitFor()
        await v.button('Try again', v.log).click()
      }
      await v.settled(`answer to: ${text}`)
    }
    await compare(v)
  },

  /** What fails says so where a person looks: older messages at their place, all else over the composer. */
  async asides(open) {
    const v = await open()
    const top = () => v.log.evaluate(e => { e.scrollTop = 0 })
    const said = Array.from({ length: 120 }, (_, i) => ({ role: i % 2 ? 'assistant' : 'user', content: `turn ${i} ${'of many words '.repeat(20)}` }))
    const id = await v.imported(said, { title: 'with more above' })
    await fail(v, /messages\?.*before=/, 403)
    await v.open(id)
    await top()
    const alert = v.log.getByRole('alert')
    await alert.getByText("the server's sentence for 403").waitFor()
    await idWithin(alert)
    await v.button('Try again', alert).click()
    await v.log.getByText('turn 69').first().waitFor()
    await v.page.keyboard.press('Control+.')
    await v.button('Summarize now…').click()
    await v.button('Summarize', v.page.getByRole('dialog')).click()
    await fail(v, '**/restore', 409, { code: 'stale' })
    await top()
    await v.button('Undo', v.page.getByRole('status')).click()
    await refused(v, 'Someone else was faster')
    await fail(v, '**/pin', 403)
    await top()
    await v.button('Pin', v.articles.first()).click()
    await refused(v, "the server's sentence for 403")
    const other = await v.imported([{ role: 'user', content: 'another conversation' }])
    const { release } = await v.hold('**/pin', { status: 422, json: { title: 'No', status: 422, code: '', detail: 'a long sentence '.repeat(2000) } })
    await top()
    await v.button('Pin', v.articles.first()).click()
    await v.open(other)
    await v.settled('another conversation')
    const answered = v.page.waitForResponse('**/pin')
    release()
    await answered
    await fail(v, '**/fork', 403) // comes behind it
    await v.articles.first().hover()
    await v.button('Fork from here', v.articles.first()).click()
    await refused(v, "the server's sentence for 403")
    equal(await v.page.getByRole('alert').count(), 0, 'failures of another conversation')
    await v.open(id)
    const line = v.page.locator('.refusal').filter({ hasText: 'a long sentence' })
    await line.waitFor()
    check(await line.evaluate(e => e.clientHeight <= innerHeight * 0.4 + 1), 'the line has no greatest height')
    await v.open(other)
    await v.settled('another conversation')
    await v.open(id)
    await v.settled('turn 119')
    equal(await line.count(), 0, 'failures of a place that was left')
    await v.page.keyboard.press('Alt+2') // from another view, too
    await fail(v, /sessions\/[\w-]+$/, 403)
    await v.page.keyboard.press('F2')
    await v.page.getByRole('textbox', { name: 'New title' }).fill('refused')
    await v.page.keyboard.press('Enter')
    await refused(v, "the server's sentence for 403")
    await v.page.keyboard.press('Alt+1')
    const form = new FormData()
    form.append('file', new Blob(['text of a file'], { type: 'text/plain' }), 'lost.txt')
    const { id: blob } = await v.api('blobs', { method: 'POST', body: form })
    await v.api(`sessions/${id}/messages`, { method: 'POST', json: { content: 'with a file', parts: [{ blob_id: blob }] } })
    await v.settled('answer to: with a file')
    await fail(v, /blobs\/[\w-]+$/, 404)
    await v.log.getByRole('button', { name: /lost\.txt/ }).click()
    await refused(v, "the server's sentence for 404")
    const phone = await open({ width: 'phone', hash: `#/s/${id}` })
    await phone.settled('with a file')
    await fail(phone, /sessions\/[\w-]+$/, 403)
    await phone.menu('Archive')
    await refused(phone, "the server's sentence for 403")
    await fail(phone, '**/import?*', 413)
    await phone.choose(() => phone.menu('Import a file…'), 'any.json', '{}')
    await phone.page.getByRole('alert').waitFor()
    await phone.state('refused')
    await refused(phone, 'Too large')
  },

  /** The list asks once for a page that does not come, and again when it is told to. */
  async list(open) {
    const v = await open()
    for (let i = 0; i < 60; i++) await v.imported([], { title: `of many ${i}` })
    const next = /sessions\?.*cursor=/
    let asked = 0
    await v.page.route(next, route => { asked++; return route.fulfill({ status: 500, contentType: 'application/problem+json', body: '{"status":500,"code":"","detail":"out of order"}' }) })
    await v.page.reload()
    await v.list.getByRole('link').nth(49).waitFor()
    await v.list.evaluate(e => { e.scrollTop = e.scrollHeight })
    await v.list.getByText('out of order').waitFor()
    await v.page.waitForTimeout(500) // it could ask
    await v.state('list-refused')
    equal(asked, 1, 'how often the list asked')
    await v.page.unroute(next)
    await v.button('Try again', v.list).click()
    await v.list.getByRole('link').nth(59).waitFor()
    equal(await v.button('Try again', v.list).count(), 0, 'what is left of the failure')
    // What changes while the list loads is newer than what comes then.
    const { asked: loading, release } = await v.hold(/sessions\?/)
    await v.control('cut')
    await loading
    const id = await v.imported([], { title: 'made meanwhile' })
    const made = v.list.locator(`a[href$="${id}"]`).getByText('made meanwhile')
    await made.waitFor()
    const loaded = v.page.waitForResponse(/sessions\?/)
    release()
    await (await loaded).finished()
    await v.page.evaluate(() => new Promise(requestAnimationFrame))
    await made.waitFor()
  },

  /** A first load tries again by itself. */
  async loading(open) {
    const v = await open()
    await v.ask('a conversation')
    await fail(v, /sessions\?/, 503, { 'Retry-After': '1' })
    await fail(v, /sessions\/[\w-]+$/, 503, { code: 'stopping', 'Retry-After': '1' })
    await v.page.reload()
    await v.log.getByText('Bobbin is starting again').waitFor()
    await v.log.getByText('Next try in').waitFor()
    await idWithin(v.log)
    await idWithin(v.list.or(v.page.getByRole('complementary', { name: 'Conversations' })).first())
    await v.list.getByRole('link').first().waitFor()
    await v.log.getByText('a conversation').first().waitFor()
    await until('no failure is shown any more', async () => await v.page.getByRole('alert').count() === 0)
  },

  /** What a key may not have says so in its place, and comes after a press: the agents, and what happens in the list and in the conversation. */
  async forbidden(open) {
    const v = await open()
    await v.ask('a conversation')
    const list = v.page.getByRole('complementary', { name: 'Conversations' })
    const parts = [
      { path: '**/v1/agents', says: 'The agents could not be loaded', within: v.page.getByRole('main').getByRole('alert'), press: 'Try again' },
      { path: '**/v1/events', says: 'The list is not kept up to date', within: list.getByRole('alert'), press: 'Try again' },
      { path: '**/sessions/*/events', says: 'This key may not do this. Next try in', within: v.page.getByRole('main').getByRole('status'), press: 'Try now', header: { 'Retry-After': '60' } }, // it does not come by itself
    ]
    parts.splice(1, 0, { ...parts[1], status: 404 }) // of a proxy
    for (const { path, says, within, press, header, status = 403 } of parts) {
      await fail(v, path, status, { code: 'missing_scope', times: 1000, ...header })
      await v.page.reload()
      const place = within.filter({ hasText: says })
      await place.waitFor()
      await idWithin(place)
      await v.page.unroute(path)
      await v.button(press, place).click().catch(() => {}) // it may have come by itself
      await place.waitFor({ state: 'detached' })
    }
    await v.page.getByRole('button', { name: /^Agent: / }).waitFor()
    await v.ask('live again')
    await v.list.getByRole('link').first().waitFor()
    await compare(v)
  },

  /** A token that expires in mid-stream: the sign-in comes, the draft stays, and all of the answer is there afterwards. */
  async stream(open) {
    const v = await open()
    await v.ask('a conversation')
    await v.send('hold-expired one two three four')
    await v.control('release', { mark: 'hold-expired', pieces: 2 })
    await v.log.getByText('answer to: hold').waitFor()
    await v.field.fill('a draft')
    await fail(v, '**/sessions/*/events', 401, { code: 'token_expired' })
    await v.control('cut')
    await v.page.getByLabel('Key or token').waitFor()
    await idWithin(v.page.getByRole('main'))
    await v.control('release', { mark: 'hold-expired', pieces: 20 })
    const key = v.page.getByLabel('Key or token')
    await key.fill('any-key-will-do-on-this-server-here')
    let answer
    const answers = new Promise(done => (answer = done))
    await v.page.route('**/api/v1/**', route => answers.then(() => route.continue()))
    await key.press('Enter')
    await v.page.getByText("Waiting for the server's answer…").waitFor()
    await v.state('signing-in')
    await key.pressSequentially('lost')
    equal(await key.inputValue(), '', 'letters that the field takes and nobody gets')
    answer()
    await v.settled('answer to: hold-expired one two three four')
    equal(await v.field.inputValue(), 'a draft', 'the draft')
    await compare(v)
  },

  /** The server has not kept what was missed: the page loads anew, what runs goes on, what ended has ended. */
  async resync(open) {
    const v = await open()
    await v.ask('a conversation')
    const events = () => v.page.route('**/sessions/*/events', async route => {
      const { last_event_id: id } = await v.api(`sessions/${v.session()}/messages?limit=1`)
      await route.fulfill({ status: 200, contentType: 'text/event-stream', body: `id: ${id}\nevent: resync\ndata: {}\n\n` })
    }, { times: 1 })
    await v.send('hold-resync one two three four five')
    await v.control('release', { mark: 'hold-resync', pieces: 2 })
    await v.log.getByText('answer to: hold').waitFor()
    await events()
    await v.control('cut')
    await v.page.getByText('You were away for long').waitFor()
    await v.page.locator('[role=log][aria-busy=true]').waitFor()
    await v.control('release', { mark: 'hold-resync', pieces: 20 })
    await v.settled('answer to: hold-resync one two three four five')
    await compare(v)
    await v.button('Close', v.page.getByRole('main')).click()
    // Once more, and the run ends while nobody looks.
    await v.send('hold-missed one two three four five')
    await v.control('release', { mark: 'hold-missed', pieces: 2 })
    await v.log.getByText('answer to: hold').last().waitFor()
    await v.control('refuse', { on: 'true' })
    await v.control('release', { mark: 'hold-missed', pieces: 20 })
    await v.page.getByText('No connection').first().waitFor()
    await events()
    await v.control('refuse', { on: 'false' })
    await v.settled('answer to: hold-missed one two three four five')
    await compare(v)
    const used = async () => (await v.api(`sessions/${v.session()}/context`)).used
    await until('the meter has what the API has', async () => Number(await v.page.getByRole('meter', { name: 'Prompt' }).getAttribute('aria-valuenow')) === await used())
    await v.api(`sessions/${v.session()}/messages/import`, { method: 'POST', type: 'application/jsonl', body: JSON.stringify({ role: 'user', content: 'imported '.repeat(200) }) })
    await v.log.getByText('imported imported').waitFor()
    await until('the meter counts what was imported', async () => Number(await v.page.getByRole('meter', { name: 'Prompt' }).getAttribute('aria-valuenow')) === await used())
  },

  /** Events that come twice, in the wrong order, of unknown kinds or broken: what is stored is shown, once. */
  async order(open) {
    const v = await open()
    await v.ask('a conversation')
    const path = `sessions/${v.session()}`
    const { last_event_id: last } = await v.api(`${path}/messages?limit=1`)
    const streams = '**/sessions/*/events'
    const abort = route => route.abort()
    await v.page.route(streams, abort)
    await v.control('cut')
    await v.page.getByText('No connection').first().waitFor()
    await v.api(`${path}/messages`, { method: 'POST', json: { content: 'calculate out of order' } })
    const told = await v.events(last, 'run.succeeded')
    const broken = ['event: message.created\ndata: {"half', 'event: of.tomorrow\ndata: {"message":{}}', 'event: message.delta\ndata: {"message_id":"nobody","offset_utf16":7,"text":"lost"}', 'data', ':']
    await v.page.route(streams, route => route.fulfill({ status: 200, contentType: 'text/event-stream', body: [...told.toReversed(), ...broken, ...told, ''].join('\n\n') }), { times: 1 })
    await v.page.unroute(streams, abort)
    await v.settled('answer to: calculate out of order')
    await v.ask('in order again')
    await compare(v)
    // Pieces of an answer that come before what stands in front of them, and one that comes twice.
    const piece = (offset, text) => `event: message.delta\ndata: ${JSON.stringify({ message_id: 'm', offset_utf16: offset, text })}`
    const pieces = [piece(0, 'w13 '), piece(8, 'w15 '), piece(12, 'w16'), piece(4, 'w14 '), piece(4, 'w14 ')]
    await v.page.route(streams, route => route.fulfill({ status: 200, contentType: 'text/event-stream', body: ['event: message.started\ndata: {"message_id":"m","run_id":"r"}', ...pieces, ''].join('\n\n') }), { times: 1 })
    await v.control('cut')
    await v.log.getByText('w13 w14 w15 w16').waitFor()
  },

  /** A file of the page that does not come can be asked for again, code and style. */
  async parts(open) {
    const v = await open()
    await v.ask('a conversation')
    const panel = v.page.getByRole('complementary', { name: /^Context/ })
    const styled = () => panel.evaluate(e => ['.legend', '.bar'].map(part => e.querySelector(part) && getComputedStyle(e.querySelector(part)).display).join() === 'grid,flex')
    for (const file of ['**/assets/*.css', '**/assets/Panel-*.js']) {
      await v.page.route(file, route => route.abort())
      await v.page.keyboard.press('Control+.')
      await v.page.getByText('A part of the page did not load').waitFor()
      await v.page.unroute(file)
      await v.button('Try again').click()
      await panel.getByText('0 lost').waitFor()
      await until('the panel has its style', styled)
      await v.page.reload()
      await v.settled('a conversation')
    }
  },

  /** Esc closes the topmost thing and nothing below it, wherever the focus is. */
  async escape(open) {
    const v = await open()
    await v.ask('a conversation')
    await v.page.keyboard.press('Control+.')
    const panel = v.page.getByRole('complementary', { name: /^Context/ })
    await v.send('hold-escape one two')
    await v.page.locator('[role=log][aria-busy=true]').waitFor()
    for (const blur of [false, true]) {
      await v.button('Summarize now…', panel).click()
      await v.page.getByRole('dialog').waitFor()
      if (blur) await v.page.evaluate(() => document.activeElement.blur())
      await v.page.keyboard.press('Escape')
      await v.page.getByRole('dialog').waitFor({ state: 'detached' })
      check(await panel.isVisible(), 'Esc in a dialog closes the panel')
    }
    await v.page.keyboard.press('Escape')
    await panel.waitFor({ state: 'detached' })
    check(await v.log.getAttribute('aria-busy') === 'true', 'Esc stops the answer before the panel is closed')
    await v.field.fill('waits')
    await v.field.press('Enter')
    await v.button('Stop the answer, send now').click()
    await v.log.getByText('You stopped it').waitFor()
    await v.control('release', { mark: 'hold-escape', pieces: 20 })
    await v.settled('answer to: waits')
    await compare(v)
  },

  /** Files by paste and by drop; one that is refused; one that goes with its message and comes back. */
  async files(open) {
    const v = await open()
    await v.ask('a conversation')
    // Whether the browser does with it what it does without the page.
    const give = (name, how, text = 'the text of a file', times = 1, beside = '') => v.field.evaluate((field, { name, how, text, times, beside }) => {
      const data = new DataTransfer()
      if (name) data.items.add(new File([text.repeat(times)], name, { type: 'text/plain' }))
      if (beside) data.setData('text/plain', beside)
      if (how === 'paste') return field.dispatchEvent(new ClipboardEvent('paste', { clipboardData: data, bubbles: true, cancelable: true }))
      return ['dragover', 'drop'].map(type => field.dispatchEvent(new DragEvent(type, { dataTransfer: data, bubbles: true, cancelable: true }))).every(Boolean)
    }, { name, how, text, times, beside })
    await fail(v, '**/blobs', 413)
    await v.page.keyboard.press('Control+k')
    await v.page.getByRole('dialog').getByRole('combobox').waitFor()
    check(!await give('behind.txt', 'drop'), 'the browser opens a file that falls beside a dialog')
    await v.page.keyboard.press('Escape')
    equal(await v.button('Remove behind.txt').count(), 0, 'files that fell behind a dialog')
    await give('large.txt', 'paste')
    await v.page.getByText("the server's sentence for 413").waitFor()
    await idWithin(v.page.getByRole('main'))
    check(await v.button('Send').isDisabled(), 'a message with a refused file can be sent')
    await v.button('Remove large.txt').click()
    await give('larger.txt', 'paste', 'x', 21 << 20) // the server has its limit in its answer
    await v.page.getByText(/too large: the maximum is|larger than/).waitFor()
    await v.button('Remove larger.txt').click()
    equal([await give('pasted.txt', 'paste'), await give('dropped.txt', 'drop')], [false, false], 'what the browser does with files')
    equal([await give('', 'drop', '', 1, 'a text'), await give('', 'paste', '', 1, 'a text')], [true, true], 'what the browser does with a text')
    check(await give('beside.txt', 'paste', 'a picture', 1, 'a text'), 'the text that comes with a file is lost')
    await v.button('Remove beside.txt').click()
    await v.page.getByText('18 B').nth(1).waitFor()
    await v.ask('with two files')
    await v.log.getByRole('button', { name: /dropped\.txt/ }).waitFor()
    const saved = v.page.waitForEvent('download')
    await v.log.getByRole('button', { name: /pasted\.txt/ }).click()
    equal((await saved).suggestedFilename(), 'pasted.txt', 'the name of the file')
  },

  /** Exports, imports and forks. */
  async copies(open) {
    const v = await open()
    await v.ask('a conversation to copy')
    const id = v.session()
    const exported = async name => {
      const saved = v.page.waitForEvent('download')
      await v.menu(name)
      return saved
    }
    const give = (name, text) => v.choose(() => v.menu('Import a file…'), name, text)
    const path = `${process.env.HOME}/copied.json`
    await (await exported('Export as JSON')).saveAs(path)
    await v.api(`sessions/${id}`, { method: 'PATCH', json: { title: '🦆' } })
    await v.page.getByRole('heading', { name: '🦆' }).waitFor()
    equal((await exported('Export as Markdown')).suggestedFilename(), `${id}.md`, 'the name of an export whose title has no letters')
    const sent = []
    v.page.on('request', r => { if (r.url().includes('/import?')) sent.push(r.url()) })
    await fail(v, /sessions\/[\w-]+$/, 503)
    await give(path)
    await refused(v, "the server's sentence for 503")
    await give('other.json', '[{"role":"user","content":"another file"}]')
    await v.log.getByText('another file').waitFor()
    await v.page.reload()
    await v.log.getByText('another file').waitFor()
    await fail(v, /sessions\/[\w-]+$/, 503)
    await give(path) // it is in whole
    await refused(v, "the server's sentence for 503")
    await fail(v, /sessions\/[\w-]+$/, 404)
    await give(path) // and has gone: it is sent again
    await until('the import is open', () => v.session() && v.session() !== id)
    await v.settled('answer to: a conversation to copy')
    await v.list.getByRole('link', { name: /^copied/ }).first().waitFor()
    equal([sent.length, Boolean((await v.api(`sessions/${v.session()}`)).temporary)], [3, false], 'imports sent, and whether it goes by itself')
    const all = () => v.api('sessions?archived=true&limit=200').then(page => page.items.map(s => s.id))
    const before = await all()
    for (const [text, says] of [['{"half', 'the history is not JSON'], ['', 'There are no messages in this file'], ['[]', 'There are no messages in this file'], ['[{"role":"nobody"}]', 'nothing was imported']]) {
      await give('wrong.json', text)
      const refusal = v.page.getByRole('alert').filter({ hasText: 'That did not work' }).filter({ hasText: says })
      await v.button('Close', refusal).click()
      equal(await all(), before, 'conversations after an import that failed')
    }
    const copy = v.session()
    await v.menu('Fork')
    await until('the fork is open', () => v.session() && v.session() !== copy)
    await v.settled('answer to: a conversation to copy')
    await compare(v)
    // One that takes long is said meanwhile, is taken once, and does not take the reader away.
    const { asked, release } = await v.hold(/messages\/import/)
    const earlier = sent.length
    await give(path)
    await asked
    await give(path)
    await v.page.getByText('Importing copied.json…').waitFor()
    await v.state('importing')
    await v.open(id)
    release()
    await v.page.getByText('Importing copied.json…').waitFor({ state: 'detached' })
    equal([sent.length - earlier, v.session()], [1, id], 'imports sent, and where the reader is')
    // Nor does it take away who is writing.
    await v.field.fill('not yet')
    await give(path)
    await until('it is sent', () => sent.length === earlier + 2)
    await v.page.getByText('Importing copied.json…').waitFor({ state: 'detached' })
    equal([sent.length - earlier, v.session(), await v.field.inputValue()], [2, id, 'not yet'], 'imports sent, where the writer is, and the draft')
    await v.field.fill('')
    await v.field.press('ArrowUp')
    const editor = v.log.getByRole('textbox')
    await editor.fill('edited')
    await give(path)
    await editor.focus()
    await until('it is sent', () => sent.length === earlier + 3)
    await v.page.getByText('Importing copied.json…').waitFor({ state: 'detached' })
    equal([v.session(), await editor.inputValue()], [id, 'edited'], 'where the editor is, and what it has')
  },

  /** An answer of one line of 1 MB. */
  async line(open) {
    const v = await open({ patience: 60_000 })
    await v.send('one long line')
    await v.idle()
    await v.log.getByRole('button', { name: /^Show all of it/ }).waitFor()
    check(await v.page.evaluate(() => document.documentElement.scrollWidth <= innerWidth), 'the page is wider than the window')
  },

  /** Below a path of a proxy: the page, its parts, the API, the streams and the links. */
  async prefix(open, { url }) {
    const v = await open()
    await v.ask('below a path')
    check(v.page.url().startsWith(url + '#/s/'), `the address is ${v.page.url()}`)
    await v.page.keyboard.press('Control+.')
    await v.page.getByText('0 lost').waitFor()
    await v.page.reload()
    await v.settled('answer to: below a path')
    await v.list.getByRole('link').first().waitFor()
  },
}
