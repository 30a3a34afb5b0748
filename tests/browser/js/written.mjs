// What a person types is never lost, and never goes to another place than the one that was looked at.
import { check, equal, focused, until } from './visit.mjs'
import { compare } from './chat.mjs'

const messages = async (v, id) => (await v.api(`sessions/${id}/messages`)).items.filter(m => m.role === 'user').map(m => m.content)
const posts = '**/sessions/*/messages'

export const cases = {
  /** Letters that are typed right after a click or a key belong to the conversation that it opens; each keeps its draft. */
  async places(open) {
    const v = await open()
    const { keyboard } = v.page
    await v.ask('the first conversation')
    const first = v.session()
    await keyboard.type('left in the first')
    await v.page.evaluate(() => document.querySelector('a.new').click())
    await keyboard.type('typed at once')
    equal(await v.field.inputValue(), 'typed at once', 'the field after a click on New conversation')
    await keyboard.press('Enter')
    await v.settled('answer to: typed at once')
    const second = v.session()
    equal([await messages(v, first), await messages(v, second)], [['the first conversation'], ['typed at once']], 'where the messages are')
    await keyboard.type('left in the second')
    await keyboard.press('Control+Shift+O')
    equal(await v.field.inputValue(), '', 'the field after Ctrl Shift O')
    await v.page.goBack()
    await until('the draft of the second is back', async () => await v.field.inputValue() === 'left in the second')
    await v.page.evaluate(id => document.querySelector(`a[data-item][href$="${id}"]`).click(), first)
    equal(await v.field.inputValue(), 'left in the first', 'the draft of the first')
    await v.page.reload()
    await v.settled('answer to: the first conversation')
    equal(await v.field.inputValue(), 'left in the first', 'the draft after a reload')
  },

  /** A second tab that sends its own text takes nothing from the first one's draft. */
  async tabs(open) {
    const v = await open()
    await v.ask('in two tabs')
    await v.field.fill('the draft of the first tab')
    await until('it is kept', () => v.page.evaluate(() => JSON.stringify({ ...localStorage }).includes('the draft of the first tab')))
    const second = await open({ share: v, hash: `#/s/${v.session()}` })
    await second.settled('answer to: in two tabs')
    equal(await second.field.inputValue(), 'the draft of the first tab', 'the draft in a new tab')
    await second.ask('sent by the second')
    await v.page.reload()
    await v.settled('answer to: sent by the second')
    equal(await v.field.inputValue(), 'the draft of the first tab', 'the draft after a reload')
    await second.page.reload()
    await second.settled('answer to: sent by the second')
    await v.field.fill('the same draft in both')
    await v.page.reload()
    await v.settled('answer to: sent by the second')
    await second.page.reload()
    await until('both tabs have it', async () => await second.field.inputValue() === 'the same draft in both')
    await v.field.press('Enter')
    await v.settled('answer to: the same draft in both')
    await until('what one has sent, the other does not offer', async () => await second.field.inputValue() === '')
  },

  /** A message whose sending breaks while all else works is sent again, once, and so it is after a reload and while another conversation is open. */
  async broken(open) {
    const v = await open()
    await v.ask('a conversation')
    const id = v.session()
    const lose = async route => { await route.fetch(); await route.abort() } // it arrives, its answer does not
    await v.page.route(posts, lose, { times: 1 })
    await v.send('the answer to this is lost')
    await v.settled('answer to: the answer to this is lost')
    await compare(v)
    const abort = async route => route.request().method() !== 'POST' || await v.page.evaluate(() => window.pressed).catch(() => false) ? route.continue() : route.abort()
    await v.page.route(posts, abort)
    await v.send('sent after a reload')
    await v.log.getByText('Kept here').waitFor()
    await v.page.reload()
    await v.log.getByText('sent after a reload').waitFor()
    await v.log.getByText('Kept here').waitFor()
    await v.state('kept-here')
    await v.page.evaluate(() => addEventListener('click', () => (window.pressed = true), { capture: true, once: true })) // only a press sends it
    await v.button('Send again', v.log).click()
    await v.settled('answer to: sent after a reload')
    await v.page.evaluate(() => (window.pressed = false))
    await v.send('sent from elsewhere')
    await v.log.getByText('Kept here').waitFor()
    await v.send('taken back')
    await v.button('Remove', v.log).nth(1).waitFor()
    await v.button('Remove', v.log).last().click()
    await v.page.evaluate(() => document.querySelector('a.new').click())
    await v.page.unroute(posts, abort)
    await until('it is sent', async () => (await messages(v, id)).length === 4)
    await v.open(id)
    await compare(v)
    equal(await messages(v, id), ['a conversation', 'the answer to this is lost', 'sent after a reload', 'sent from elsewhere'], 'messages')
    // While it is on its way again it is not taken back: the server may have it.
    const { asked, release } = await v.hold(posts, { status: 503, headers: { 'Retry-After': '1' } })
    await v.page.route(posts, route => route.abort(), { times: 1 }) // comes before it
    await v.send('on its way again')
    await asked
    equal([await v.button('Edit', v.log).last().isDisabled(), await v.button('Remove', v.log).isDisabled()], [true, true], 'Edit and Remove')
    release()
    await v.button('Remove', v.log).click()
    await v.ask('after it')
    equal((await messages(v, id)).at(-1), 'after it', 'the last message')
  },

  /** The first message makes its conversation once, though every answer is lost; what is typed meanwhile comes along. */
  async first(open) {
    const v = await open()
    await v.field.waitFor()
    let lost = 0
    const sessions = /api\/v1\/sessions$/
    const lose = async route => { if (route.request().method() !== 'POST') return route.continue(); lost++; await route.fetch().catch(() => {}); await route.abort().catch(() => {}) } // a reload, and the end of this, take requests from it
    await v.page.route(sessions, lose)
    await v.send('made once, and no more')
    await v.page.getByText('Kept here').waitFor()
    await v.page.reload()
    await v.page.getByText('made once, and no more').waitFor()
    await v.field.pressSequentially('typed meanwhile')
    await v.state('first-kept')
    await until('two answers were lost', () => lost >= 2)
    await v.page.unroute(sessions, lose)
    await v.settled('answer to: made once, and no more')
    equal(await v.field.inputValue(), 'typed meanwhile', 'the field')
    const { items } = await v.api('search?q=%22made%20once%20and%20no%20more%22').catch(() => ({ items: [] }))
    check(items.filter(i => i.session_id !== v.session()).length === 0, 'there is another conversation with the message')
    equal(await messages(v, v.session()), ['made once, and no more'], 'messages')
  },

  /** Stop and Send are both there; what comes back from the queue joins the draft with its files; an edit stays open. */
  async queue(open) {
    const v = await open()
    await v.ask('a conversation')
    await v.send('hold-both first')
    await v.page.locator('[role=log][aria-busy=true]').waitFor()
    const choose = async name => {
      await v.choose(() => v.button('Add a file').click(), name, 'text of a file')
      await v.button(`Remove ${name}`).waitFor()
      await v.page.getByText('14 B').first().waitFor()
    }
    await choose('queued.txt')
    await v.field.fill('waits in the queue')
    check(await v.button('Stop').isVisible() && await v.button('Send').isEnabled(), 'Stop and Send are not both there')
    await v.state('stop-and-send')
    await v.button('Send').click()
    await v.log.getByText('waits its turn').waitFor()
    await v.log.getByText('queued.txt').waitFor()
    await v.field.fill('already in the field')
    await choose('field.txt')
    await v.button('Edit', v.log).last().click()
    await until('both texts are in the field', async () => await v.field.inputValue() === 'waits in the queue\n\nalready in the field')
    await focused(v, 'the field after Edit', v.field)
    await v.button('Remove queued.txt').waitFor()
    await v.button('Remove field.txt').waitFor()
    await v.page.reload()
    await v.button('Remove queued.txt').waitFor()
    await v.button('Remove field.txt').waitFor()
    const id = v.session()
    const second = v.api(`sessions/${id}/messages`, { method: 'POST', json: { content: 'the second waits' } })
    await v.log.getByText('waits its turn').waitFor()
    await v.control('release', { mark: 'hold-both', pieces: 20 })
    await second
    await v.settled('answer to: the second waits')
    await v.log.getByText('waits its turn').waitFor({ state: 'detached' })
    await v.field.press('Alt+ArrowUp')
    await v.page.keyboard.press('ArrowUp')
    await v.page.keyboard.press('e')
    const editor = v.page.getByRole('textbox', { name: 'Edit the message' })
    await editor.fill('half of an edit')
    await v.page.keyboard.press('Alt+2')
    await v.page.keyboard.press('Alt+1')
    equal(await editor.inputValue(), 'half of an edit', 'the edit after another view')
    await v.page.evaluate(() => document.querySelector('a.new').click())
    await v.page.reload()
    await v.open(id)
    equal(await editor.inputValue(), 'half of an edit', 'the edit after another conversation and a reload')
    await v.state('edit-kept')
    equal(await v.field.inputValue(), 'waits in the queue\n\nalready in the field', 'the draft')
  },

  /** A file that cannot be loaded waits for the connection, and says what a reload would lose. */
  async upload(open) {
    const v = await open()
    await v.ask('a conversation')
    const abort = route => route.abort()
    await v.page.route('**/blobs', abort)
    await v.choose(() => v.button('Add a file').click(), 'waits.txt', 'text of a file')
    await v.page.getByText('a reload loses it').waitFor()
    check(await v.button('Send').isDisabled(), 'a message goes without its file')
    const id = v.session()
    await v.page.evaluate(() => document.querySelector('a.new').click())
    await v.page.unroute('**/blobs', abort)
    await v.open(id)
    await v.page.getByText('14 B').waitFor()
    await v.ask('with the file')
    await v.log.getByRole('button', { name: 'waits.txt' }).waitFor()
  },

  /** Whoever signs in next finds nothing of the one before; the same person finds all of it. */
  async keyed(open, { key, other }) {
    const v = await open({ key })
    const sign = async secret => {
      await v.page.getByLabel('Key or token').fill(secret)
      await v.button('Sign in').click()
      await v.page.getByLabel('Key or token').waitFor({ state: 'detached' })
    }
    const kept = () => v.page.evaluate(() => JSON.stringify([{ ...sessionStorage }, { ...localStorage }]))
    const refuse = () => v.page.route('**/sessions/*/messages', r => r.fulfill({ status: 401, contentType: 'application/problem+json', body: '{"type":"about:blank","title":"No","status":401,"code":"unauthorized","detail":"revoked"}' }), { times: 1 })
    await sign(key)
    await v.ask('of the first person')
    const id = v.session()
    await refuse()
    await v.send('not sent yet')
    await v.page.getByLabel('Key or token').waitFor()
    await sign(key)
    await v.settled('answer to: not sent yet')
    await v.field.fill('a secret draft')
    await until('the draft is kept', async () => (await kept()).includes('a secret draft'))
    await refuse()
    await v.field.press('Enter')
    await v.page.getByLabel('Key or token').waitFor()
    await sign(other)
    await v.field.waitFor()
    await until('the thread is gone', async () => !v.session() && !(await v.page.locator('body').innerText()).includes('first person'))
    check(!(await kept()).includes('secret'), `kept is ${await kept()}`)
    equal(await v.field.inputValue(), '', 'the field')
    await v.field.fill('a draft of the other')
    await until('the draft is kept', async () => (await kept()).includes('a draft of the other'))
    await v.showList()
    await v.button('signed in with a key, More').click()
    await v.page.getByRole('menuitem', { name: 'Sign out' }).click()
    await v.page.getByLabel('Key or token').waitFor()
    check(!/draft of the other|bobbin\.key/.test(await kept()), `kept is ${await kept()}`)
    equal(await messages({ api: v.api.bind(v) }, id), ['of the first person', 'not sent yet'], 'messages')
  },
}
