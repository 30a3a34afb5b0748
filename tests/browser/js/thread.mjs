// The thread and the list as one uses them for long: by Tab, with old failures, renamed and deleted conversations.
import { fail, refused } from './failures.mjs'
import { check, equal, until } from './visit.mjs'

const turns = length => Array.from({ length }, (_, i) => ({ role: i % 2 ? 'assistant' : 'user', content: `turn ${i} ${'of many words '.repeat(20)}` }))
const seqs = v => v.log.locator('article[data-seq]').evaluateAll(all => all.map(e => Number(e.dataset.seq)))
const inOrder = (got, last) => equal(got, Array.from(got, (_, i) => last + 1 - got.length + i), 'the messages')

export const cases = {
  /** The thread is one stop for Tab: arrows between messages, Enter into one, Esc out. */
  async stops(open) {
    const v = await open()
    const { keyboard } = v.page
    const said = Array.from({ length: 12 }, (_, i) => ({ role: i % 2 ? 'assistant' : 'user', content: i % 2 ? 'a [link](https://example.org) and `code`\n\n```js\nconst a = 1\n```' : `question ${i}` }))
    await v.open(await v.imported(said, { title: 'many stops' }))
    await v.log.getByText('question 10', { exact: true }).waitFor()
    const at = () => v.page.evaluate(() => {
      const e = document.activeElement
      const article = e.closest('article')
      return article ? `${e === article ? 'message' : 'in'} ${[...document.querySelectorAll('article')].indexOf(article)}` : e.id || e.ariaLabel || e.tagName
    })
    await v.button('More', v.page.getByRole('main')).focus()
    await keyboard.press('Tab')
    equal(await at(), 'message 11', 'Tab after the header')
    await keyboard.press('Tab')
    equal(await at(), 'message', 'Tab after the thread') // the field's id
    await keyboard.press('Shift+Tab')
    equal(await at(), 'message 11', 'Shift Tab before the field')
    await keyboard.press('ArrowUp')
    await keyboard.press('ArrowUp')
    equal(await at(), 'message 9', 'two messages up')
    await keyboard.press('Enter')
    equal(await at(), 'in 9', 'Enter')
    await keyboard.press('Tab')
    equal(await at(), 'in 9', 'Tab in a message')
    await keyboard.press('Escape')
    equal(await at(), 'message 9', 'Esc')
    await keyboard.press('Shift+Tab')
    equal(await at(), 'More', 'Shift Tab before the thread')
    await keyboard.press('Tab')
    equal(await at(), 'message 9', 'the message that was left')
    await keyboard.press('Enter')
    for (let i = 0; i < 12 && (await at()).startsWith('in 9'); i++) await keyboard.press('Tab')
    equal(await at(), 'message', 'Tab behind the last thing in a message')
    // A new answer has the focus of the one that it replaces.
    await keyboard.press('Shift+Tab')
    await keyboard.press('ArrowDown')
    await keyboard.press('ArrowDown')
    await keyboard.press('r')
    await v.settled('answer to: question 10')
    equal(await at(), 'message 11', 'a new answer')
    await keyboard.press('w')
    const where = v.page.getByRole('dialog', { name: 'Where is this message?' })
    await where.getByText('Nothing is summarized yet.', { exact: true }).waitFor() // word for word is said above it
    await v.page.goBack()
    await where.waitFor({ state: 'detached' })
  },

  /** F2 changes a title where it stands, also that of an archived conversation; one that is refused is taken back. */
  async rename(open) {
    const v = await open()
    const id = await v.imported([{ role: 'user', content: 'anything' }], { title: 'heron at dusk' })
    await v.open(id)
    const title = v.page.getByRole('textbox', { name: 'New title' })
    const rename = async (was, text) => {
      await v.page.getByRole('heading', { name: was }).waitFor()
      await v.page.keyboard.press('F2')
      await title.fill(text)
      await title.press('Enter')
      await until('the title is stored', async () => (await v.api(`sessions/${id}`)).title === text)
    }
    await v.field.focus()
    await rename('heron at dusk', 'egret at dusk')
    await v.showList()
    const link = v.list.locator(`a[href$="${id}"]`)
    await link.focus()
    await rename('egret at dusk', 'ibis at dusk')
    check(await link.evaluate(e => e === document.activeElement), 'the focus is not back')
    await v.api(`sessions/${id}`, { method: 'DELETE' })
    await v.page.reload()
    await rename('ibis at dusk', 'an archived heron')
    await fail(v, /sessions\/[\w-]+$/, 403)
    await v.page.keyboard.press('F2')
    await title.fill('a refused heron')
    await title.press('Enter')
    await refused(v, "the server's sentence for 403")
    const heading = v.page.getByRole('heading', { name: 'an archived heron' })
    await heading.waitFor()
    const size = v.page.viewportSize()
    await v.page.setViewportSize({ width: 760, height: 640 })
    check(await heading.evaluate(e => e.scrollWidth <= e.clientWidth), 'the title is cut at 760 px')
    await v.page.setViewportSize(size)
  },

  /** An agent with a smaller model says first what it would bring about; it can be chosen on a phone, too. */
  async agent(open) {
    const v = await open()
    const phone = await open({ width: 'phone' })
    await phone.page.getByRole('button', { name: /^Agent: / }).click()
    const { x, width } = await phone.page.getByRole('menu').boundingBox()
    check(x >= 0 && x + width <= 375, `the menu of agents goes from ${x} to ${x + width} of 375 px`)
    const { window } = await v.api(`sessions/${await v.imported([])}/context`)
    const content = 'of many words '.repeat(window / 500) // all of them fit into it, and not into a quarter of it
    await v.open(await v.imported(Array.from({ length: 60 }, (_, i) => ({ role: i % 2 ? 'assistant' : 'user', content })), { title: 'a long one' }))
    const choose = async name => {
      await v.page.getByRole('button', { name: /^Agent: / }).click()
      await v.page.getByRole('menuitemradio', { name }).click()
    }
    await choose('brief')
    const dialog = v.page.getByRole('dialog', { name: 'Switch to brief?' })
    const messages = async row => Number(/\d+/.exec(await dialog.getByText(row).textContent())[0])
    equal(await messages('go into the summary') + await messages('stay word for word'), 60, 'messages in the summary and word for word')
    await v.state('agent')
    await v.button('Keep assistant', dialog).click()
    equal((await v.api(`sessions/${v.session()}`)).agent, 'assistant', 'the agent')
    await choose('brief')
    await v.button('Switch', dialog).click()
    await until('the agent has changed', async () => (await v.api(`sessions/${v.session()}`)).agent === 'brief')
    await v.page.getByRole('button', { name: 'Agent: brief' }).waitFor()
  },

  /** A failure says what it was, and an answer which agent gave it, however long ago. */
  async old(open) {
    const v = await open()
    const id = await v.imported([], { title: 'an old failure' })
    const say = content => v.api(`sessions/${id}/messages`, { method: 'POST', json: { content } })
    await say('the provider fails here').catch(() => {})
    for (let i = 0; i < 30; i++) await say(`goes on ${i}`)
    await v.api(`sessions/${id}`, { method: 'PATCH', json: { agent: 'careful' } })
    await v.open(id)
    await v.log.getByText('answer to: goes on 29').waitFor()
    await v.log.evaluate(e => { e.scrollTop = 0 })
    await v.log.getByRole('alert').getByText('The answer broke off').waitFor()
    await v.log.getByRole('article', { name: /^assistant, / }).filter({ hasText: 'answer to: goes on 1' }).first().waitFor()
    equal(await v.log.getByRole('article', { name: /^(careful|Agent), / }).count(), 0, 'answers of an agent that gave none')
    // Runs that no list has, as those of far messages and of many branches: what is in sight asks for its own.
    await v.page.route(/sessions\/[\w-]+\/runs\?/, route => route.fulfill({ json: { items: [], next_cursor: null } }))
    const asked = []
    v.page.on('request', r => { if (/\/runs\/[\w-]+$/.test(r.url())) asked.push(r.url()) })
    await v.page.goto(`${v.args.url}#/s/${id}/m/6`)
    await v.page.reload()
    const answer = v.log.getByRole('article', { name: /^assistant, / }).filter({ hasText: /goes on 2(?!\d)/ })
    await answer.getByText(/ in · [\d,]+ out/).waitFor()
    check(asked.length <= 26 && new Set(asked).size === asked.length, `${asked.length} requests for ${new Set(asked).size} runs`)
  },

  /** A conversation that somebody deletes is gone, not archived; what was being written stays. */
  async deleted(open) {
    const v = await open()
    await v.ask('deleted elsewhere')
    await v.field.fill('still being written')
    await v.api('deletions', { method: 'POST', json: { session_id: v.session() } })
    await v.page.getByText('This conversation is not here').first().waitFor()
    equal([await v.page.getByText('Archived').count(), await v.articles.count()], [0, 0], 'what is left')
    equal(await v.field.inputValue(), 'still being written', 'the draft')
  },

  /** The parser comes late: until then the thread says that it loads, and after it the message of the address is in sight. */
  async late(open) {
    for (let i = 0; i < 6; i++) {
      const v = await open({ fresh: true })
      const said = Array.from({ length: 200 }, (_, i) => ({ role: i % 2 ? 'assistant' : 'user', content: `turn ${i} ${'**words** of text '.repeat(40)}` }))
      const id = await v.imported(said, { title: 'with a late parser' })
      const { release } = await v.hold('**/assets/markdown-*.js')
      const came = v.page.waitForResponse(/messages\?/)
      await v.page.goto(`${v.args.url}#/s/${id}/m/60`)
      await came
      await v.log.getByText('Older messages').waitFor() // those around it have come
      check(await v.log.getByRole('status', { name: 'Loading' }).isVisible(), 'the thread is blank')
      release()
      await until('the message is in sight', () => v.log.locator('.found[data-seq="60"]').first().evaluate(e => e.getBoundingClientRect().top >= 0 && e.getBoundingClientRect().top < innerHeight / 2))
    }
  },

  /** Who writes far above is brought to the end, whatever comes in which order: no page of the old place, and all that was said meanwhile. */
  async far(open) {
    const v = await open()
    for (const first of ['newest', 'next']) {
      await v.open(await v.imported(turns(200)), 20)
      const pages = { newest: await v.hold(/messages\?order=desc/), next: await v.hold(/messages\?after=/) }
      await v.page.route(/messages$/, route => pages.newest.asked.then(() => route.continue())) // it is not among the newest
      await v.send(`hold-${first} above\n\n\n`)
      await v.events(0, 'message.delta')
      await v.log.evaluate(e => { e.scrollTop = e.scrollHeight })
      await pages.next.asked
      pages[first].release()
      await v.log.getByText(first === 'newest' ? 'answer to:' : 'turn 80 ').waitFor()
      pages.newest.release()
      await v.log.getByText('answer to:').waitFor()
      pages.next.release()
      await v.control('release', { mark: `hold-${first}`, pieces: 20 })
      await v.settled(`answer to: hold-${first} above`)
      inOrder(await seqs(v), 202)
      await v.log.evaluate(e => { e.scrollTop = 0 })
      await v.log.getByText('turn 120').waitFor()
    }
  },

  /** So is who jumps there while older messages come, with the end loaded or not. */
  async edge(open) {
    const v = await open()
    await v.page.route(/messages\?/, route => route.continue()) // without one that stays, the end of a hold ends the other
    for (const from of [401, 301]) {
      await v.open(await v.imported(turns(600)))
      const up = () => v.log.evaluate(e => { e.scrollTop = 0 })
      await until(`the messages from ${from} on`, () => v.log.evaluate((e, from) => { // at once: a scroll after a look would load more
        if (Number(e.querySelector('article[data-seq]')?.dataset.seq) === from) return true
        e.scrollTop = 0
      }, from))
      const [older, newest] = [await v.hold(/messages\?before=/), await v.hold(/messages\?order=desc/)]
      await up()
      await older.asked
      await v.button('Jump to latest').click()
      older.release()
      if (from === 301) await until('older messages', async () => (await seqs(v))[0] === 251)
      newest.release()
      await until('the newest messages', async () => (await seqs(v))[0] === 551) // whatever came before them
      await v.button('Jump to latest').waitFor({ state: 'detached' })
      inOrder(await seqs(v), 600)
    }
  },

  /** A press of "Jump to latest" outdoes a link that is on its way; what is deleted while its page is on its way is not shown. */
  async meanwhile(open) {
    const v = await open()
    await v.page.route(/messages\?/, route => route.continue()) // as above
    const id = await v.imported(turns(600))
    await v.open(id)
    const linked = await v.hold(/messages\?after=/)
    await v.page.evaluate(id => { location.hash = `#/s/${id}/m/100` }, id)
    await linked.asked
    await v.button('Jump to latest').click()
    const newest = v.page.waitForRequest(/messages\?order=desc/)
    linked.release()
    await newest
    await until('the newest messages', async () => (await seqs(v)).at(-1) === 600)
    await v.button('Jump to latest').waitFor({ state: 'detached' })
    inOrder(await seqs(v), 600)
    const older = await v.hold(/messages\?before=/)
    await v.log.evaluate(e => { e.scrollTop = 0 })
    await older.asked
    const [gone] = (await v.api(`sessions/${id}/messages?after=539&limit=1`)).items
    await v.api(`sessions/${id}/messages/${gone.id}`, { method: 'DELETE' })
    await v.api(`sessions/${id}`, { method: 'PATCH', json: { title: 'one is gone' } })
    await v.page.getByRole('heading', { name: 'one is gone' }).waitFor() // and the event before it has come
    older.release()
    await until('older messages', async () => (await seqs(v))[0] === 501)
    equal(await v.log.getByText(gone.content.slice(0, 30)).count(), 0, 'a deleted message')
  },

  /** An image of another host is a link that says where it leads; a summary that was made without its model says why in words; half an
   *  answer that a filter let through says that it is one. */
  async words(open) {
    const v = await open()
    const said = Array.from({ length: 38 }, (_, i) => ({ role: i % 2 ? 'assistant' : 'user', content: `turn ${i} ${'beyond words '.repeat(20)}` }))
    const id = await v.imported([...said, { role: 'user', content: 'show me' }, { role: 'assistant', content: '![a heron](https://images.example/heron.png) [![a crane](https://images.example/crane.png)](https://birds.example/)', finish_reason: 'content_filter' }], { title: 'words' })
    await v.api(`sessions/${id}/summarize`, { method: 'POST', json: {} })
    await v.open(id)
    await v.log.getByRole('link', { name: 'a heron, images.example' }).waitFor()
    await v.log.getByRole('link', { name: 'a crane', exact: true }).waitFor()
    equal(await v.log.locator('img').count(), 0, 'images')
    await v.log.getByText('The answer broke off').waitFor()
    check((await v.api(`sessions/${id}/summaries`)).items[0].note.startsWith('fallback: '), 'the summary was made with its model')
    await v.button('Show the summary', v.log).click()
    await v.log.getByText(/^Made without a model: the /).waitFor()
    equal(await v.page.getByText('fallback').count(), 0, 'the server\'s own words')
  },
}
