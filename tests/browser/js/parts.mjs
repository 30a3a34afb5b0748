// The rare states of the page's parts, as the design lists them.
import { until } from './visit.mjs'

export const cases = {
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
    await v.menu('Archive')
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
