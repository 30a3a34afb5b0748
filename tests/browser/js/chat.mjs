// The main flow: writing, reading, stopping, coming back, the list, signing in, two tabs.
import { check, equal, focused, until } from './visit.mjs'

/** Holds what the thread shows against the stored log: every message once, in order, word for word. */
export async function compare(visit) {
  const { items } = await visit.api(`sessions/${visit.session()}/messages?limit=200`)
  const stored = items.filter(m => m.role !== 'tool' && m.content).map(m => m.content.trim())
  const texts = async () => (await visit.texts()).map(t => t.trim()) // Markdown ends a block with a new line
  await until(async () => `the thread shows ${JSON.stringify(await texts())}, stored are ${JSON.stringify(stored)}`, async () => JSON.stringify(await texts()) === JSON.stringify(stored))
}

export const cases = {
  /** The main flows one after the other in one tab, which loads the page once. */
  async day(open) {
    const v = await open()
    const here = async more => {
      if (more) return open(more)
      await v.page.goto(`${v.args.url}#/`)
      await v.field.waitFor()
      return v
    }
    for (const name of ['send', 'stop', 'edit', 'failed', 'approve']) {
      await cases[name](here).catch(e => { throw new Error(`${name}: ${e.stack}`) })
    }
  },

  async send(open) {
    const v = await open()
    await v.field.waitFor()
    await v.state('empty')
    check(await v.field.evaluate(e => e === document.activeElement), 'the field has no focus at the start')
    await v.ask('my first words')
    check(v.session(), 'the address does not name the conversation')
    check(await v.field.evaluate(e => e === document.activeElement && e.value === ''), 'the field is not empty and focused after sending')
    await v.send('and a second **bold** one')
    await v.settled('answer to: and a second')
    check(await v.answer.locator('strong').innerText() === 'bold', 'Markdown is not drawn')
    await v.page.reload()
    await v.settled('answer to: my first words')
    equal(await v.articles.count(), 4, 'articles after a reload')
    await v.showList()
    await v.list.getByRole('link').first().waitFor()
  },

  async stream(open) {
    const v = await open()
    await v.send('hold-stream one two three four five six seven')
    await v.log.getByText('answer to:').waitFor()
    await v.page.locator('[role=log][aria-busy=true]').waitFor()
    await v.control('release', { mark: 'hold-stream', pieces: 3 })
    await v.log.getByText('answer to: hold-stream').waitFor()
    check(!(await v.answer.innerText()).includes('seven'), 'the answer is whole before it was written')
    await v.page.getByRole('status').filter({ hasText: 'Generating' }).waitFor({ state: 'attached' })
    await v.control('release', { mark: 'hold-stream', pieces: 5 })
    await v.settled('answer to: hold-stream one two three four five six seven')
    await v.page.getByRole('status').filter({ hasText: 'Answer complete' }).waitFor({ state: 'attached' })
    await compare(v)
    // A scroll that is at work while a message is sent does not take the reader from the end.
    await v.answer.evaluate(e => { e.style.minHeight = '1200px' })
    await v.field.fill('sent from the end')
    await v.page.evaluate(() => {
      document.querySelector('button.send').click()
      document.querySelector('[role=log]').dispatchEvent(new Event('scroll'))
    })
    await v.settled('answer to: sent from the end')
    check(await v.button('Jump to latest').count() === 0, 'the page has left the end')
  },

  /** An answer says how long it thought, and what it cost. */
  async thoughts(open) {
    const v = await open()
    await v.ask('a conversation')
    const path = `sessions/${v.session()}`
    const { items: [said], last_event_id: last } = await v.api(`${path}/messages?limit=1`)
    const { items: [run] } = await v.api(`${path}/runs`)
    const message = { ...said, id: 'm1', run_id: 'r1', seq: 9, role: 'assistant', content: 'thought over' }
    const usage = { input_tokens: 20, output_tokens: 700, reasoning_tokens: 612 }
    const events = [
      ['message.started', { message_id: 'm1', run_id: 'r1' }], ['reasoning.delta', { message_id: 'm1', offset_utf16: 0, text: 'Hm.' }], ['message.created', { message }],
      ['run.succeeded', { run: { ...run, id: 'r1', usage } }],
    ]
    await v.page.route('**/runs/r1/calls', route => route.fulfill({ json: { items: [{ cost_micro_usd: 1234 }, { usage: {} }, { cost_micro_usd: 4000 }], next_cursor: null } }))
    await v.page.route('**/sessions/*/events', route => route.fulfill({
      status: 200, contentType: 'text/event-stream', body: events.map(([name, data], i) => `id: ${last + 1 + i}\nevent: ${name}\ndata: ${JSON.stringify(data)}\n\n`).join(''),
    }), { times: 1 })
    await v.control('cut')
    await v.log.getByText('Thought for 1 s, 612 tokens').waitFor()
    await v.answer.getByText(/ · \$0\.0052$/).waitFor()
  },

  async stop(open) {
    const v = await open()
    const mark = `hold-stop${Date.now()}` // its own each time: what is released stays so
    await v.send(`${mark} one two three`)
    await v.control('release', { mark, pieces: 2 })
    await v.log.getByText('answer to: hold').waitFor()
    await v.button('Stop').click()
    await v.idle()
    await v.log.getByText('You stopped it').waitFor()
    await v.control('release', { mark, pieces: 20 })
    await v.ask('after the stop')
    await v.page.reload()
    await v.settled('answer to: after the stop')
  },

  async edit(open) {
    const v = await open()
    await v.ask('the first question')
    await v.button('New answer', v.answer).click()
    await v.log.getByText('2 / 2').waitFor()
    await v.idle()
    await v.articles.first().hover()
    await v.button('Edit', v.articles.first()).click()
    await v.page.getByRole('textbox', { name: 'Edit the message' }).fill('another question')
    await v.button('Send again').click()
    await v.settled('answer to: another question')
    equal(await v.articles.count(), 2, 'messages of the branch')
    await v.articles.first().hover()
    await v.button('Branch before', v.articles.first()).click()
    await v.settled('answer to: the first question')
    await compare(v)
    // A late answer about a branch changes nothing of the one that was chosen since.
    const { items } = await v.api(`sessions/${v.session()}/messages?all_branches=true`)
    const choose = text => v.api(`sessions/${v.session()}/messages/${items.find(m => m.content === text).id}/select`, { method: 'POST', json: {} })
    const reload = /messages\?order=desc/
    const { asked, release } = await v.hold(reload)
    await choose('another question')
    await asked
    await choose('the first question')
    await v.settled('answer to: the first question')
    const late = v.page.waitForResponse(reload)
    release()
    await (await late).finished()
    await v.page.evaluate(() => new Promise(requestAnimationFrame))
    await compare(v)
  },

  async drafts(open) {
    const v = await open()
    await v.ask('a conversation with a draft')
    const draft = 'not sent yet '.repeat(10_000)
    await v.field.fill(draft)
    await v.page.waitForTimeout(500) // the page writes it down after 300 ms
    await v.page.reload()
    await v.settled('answer to: a conversation with a draft')
    check(await v.field.inputValue() === draft, 'the draft is not whole')
    equal((await v.texts()).some(t => t.includes('not sent yet')), false, 'a draft in the thread')
    await v.page.evaluate(() => { Storage.prototype.setItem = () => { throw new DOMException('full', 'QuotaExceededError') } })
    await v.field.fill('for a full storage')
    await v.page.getByText('This browser does not keep a draft of this length').waitFor()
  },

  async list(open) {
    const v = await open()
    const names = ['heron at dawn', 'kingfisher at noon']
    for (const name of names) {
      await v.showList()
      await v.page.getByRole('link', { name: 'New conversation' }).click()
      await v.ask(name)
      await v.api(`sessions/${v.session()}`, { method: 'PATCH', json: { title: name } })
    }
    const heron = v.list.getByRole('link', { name: /heron at dawn/ })
    await v.showList()
    await heron.click()
    await v.settled('answer to: heron at dawn')
    await v.menu('Rename')
    await v.page.getByRole('textbox', { name: 'New title' }).fill('egret at dawn')
    await v.page.keyboard.press('Enter')
    const id = v.session()
    await until('the title is stored', async () => (await v.api(`sessions/${id}`)).title === 'egret at dawn')
    await v.menu('Archive')
    await until('it is archived', async () => (await v.api(`sessions/${id}`)).archived_at)
    await v.button('Undo').click()
    await until('it is back', async () => !(await v.api(`sessions/${id}`)).archived_at)
    await v.showList()
    await v.list.getByRole('link', { name: /egret at dawn/ }).waitFor()
  },

  /** What another program writes is in the list and in the open thread without a reload. */
  async elsewhere(open) {
    const v = await open()
    await v.ask('opened here')
    await v.showList()
    const other = await v.imported([{ role: 'user', content: 'written elsewhere' }], { title: 'from another program' })
    await v.list.getByRole('link', { name: /from another program/ }).waitFor()
    await v.api(`sessions/${v.session()}/messages`, { method: 'POST', json: { content: 'said by a program', author: 'Robin' } })
    await v.settled('answer to: said by a program')
    await v.log.getByText('Robin').first().waitFor()
    const robin = v.articles.filter({ hasText: 'Robin' })
    equal([await v.button('Pin', robin).count(), await v.button('Edit', robin).count()], [1, 0], 'Pin and Edit of what another has said')
    await v.api(`sessions/${other}`, { method: 'DELETE' })
    await v.list.getByRole('link', { name: /from another program/ }).waitFor({ state: 'detached' })
    await compare(v)
  },

  async search(open) {
    const v = await open()
    const many = Array.from({ length: 300 }, (_, i) => ({ role: i % 2 ? 'assistant' : 'user', content: i === 40 ? 'the zanzibar passage' : `line ${i}` }))
    const id = await v.imported(many, { title: 'a long log' })
    await v.field.waitFor()
    await v.page.keyboard.press('Control+k')
    const box = v.page.getByRole('combobox', { name: 'Search in titles and messages' })
    await box.fill('zanzibar')
    const hit = v.page.getByRole('option', { name: /zanzibar/ })
    await hit.waitFor()
    await hit.getByText('in the prompt').waitFor()
    await v.state('search')
    // All of many are counted, and come page by page; what may be missing is said.
    await v.page.route('**/api/v1/search?*', async route => {
      const answer = await route.fetch()
      await route.fulfill({ response: answer, json: { ...await answer.json(), indexing: true } })
    })
    await box.fill('line')
    const end = v.page.getByRole('dialog').getByText(/^40 of \d+ messages, /)
    await end.waitFor()
    const { total } = await v.api('search?q=line&limit=40')
    check((await end.textContent()).startsWith(`40 of ${total} messages`), `the search says ${await end.textContent()} of ${total}`)
    await v.page.getByText('still being indexed').waitFor()
    await v.state('search-more')
    await v.button('Show more').click()
    await v.page.getByRole('option').nth(40).waitFor()
    await v.page.unroute('**/api/v1/search?*')
    await box.fill('zanzibar')
    await hit.waitFor()
    await box.press('Enter')
    await v.log.getByText('the zanzibar passage').waitFor()
    check(v.page.url().endsWith(`#/s/${id}/m/41`), `the address is ${v.page.url()}`)
    await until('the message is in sight', () => v.log.getByText('the zanzibar passage').evaluate(e => {
      const { top, bottom } = e.getBoundingClientRect()
      return top >= 0 && bottom <= innerHeight
    }))
    check(await v.articles.count() < 300, 'all messages are in the document')
    await v.open(id, 999)
    await v.page.getByRole('alert').getByText('This message is not in the conversation').waitFor()
    await v.log.getByText('line 299').waitFor()
  },

  /** A run that fails says so in its place, with the request, and can be tried again. */
  async failed(open) {
    const v = await open()
    await v.send('the provider fails here')
    const alert = v.log.getByRole('alert')
    await alert.getByText('The answer broke off').waitFor()
    await v.idle()
    const [{ id }] = (await v.api(`sessions/${v.session()}/runs`)).items
    await alert.getByRole('button', { name: `run ${id.slice(0, 13)}` }).waitFor()
    await v.button('Answer again', v.log).first().waitFor()
    await v.state('error')
    await v.send('and goes on')
    await v.answer.getByText('answer to:').waitFor()
    await v.idle()
    await alert.getByText('The answer broke off').waitFor()
    await v.send('the provider filters this')
    await v.log.getByText("the provider's content filter").waitFor()
    await v.log.getByText('or cut its answer off').last().waitFor()
    await v.send('the provider cuts this')
    await v.settled('half an answer')
    await v.answer.getByText('The answer broke off').waitFor()
    await v.page.getByRole('status').getByText('The answer broke off').waitFor({ state: 'attached' })
  },

  async approve(open) {
    const v = await open()
    const id = await v.imported([], { agent: 'careful', title: 'asks before it acts' })
    await v.open(id)
    const second = await open({ share: v, hash: `#/s/${id}` })
    await v.send('calculate this')
    const card = v.page.getByRole('region', { name: 'Question: may calculator start?' })
    await card.waitFor()
    await v.state('approval')
    // Who is second keeps what they wrote, and the focus.
    const reason = second.page.getByRole('textbox', { name: 'Reason' })
    await reason.fill('it is only arithmetic')
    await v.button('Approve', card).click()
    await v.settled('answer to: calculate this')
    await second.settled('answer to: calculate this')
    await second.page.getByRole('region', { name: /^Approved/ }).waitFor()
    check(await second.button('Approve').count() === 0, 'the second tab still asks')
    equal(await reason.inputValue(), 'it is only arithmetic', 'the reason')
    await focused(second, 'the reason', reason)
    await second.state('approval-elsewhere')
    await v.send('calculate again')
    await card.waitFor()
    await second.button('Deny').focus()
    await v.button('Deny', card).click()
    await second.page.getByRole('region', { name: /^Denied/ }).waitFor()
    check(await second.page.evaluate(() => document.activeElement !== document.body), 'the focus is lost')
    await v.page.getByRole('region', { name: /^Denied/ }).waitFor()
    await v.idle()
  },

  /** Who decided what is said after a reload, and in a tab that has missed it. */
  async away(open) {
    const v = await open()
    const id = await v.imported([], { agent: 'careful' })
    await v.open(id)
    const second = await open({ share: v, hash: `#/s/${id}` })
    await v.send('calculate while one tab is away')
    const card = v.page.getByRole('region', { name: 'Question: may calculator start?' })
    await card.waitFor()
    await second.page.getByRole('region', { name: 'Question: may calculator start?' }).waitFor()
    const events = '**/sessions/*/events'
    const abort = route => route.abort()
    await second.page.route(events, abort)
    await v.control('cut')
    await second.page.getByText('No connection').waitFor()
    await v.button('Deny', card).click()
    await v.settled('answer to: calculate while one tab is away')
    const denied = tab => tab.page.getByRole('region', { name: /^Denied by ./ }).waitFor()
    await denied(v)
    const { last_event_id: last } = await v.api(`sessions/${id}/messages?order=desc&limit=1`)
    await second.page.route(events, route => route.fulfill({ status: 200, contentType: 'text/event-stream', body: `id: ${last}\nevent: resync\ndata: {}\n\n` }), { times: 1 })
    await second.page.unroute(events, abort)
    await denied(second)
    check(await second.button('Approve').count() === 0, 'the tab that was away still asks')
    await v.page.reload()
    await denied(v)
    check(await v.button('Approve').count() === 0, 'the page asks again after a reload')
  },

  async signin(open, { key }) {
    const v = await open({ key })
    const secret = v.page.getByLabel('Key or token')
    await secret.fill('wrong-key-wrong-key-wrong-key')
    await v.button('Sign in').click()
    await v.page.getByRole('heading', { name: 'This key was not accepted' }).waitFor() // a slip of the hand: nothing was revoked
    await v.page.getByRole('button', { name: /^request / }).first().waitFor()
    await v.state('signin')
    await secret.fill(key)
    await v.button('Sign in').click()
    await v.ask('with a key')
    const kept = () => v.page.evaluate(() => [JSON.stringify({ ...sessionStorage }), JSON.stringify({ ...localStorage }), document.cookie])
    let [tab, device, cookie] = await kept()
    check(tab.includes(key) && !device.includes(key) && cookie === '', 'the key is not in this tab alone')
    await v.page.reload()
    await v.settled('answer to: with a key')
    check(!v.page.url().includes(key), 'the address has the key')
    // What somebody else decides names who that was.
    const asking = await v.imported([], { agent: 'careful' })
    await v.open(asking)
    await v.send('calculate this')
    await v.page.getByRole('region', { name: /^Question/ }).waitFor()
    const run = await v.api(`runs/${(await v.api(`sessions/${asking}`)).active_run_id}`)
    await v.api(`runs/${run.id}/approvals/${run.approvals[0].id}`, { method: 'POST', json: { decision: 'approve' } })
    await v.page.getByRole('region', { name: 'Approved by alice' }).waitFor()
    await v.settled('answer to: calculate this')
    const fresh = await open({ share: v })
    await fresh.page.getByLabel('Key or token').waitFor()
    await fresh.page.getByLabel('Stay signed in on this device').check()
    await fresh.page.getByLabel('Key or token').fill(key)
    await fresh.button('Sign in').click()
    await fresh.showList()
    await fresh.list.getByRole('link').first().waitFor();
    [tab, device, cookie] = await fresh.page.evaluate(() => [JSON.stringify({ ...sessionStorage }), JSON.stringify({ ...localStorage }), document.cookie])
    check(device.includes(key) && cookie === '', 'the key is not on this device')
    // Signing out ends the other tabs of the same person.
    await fresh.showList()
    await fresh.button('signed in with a key, More').click()
    await fresh.page.getByRole('menuitem', { name: 'Sign out' }).click()
    for (const tab of [fresh, v]) await tab.page.getByLabel('Key or token').waitFor()
    check((await kept()).every(text => !text.includes(key)), 'the key is still in the other tab')
  },
}
