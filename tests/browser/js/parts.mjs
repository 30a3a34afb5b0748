// The rare states of the page's parts, as the design lists them.
import { check } from './visit.mjs'

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
    check(await v.page.locator('.toast').evaluate(e => e.getBoundingClientRect().bottom <= document.querySelector('.composer').getBoundingClientRect().top), 'the toast covers the composer')
    await v.state('toast')
    await v.showList()
    await v.list.getByText('Waits for your answer').first().waitFor()
    await v.list.getByText('The answer broke off').first().waitFor()
    await v.state('list')
  },
}
