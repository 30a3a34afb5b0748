// The rare states of the page's parts, as the design lists them. Most come from answers of the API that are changed on
// their way: what brings them about has its tests elsewhere.
import { equal, until } from './visit.mjs'

/** The meter's states: what the API says, and what the meter does then. */
const meters = [
  { state: 'ready', change: r => { r.prepared = { version: 1, through_seq: 2, messages_covered: 2 } }, looks: 'rest' },
  { state: 'due', change: r => { r.will_trigger = true; r.triggers[0].fires = true; r.triggers[0].percent = 104 }, looks: 'due' },
  { state: 'tight', change: r => { Object.assign(r, { breaker: 'open', breaker_reason: 'the model does not answer', planned: r.trigger + 1 }) }, looks: 'tight' },
]

export const cases = {
  async meter(open, { theme, width }) {
    const v = await open({ theme, width })
    const id = await v.imported([], { title: 'the meter' })
    await v.open(id)
    const meter = v.page.getByRole('button', { name: /^Context: / })
    const looks = mood => v.page.locator(`button.meter.${mood}`).waitFor()
    await v.ask('first')
    await looks('rest')
    await v.state('meter-rest')
    await v.page.route('**/context/plan', async route => {
      const response = await route.fetch()
      await route.fulfill({ response, json: { ...await response.json(), fits: false, floor: { culprit: 'message', tokens: 40_000, usable: 28_000, detail: '' } } })
    })
    await v.field.fill('larger than the window')
    await looks('floor')
    await v.state('meter-floor')
    await v.page.unroute('**/context/plan')
    await v.field.fill('')
    const report = /\/sessions\/[\w-]+\/context$/
    for (const { state, change, looks: mood } of meters) {
      await v.page.route(report, async route => {
        const response = await route.fetch()
        const json = await response.json()
        change(json)
        await route.fulfill({ response, json })
      })
      await v.page.reload()
      await looks(mood)
      await v.state(`meter-${state}`)
      await v.page.unroute(report)
    }
    await v.page.route(report, route => route.fulfill({ status: 403, contentType: 'application/problem+json', body: JSON.stringify({ title: 'No', status: 403, detail: 'not for you' }) }))
    await v.page.reload()
    await looks('unknown')
    equal(await meter.locator('> .num').textContent(), '–', 'the meter')
    await v.state('meter-unknown')
    await v.page.unroute(report)
  },

  /** Tools that failed and were stopped, a list whose conversations are in all states, a toast. */
  async rows(open, { theme, width }) {
    const v = await open({ theme, width })
    const tool = (i, status, content) => [
      { role: 'assistant', content: '', tool_calls: [{ id: `c${i}`, type: 'function', function: { name: 'fetch_url', arguments: `{"url":"https://status.example.com/${i}"}` } }] },
      ...content ? [{ role: 'tool', tool_call_id: `c${i}`, status, content }] : [],
    ]
    const id = await v.imported([{ role: 'user', content: 'look it up' }, ...tool(1, 'complete', 'up'), ...tool(2, 'failed', 'refused: private address'), { role: 'assistant', content: 'It is up.' }], { title: 'tools' })
    const failing = await v.imported([], { title: 'fails' })
    const asking = await v.imported([], { agent: 'careful', title: 'asks' })
    await v.imported([{ role: 'user', content: 'from elsewhere' }], { title: 'written elsewhere' })
    await v.api(`sessions/${asking}/messages`, { method: 'POST', json: { content: 'calculate this' } })
    await v.open(failing)
    await v.send('the provider fails here')
    await v.log.getByText('The answer broke off').waitFor()
    await v.open(id)
    await v.settled('It is up.')
    await v.state('tools')
    const archived = await v.imported([], { title: 'to be archived' })
    await v.open(archived)
    await v.button('More', v.page.getByRole('main')).click()
    await v.page.getByRole('menuitem', { name: 'Archive' }).click()
    await v.button('Undo').waitFor()
    await v.state('toast')
    await v.showList()
    await v.list.getByText('Waits for your answer').first().waitFor()
    await v.list.getByText('The answer broke off').first().waitFor()
    await v.state('list')
  },

  /** A summary that is edited, and one that was taken back. */
  async summaries(open, { theme, width }) {
    const v = await open({ theme, width })
    const id = await v.imported(Array.from({ length: 40 }, (_, i) => ({ role: i % 2 ? 'assistant' : 'user', content: `turn ${i} ${'of many words '.repeat(20)}` })), { title: 'with a summary' })
    await v.api(`sessions/${id}/summarize`, { method: 'POST' })
    const { through_seq: at } = await v.api(`sessions/${id}/summaries/1`)
    await v.open(id, at)
    const card = v.page.getByRole('region', { name: /^Summary v1/ })
    await card.getByRole('button', { expanded: false }).click()
    await v.button('Edit', card).click()
    await v.state('summary-edit')
    await v.button('Cancel', card).click()
    await v.page.getByRole('button', { name: /^Undo: / }).click()
    await v.page.getByText('Summary v1 undone').first().waitFor()
    await until('the card is gone', async () => await card.count() === 0)
    await v.state('summary-undone')
  },
}
