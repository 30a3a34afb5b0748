// The operation: what needs a person in all conversations, decided and repaired where it stands.
import { readFileSync } from 'node:fs'
import { fail } from './failures.mjs'
import { cut } from './language.mjs'
import { check, equal, until } from './visit.mjs'

async function seed(v) {
  const failing = await v.imported([], { title: 'fails here' })
  for (const content of ['an answer, for the usage', 'the provider fails here']) await v.api(`sessions/${failing}/messages`, { method: 'POST', json: { content } })
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
    await v.page.route('**/api/v1/runs?*status=waiting*', route => route.continue({ url: route.request().url().replace('limit=50', 'limit=1') }))
    await v.showList()
    await v.page.getByRole('link', { name: 'Operation' }).click()
    const waiting = card(v, /^Waiting for a person/)
    await waiting.getByRole('button', { name: 'Show more' }).click() // the oldest first
    await waiting.getByRole('button', { name: 'Approve calculator, asks first' }).waitFor()
    await waiting.getByRole('button', { name: 'Approve calculator, asks second' }).waitFor()
    await v.page.unroute('**/api/v1/runs?*status=waiting*')
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
    // Only what means that somebody was faster is told so.
    await fail(v, '**/approvals/*', 409, { code: 'conflict' })
    await waiting.getByRole('button', { name: 'Deny calculator, asks second' }).click()
    await v.page.getByText("the server's sentence for 409").waitFor()
    equal(await v.page.getByText('Someone else was faster').count(), 0, 'texts about somebody faster')
    await v.page.unroute('**/api/v1/runs?*') // until then the list keeps what was decided
    // The way to the conversation, and back by the address.
    await v.page.getByRole('button', { name: 'All', exact: true }).click()
    await card(v, /^Runs/).getByRole('link', { name: 'fails here' }).first().click()
    await v.log.getByText('the provider fails here').waitFor()
    await v.page.goto(`${v.args.url}#/operation/memories`)
    const memories = card(v, /^Memories/)
    await memories.getByText('The inspection is on <b>Friday</b>.').waitFor()
    await v.page.getByRole('searchbox', { name: 'Search in memories' }).fill('inspection')
    await v.page.keyboard.press('Enter')
    await memories.getByText(/found by their/).waitFor()
    await memories.getByRole('button', { name: /^Delete: The inspection/ }).click()
    await v.state('ops-memories')
    await v.button('Keep').click()
    check(await memories.getByRole('button', { name: /^Delete: The inspection/ }).evaluate(e => e === document.activeElement), 'what was kept has no focus')
    await v.page.keyboard.press('Enter')
    await v.button('Delete for good').click()
    await until('the memory is gone', async () => (await v.api('memories')).items.every(m => !m.content.includes('inspection')))
    await until('the next memory has the focus', () => v.page.evaluate(() => document.activeElement.ariaLabel?.startsWith('Delete: ')))
    // A file that is dropped here is not opened.
    const kept = type => v.page.evaluate(type => {
      const dataTransfer = new DataTransfer()
      dataTransfer.items.add(new File([''], 'dropped.txt'))
      return !document.body.dispatchEvent(new DragEvent(type, { dataTransfer, bubbles: true, cancelable: true }))
    }, type)
    equal([await kept('dragover'), await kept('drop')], [true, true], 'whether the page stays when a file is dropped')
    for (const tab of ['Runs', 'Deliveries', 'Usage']) {
      await v.page.getByRole('navigation', { name: 'Parts of the operation' }).getByRole('link', { name: tab }).click()
      await v.page.getByRole('region', { name: tab, exact: true }).first().waitFor()
      await v.page.locator('.ops-card :is(table, p)').first().waitFor()
      await v.state(`ops-${tab.toLowerCase()}`)
    }
    await v.page.reload()
    await v.page.getByRole('table').getByRole('cell', { name: 'assistant' }).first().waitFor()
    const range = v.page.getByRole('combobox', { name: 'Length of time' })
    await range.selectOption({ label: 'last 90 days' })
    const { total } = await v.api(`usage?group_by=day_agent&from=${new Date(Date.now() - 89 * 86_400_000).toISOString().slice(0, 10)}`)
    await v.page.getByRole('row', { name: /^Total/ }).getByRole('cell', { name: total.input_tokens.toLocaleString('en-US'), exact: true }).waitFor()
    // What has no price has none in the file.
    const [file] = await Promise.all([v.page.waitForEvent('download'), v.button('Save as CSV').click()])
    const lines = readFileSync(await file.path(), 'utf8').trim().split('\r\n')
    check(lines.length > 1 && lines.slice(1).every(l => /,"","[1-9]\d*"$/.test(l)), `the table is ${lines.slice(0, 3).join(' / ')}`)
    // Nor in the legend, beside what has one; a cost that is not the whole says so, and calls without an agent are not the others'.
    const more = []
    await v.page.route('**/usage?*', async route => {
      const json = await (await route.fetch()).json()
      for (const r of json.items) if (r.key.endsWith(' careful')) Object.assign(r, { cost_micro_usd: 1_400_000, unpriced_calls: 0 })
      for (const [agent, unpriced_calls] of more) json.items.push({ ...json.items[0], key: `${json.items[0].key.slice(0, 10)} ${agent}`, cost_micro_usd: 9_000_000, unpriced_calls })
      await route.fulfill({ json })
    })
    await v.page.reload()
    for (const total of [/^careful \$\d/, 'assistant –']) await v.page.getByRole('listitem').getByText(total).waitFor()
    more.push(['', 90], ['a', 0], ['b', 0], ['c', 0])
    await v.page.reload()
    for (const total of ['without an agent ≥ $9.00', 'a $9.00', /^others ≥ \$1\.40/]) await v.page.getByRole('listitem').getByText(total).waitFor()
    await v.page.getByRole('row', { name: /without an agent .*≥ \$9\.00$/ }).waitFor()
    await v.page.unroute('**/usage?*')
    // Runs by status, agent and reason.
    await v.page.goto(`${v.args.url}#/operation/runs`)
    const filter = name => v.page.getByRole('combobox', { name, exact: true })
    await filter('Status').selectOption('failed')
    const failed = card(v, /^Runs/).getByRole('link', { name: 'fails here' }).first()
    await failed.waitFor()
    await filter('Reason').selectOption('model_invalid')
    await filter('Agent').selectOption('assistant')
    await failed.waitFor()
    await filter('Agent').selectOption('brief')
    await v.page.getByText('No such run in 24 hours.').waitFor()
    equal(await v.page.evaluate(() => document.documentElement.scrollWidth > innerWidth), false, 'the page is wider than the window')
  },

  /** A delivery that failed is shown with why and where from, and can be tried again. */
  async deliveries(open) {
    const v = await open()
    const title = `reported to nobody, ${v.args.theme}, ${v.args.width}`
    const id = await v.imported([], { title, webhook: { url: `${v.args.control}/gone` } })
    await v.api(`sessions/${id}/messages`, { method: 'POST', json: { content: 'report this' } })
    await v.page.goto(`${v.args.url}#/operation/deliveries`)
    const row = v.page.getByRole('row', { name: /failed/ }).filter({ has: v.page.getByRole('link', { name: title }) })
    await row.getByText('410').waitFor()
    const [head, cell] = await v.page.locator('.to').evaluateAll(all => all.map(e => getComputedStyle(e).paddingLeft))
    equal(cell, head, 'where a receiver and its heading begin')
    await v.state('ops-failed-delivery')
    await row.getByRole('button', { name: /^Try again/ }).click()
    await row.getByText('2 attempts').waitFor()
    const { items: [delivery] } = await v.api('deliveries?state=failed')
    equal([delivery.title, delivery.attempt], [title, 2], 'the delivery')
    // One that moves between the two lists comes in both for a moment.
    await v.page.route('**/deliveries?*state=pending*', route => route.continue({ url: route.request().url().replace('pending', 'failed') }))
    await v.page.goto(`${v.args.url}#/operation`)
    const unsent = card(v, /^Webhooks not through/).getByRole('row', { name: /410/ }).filter({ hasText: '2 attempts' }).first()
    await unsent.getByRole('link', { name: title }).waitFor()
    await v.state('ops-not-through')
    const size = v.page.viewportSize()
    for (const width of [900, 1100, 1280]) {
      await v.page.setViewportSize({ width, height: 640 })
      const room = Math.min(...await v.page.locator('.cards td.to').evaluateAll(all => all.map(e => e.clientWidth)))
      check(room > 150, `a receiver has ${room} px in a window of ${width}`)
      equal(await v.page.evaluate(cut), [], `what is cut in a window of ${width}`)
    }
    await v.page.setViewportSize(size)
    await unsent.getByRole('button').click()
    await card(v, /^Webhooks not through/).getByText('3 attempts').first().waitFor()
    // Attempts that fail change nothing else: they are there once they were due.
    let attempt = 5
    await v.page.route(/deliveries\?/, route => route.fulfill({ json: { items: [{ ...delivery, state: 'pending', attempt: ++attempt, next_at: new Date().toISOString() }], next_cursor: null } }))
    await v.page.goto(`${v.args.url}#/operation/deliveries`)
    await v.page.getByRole('button', { name: `Try again: ${new URL(v.args.control).host}, ${title}` }).waitFor()
    await v.page.getByText('8 attempts').waitFor()
    // While nobody looks, nothing is asked.
    const hidden = await open({ fresh: true })
    await hidden.page.clock.install()
    let asked = 0
    await hidden.page.route(/deliveries\?/, route => route.fulfill({ json: { items: [{ ...delivery, state: 'pending', attempt: ++asked, next_at: new Date(0).toISOString() }], next_cursor: null } }))
    const see = state => hidden.page.evaluate(state => {
      Object.defineProperty(document, 'visibilityState', { value: state, configurable: true })
      document.dispatchEvent(new Event('visibilitychange'))
    }, state)
    await hidden.page.goto(`${v.args.url}#/operation/deliveries`)
    await hidden.page.getByRole('table').getByRole('link', { name: title }).first().waitFor()
    await see('hidden')
    const before = asked
    await hidden.page.clock.runFor(20_000)
    await hidden.page.evaluate(() => fetch('api/v1/deliveries?after all that was asked before'))
    equal(asked, before + 1, 'requests in a hidden tab')
    await see('visible')
    await hidden.page.clock.runFor(3000)
    await hidden.page.getByText(`${asked + 1} attempts`).waitFor()
  },

  /** What is not for the caller is said, with the request's id. */
  async refused(open) {
    const v = await open()
    await v.page.route('**/api/v1/deliveries*', route => route.fulfill({ status: 403, contentType: 'application/problem+json', body: JSON.stringify({ title: 'Forbidden', status: 403, code: 'owners_only', detail: 'this is for API keys, not for end users', request_id: 'request-of-the-test' }) }))
    await v.page.goto(`${v.args.url}#/operation/deliveries`)
    await v.page.getByText('This is for keys, not for end users.').waitFor()
    await v.page.getByRole('button', { name: /^request request-of-/ }).waitFor()
    await v.state('ops-refused')
    check(await v.page.getByText('Not up to date').isVisible(), 'the page says that it is up to date')
    // An end user has one sentence, whatever the address says.
    await v.page.evaluate(() => sessionStorage.setItem('bobbin.key', 'e30.e30.signature'))
    await v.page.goto(`${v.args.url}#/operation`)
    await v.page.reload()
    await v.page.getByRole('region', { name: 'Overview' }).getByText('This is for keys, not for end users.').waitFor()
    await v.state('ops-enduser')
    equal([await v.page.getByRole('alert').count(), await v.page.getByRole('table').count()], [0, 0], 'refusals and tables for an end user')
  },

  /** The API document's page has every operation with its scope, and sends a request. */
  async docs(open) {
    const v = await open()
    await v.page.goto(v.args.url + 'docs')
    await v.page.locator('.opblock').first().waitFor()
    const { paths } = await (await v.page.request.get(v.args.url + 'openapi.json')).json()
    equal(await v.page.locator('.opblock').count(), Object.values(paths).flatMap(Object.keys).length, 'the operations')
    for (const text of ['List sessions (scope read)', '(scope write, not for end users)', '(no key)']) await v.page.getByText(text).first().waitFor()
    await v.page.locator('#operations-Sessions-listSessions').getByRole('button').first().click()
    await v.page.getByRole('button', { name: 'Try it out' }).click()
    await v.page.getByRole('button', { name: 'Execute' }).click()
    await v.page.locator('.live-responses-table').getByText('"items"').first().waitFor()
    await v.page.locator('.curl-command').getByText('/api/v1/sessions').first().waitFor()
  },
}
