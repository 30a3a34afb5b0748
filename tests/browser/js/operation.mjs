// The operation: what needs a person in all conversations, decided and repaired where it stands.
import { check, equal, until } from './visit.mjs'

async function seed(v) {
  const failing = await v.imported([], { title: 'fails here' })
  await v.api(`sessions/${failing}/messages`, { method: 'POST', json: { content: 'the provider fails here' } })
  const asking = []
  for (const title of ['asks first', 'asks second']) {
    asking.push(await v.imported([], { agent: 'careful', title }))
    await v.api(`sessions/${asking.at(-1)}/messages`, { method: 'POST', json: { content: 'calculate this' } })
  }
  await v.api('memories', { method: 'POST', json: { content: 'The inspection is on <b>Friday</b>.', user_id: 'carol' } })
  await v.api('memories', { method: 'POST', json: { content: 'Invoices are numbered by month.' } })
  return { failing, asking }
}

const card = (v, title) => v.page.locator('.ops-card').filter({ has: v.page.getByRole('heading', { name: title }) })

export const cases = {
  async operation(open) {
    const v = await open()
    const { asking } = await seed(v)
    await v.showList()
    await v.page.getByRole('link', { name: 'Operation' }).click()
    const waiting = card(v, /^Waiting for a person/)
    await waiting.getByRole('button', { name: 'Approve calculator, asks first' }).waitFor()
    await card(v, /^Failures/).getByText('the model is out of order').first().waitFor()
    await v.page.getByRole('img', { name: /assistant/ }).waitFor()
    await v.state('ops')
    // The arguments are there before somebody decides.
    await waiting.getByRole('button', { name: 'Arguments: calculator' }).last().click()
    await waiting.getByText('6*7').waitFor()
    await waiting.getByRole('button', { name: 'Approve calculator, asks first' }).click()
    await waiting.getByRole('button', { name: 'Approve calculator, asks first' }).waitFor({ state: 'detached' })
    await until('the first run goes on', async () => (await v.api(`sessions/${asking[0]}`)).status === 'idle')
    // Who is second is told that the first answer counts.
    const [run] = (await v.api('runs?status=waiting')).items.filter(r => r.session_id === asking[1])
    await v.page.route('**/api/v1/runs?*', route => route.abort())
    await v.api(`runs/${run.id}/approvals/${run.approvals[0].id}`, { method: 'POST', json: { decision: 'approve' } })
    await waiting.getByRole('button', { name: 'Deny calculator, asks second' }).click()
    await v.page.getByText('Someone else was faster').waitFor()
    await v.page.unroute('**/api/v1/runs?*')
    // The way to the conversation, and back by the address.
    await v.page.getByRole('button', { name: 'All', exact: true }).click()
    await card(v, /^Runs/).getByRole('link', { name: 'fails here' }).click()
    await v.log.getByText('the provider fails here').waitFor()
    await v.page.goto(`${v.args.url}#/operation/memories`)
    const memories = card(v, /^Memories/)
    await memories.getByText('The inspection is on <b>Friday</b>.').waitFor()
    await v.page.getByRole('searchbox', { name: 'Search in memories' }).fill('inspection')
    await v.page.keyboard.press('Enter')
    await memories.getByText(/found by their/).waitFor()
    await memories.getByRole('button', { name: /^Delete: The inspection/ }).click()
    await v.state('ops-memories')
    await v.button('Delete for good').click()
    await until('the memory is gone', async () => (await v.api('memories')).items.every(m => !m.content.includes('inspection')))
    for (const tab of ['Runs', 'Deliveries', 'Usage']) {
      await v.page.getByRole('navigation', { name: 'Parts of the operation' }).getByRole('link', { name: tab }).click()
      await v.page.getByRole('region', { name: tab, exact: true }).first().waitFor()
      await v.page.locator('.ops-card').first().getByText(/./).first().waitFor()
      await v.state(`ops-${tab.toLowerCase()}`)
    }
    await v.page.reload()
    await v.page.getByRole('table').getByRole('cell', { name: 'assistant' }).first().waitFor()
    equal(await v.page.evaluate(() => document.documentElement.scrollWidth > innerWidth), false, 'the page is wider than the window')
  },

  /** What is not for the caller is said, with the request's id. */
  async refused(open) {
    const v = await open()
    await v.page.route('**/api/v1/deliveries*', route => route.fulfill({ status: 403, contentType: 'application/problem+json', body: JSON.stringify({ title: 'Forbidden', status: 403, code: 'owners_only', detail: 'this is for API keys, not for end users', request_id: 'request-of-the-test' }) }))
    await v.page.goto(`${v.args.url}#/operation/deliveries`)
    await v.page.getByText('This is for keys, not for end users.').waitFor()
    await v.page.getByRole('button', { name: /^request request-of-/ }).waitFor()
    check(await v.page.getByText('Not up to date').isVisible(), 'the page says that it is up to date')
  },
}
