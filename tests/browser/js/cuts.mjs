// A connection that breaks, a server that goes away, two tabs: what the page shows is what is stored, once.
import { equal, until } from './visit.mjs'
import { compare } from './chat.mjs'

/** What can go wrong while an answer is written; each leaves the connection as it was in the end. */
const faults = {
  cut: v => v.control('cut'),
  away: async v => {
    await v.control('refuse', { on: 'true' })
    await v.page.waitForTimeout(300)
    await v.control('refuse', { on: 'false' })
  },
  late: v => v.control('delay', { ms: 60 }),
  restart: v => v.control('restart'),
  kill: v => v.control('restart', { kill: 'yes' }),
  switch: v => v.control('switch'), // to the other replica
  takeover: v => v.control('switch', { kill: 'yes' }),
}

/** One conversation in which each turn meets a fault at some piece of its answer; two tabs watch. */
async function play(open, steps) {
  const v = await open()
  await v.ask('begin')
  const other = await open({ share: v, hash: `#/s/${v.session()}` })
  await other.settled('answer to: begin')
  for (const [turn, { fault, piece }] of steps.entries()) {
    const mark = `hold-cut${turn}`
    await v.send(`${mark} alpha beta gamma delta epsilon zeta`)
    await v.control('release', { mark, pieces: piece })
    if (piece > 0) await v.log.getByText(`answer to: ${mark.slice(0, 4)}`).last().waitFor({ timeout: 5000 }).catch(() => {}) // late is allowed
    await faults[fault](v)
    await v.control('release', { mark, pieces: 400 }) // of the run that starts again after a restart, too
    await until(`turn ${turn} is stored (${fault})`, async () => {
      const run = await v.api(`sessions/${v.session()}`).catch(() => undefined)
      const { items } = await v.api(`sessions/${v.session()}/messages?order=desc&limit=5`).catch(() => ({ items: [] }))
      return run && !run.active_run && items[0]?.role === 'assistant' && items[0].content.includes('zeta') && items[0].content.includes(mark)
    }, 60_000)
    await v.control('delay', { ms: 0 })
    for (const one of [v, other]) await one.page.getByText('No connection').first().waitFor({ state: 'detached', timeout: 30_000 })
    for (const one of [v, other]) await compare(one)
  }
  equal(await other.texts(), await v.texts(), 'the other tab')
  return { turns: steps.length }
}

export const cases = {
  async fixed(open) {
    return play(open, [{ fault: 'cut', piece: 4 }, { fault: 'late', piece: 2 }, { fault: 'restart', piece: 3 }])
  },

  /** Steps that the Go test has drawn. */
  async drawn(open, { steps }) { return play(open, steps) },

  /** What is written without a connection waits, is kept, and is sent once. */
  async offline(open) {
    const v = await open()
    await v.ask('before')
    await v.control('refuse', { on: 'true' })
    await v.page.getByText('No connection').first().waitFor()
    await v.send('written without a connection')
    await v.page.getByText(/1 message waits/).waitFor()
    await v.state('offline')
    await v.control('refuse', { on: 'false' })
    await v.settled('answer to: written without a connection')
    await compare(v)
    const { items } = await v.api(`sessions/${v.session()}/messages`)
    equal(items.filter(m => m.role === 'user').length, 2, 'messages of the person')
  },

  /** The rooms beside the chat, in both languages: what came while nothing was heard is there afterwards, once. */
  async rooms(open) {
    for (const locale of ['en-US', 'de-DE']) {
      const v = await open({ locale })
      const id = await v.imported([{ role: 'user', content: 'before' }], { title: `rooms ${locale}` })
      const main = v.page.getByRole('main')
      const asking = async title => {
        const session = await v.imported([], { agent: 'careful', title })
        await v.api(`sessions/${session}/messages`, { method: 'POST', json: { content: 'calculate this' } })
      }
      const saying = content => v.api(`sessions/${id}/messages`, { method: 'POST', json: { content } })
      const rooms = [
        { address: `s/${id}/runs`, come: saying, shows: text => main.getByRole('link', { name: text }) },
        { address: `s/${id}/prompt`, come: saying, shows: text => main.locator('pre').getByText(text, { exact: true }) },
        { address: 'operation', come: asking, shows: text => main.getByRole('button', { name: new RegExp(`(Approve|erlauben).*${text}|${text}.*(Approve|erlauben)`) }) },
        { address: `s/${id}`, come: saying, shows: text => v.log.locator('.said').getByText(text, { exact: true }) },
      ]
      for (const [n, { address, come, shows }] of rooms.entries()) {
        const words = when => `${when} room ${n} ${locale}`
        await come(words('before'))
        await v.page.goto(`${v.args.url}#/${address}`)
        await shows(words('before')).waitFor()
        await v.page.route('**/events', route => route.abort())
        await v.control('cut')
        await come(words('away'))
        await v.page.unroute('**/events')
        await shows(words('away')).waitFor({ timeout: 30_000 })
        for (const when of ['before', 'away']) equal(await shows(words(when)).count(), 1, `${words(when)} in ${address}`)
      }
    }
  },

  /** Two tabs: what one writes, edits and stops is in the other. */
  async tabs(open) {
    const v = await open()
    await v.ask('from the first tab')
    const other = await open({ share: v, hash: `#/s/${v.session()}` })
    await other.settled('answer to: from the first tab')
    await other.send('hold-tabs from the second tab')
    await v.control('release', { mark: 'hold-tabs', pieces: 3 })
    await v.log.getByText('answer to: hold-tabs').waitFor()
    await v.button('Stop').click()
    await other.log.getByText('You stopped it').waitFor()
    await v.control('release', { mark: 'hold-tabs', pieces: 20 })
    await v.ask('and once more')
    await other.settled('answer to: and once more')
    for (const one of [v, other]) await compare(one)
    equal([v.held.size, other.held.size], [2, 2], 'streams that each tab holds')
  },
}
