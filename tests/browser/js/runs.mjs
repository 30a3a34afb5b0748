// Runs step by step and the exact prompt: what they show is held against the API.
import { check, equal, until } from './visit.mjs'

const digits = text => Number(text.replace(/\D/g, ''))
const rows = v => v.page.getByRole('region', { name: 'Steps of the run' }).locator('tbody tr').evaluateAll(all => all.map(r => [...r.cells].map(c => (c.querySelector('.label') ?? c).textContent.trim())))
const nodes = v => graph(v).locator('text').allTextContents()
const graph = v => v.page.getByRole('img', { name: /^Graph of / })

/** What the steps say of the model calls, and what the API does. */
async function sameCalls(v, run) {
  const { items } = await v.api(`runs/${run}/calls`)
  const shown = (await rows(v)).filter(r => r[1] === 'llm_node')
  equal(shown.map(r => [digits(r[5]), digits(r[7])]), items.map(c => [c.usage.input_tokens, c.usage.output_tokens]), 'tokens of the model calls')
}

export const cases = {
  /** A run while it is at work, when it has ended, and after a reload. */
  async steps(open) {
    const v = await open()
    await v.ask('an earlier one')
    await v.send('hold-steps calculate this')
    await v.log.getByText('answer to: hold').or(v.log.getByText('calculator')).first().waitFor()
    await v.field.fill('a draft that stays')
    await v.page.keyboard.press('Alt+2')
    await graph(v).and(v.page.getByRole('img', { name: /Running now: llm_node/ })).waitFor()
    await until(() => `the feed and the session: ${v.held.size}`, () => v.held.size === 2)
    await v.page.getByRole('row', { name: /at work/ }).waitFor()
    await v.state('graph')
    await v.control('release', { mark: 'hold-steps', pieces: 20 })
    await v.page.getByRole('region', { name: /^Run of/ }).getByText('succeeded').waitFor()
    await v.page.getByRole('row', { name: /writes the answer/ }).waitFor()
    await graph(v).and(v.page.getByRole('img', { name: /Nothing is running/ })).waitFor()
    const shown = await rows(v)
    equal(shown.map(r => r.slice(0, 3)), [['1', 'llm_node', 'asks for 1 tool'], ['2', 'calculator', '42'], ['3', 'llm_node', 'writes the answer']], 'the steps')
    const { items: [newest, earlier] } = await v.api(`sessions/${v.session()}/runs`)
    await sameCalls(v, newest.id)
    const times = await nodes(v)
    check(times.some(t => /^ready after \d/.test(t)) && times.some(t => /^1 call, .*\d ms$/.test(t)), `the graph has the times ${times}`)
    await v.page.reload()
    await until(async () => `the times ${await nodes(v)} after a reload, ${times} before`, async () => String(await nodes(v)) === String(times))
    // Rows that were loaded stay when the list is loaded anew.
    await v.page.route('**/runs?*', route => route.continue({ url: route.request().url().replace('limit=50', 'limit=1') }))
    await v.page.keyboard.press('Alt+1')
    await v.page.keyboard.press('Alt+2')
    await v.button('Older runs').click()
    const listed = v.page.getByRole('link').filter({ has: v.page.getByText(/^(an earlier one|hold-steps|one more)/) })
    await listed.nth(1).waitFor()
    await v.api(`sessions/${v.session()}/messages`, { method: 'POST', json: { content: 'one more' } })
    await listed.first().getByText('one more').waitFor()
    await until('the rows stay', async () => await listed.count() >= 2)
    await v.button('Older runs').click()
    await v.page.getByRole('link', { name: /an earlier one/ }).click()
    await until('the earlier run is shown', async () => (await rows(v)).length === 1)
    await v.page.reload()
    await v.page.getByRole('row', { name: /writes the answer/ }).waitFor()
    check(v.page.url().includes(earlier.id), 'the address does not say which run')
    await sameCalls(v, earlier.id)
    await v.page.keyboard.press('Alt+1')
    equal(await v.field.inputValue(), 'a draft that stays', 'the draft')
  },

  /** A tool that waits for a person, one that failed, and a conversation without runs. */
  async states(open) {
    const v = await open()
    await v.open(await v.imported([{ role: 'user', content: 'said elsewhere' }, { role: 'assistant', content: 'heard' }], { agent: 'careful' }))
    await v.page.keyboard.press('Alt+2')
    await v.page.getByText('No runs yet').waitFor()
    await v.state('no-runs')
    await v.page.keyboard.press('Alt+1')
    await v.send('calculate this')
    await v.page.getByRole('region', { name: /^Question/ }).waitFor()
    await v.page.keyboard.press('Alt+2')
    await v.page.getByRole('row', { name: /waits for a decision/ }).waitFor()
    await graph(v).and(v.page.getByRole('img', { name: /Waiting for a person: tool_node/ })).waitFor()
    await v.page.getByRole('row', { name: /llm_node/ }).getByText(/^[\d,]+ in, \d+ % cached, \d+ out$/).filter({ visible: v.args.width === 'phone' }).waitFor({ state: 'attached' })
    await v.state('run-waits')
    await v.page.keyboard.press('Alt+1')
    await v.button('Approve').click()
    await v.settled('answer to: calculate this')
    await v.page.keyboard.press('Alt+2')
    await v.page.getByRole('row', { name: /approved/ }).waitFor()
    await v.page.keyboard.press('Alt+1')
    await v.send('hold-early one two')
    await v.page.locator('[role=log][aria-busy=true]').waitFor()
    await v.page.keyboard.press('Alt+2')
    await v.button('Stop').click()
    await v.page.getByText('It was stopped before a step was done.').waitFor()
    await v.control('release', { mark: 'hold-early', pieces: 20 })
    await v.page.keyboard.press('Alt+1')
    await v.send('the provider fails here')
    await v.log.getByText('The answer broke off').waitFor()
    await v.page.keyboard.press('Alt+2')
    await v.page.getByRole('region', { name: /^Run of/ }).getByText('failed', { exact: true }).waitFor()
    await v.state('run-failed')
    // Some days later each run says of which day it is.
    const later = await open({ fresh: true })
    await later.page.clock.setFixedTime(Date.now() + 5 * 86_400_000)
    await later.page.goto(`${v.args.url}#/s/${v.session()}/runs`)
    await later.page.reload()
    await later.page.getByRole('heading', { name: /^Run of \d+ \w+, \d\d:\d\d$/ }).waitFor()
    await later.state('run-old')
    await v.page.goto(`${v.args.url}#/s/${v.session()}/runs/01a1fd1c-7a10-7000-8000-000000000002`)
    await v.page.getByText('The runs could not be loaded').waitFor()
  },

  /** The prompt is what the API says, part by part, and says what has changed. */
  async prompt(open) {
    const v = await open()
    const id = await v.imported([{ role: 'user', content: '<b>hostile</b> & exact\n'.repeat(30) }, { role: 'assistant', content: 'heard' }], { title: 'with a prompt' })
    await v.open(id)
    await v.page.keyboard.press('Alt+3')
    const text = v.page.getByRole('region', { name: 'The prompt, word for word' })
    await text.waitFor()
    const sections = v.page.getByRole('navigation', { name: 'Sections of the prompt' })
    const prompt = await v.api(`sessions/${id}/context/prompt`)
    const report = await v.api(`sessions/${id}/context`)
    const size = name => report.sections.find(s => s.name === name).tokens
    for (const [label, name] of [['System prompt', 'system'], ['Tools', 'tools'], ['Messages', 'tail']]) {
      equal(digits(await sections.getByRole('button', { name: new RegExp(`^${label}`) }).locator('.num').textContent()), size(name), `tokens of ${name}`)
    }
    equal(digits(await sections.locator('b').textContent()), prompt.tokens, 'tokens of the prompt')
    await v.state('prompt')
    const folded = text.getByRole('button', { expanded: false })
    while (await folded.count()) await folded.first().click()
    const shown = await text.locator('pre').allTextContents()
    for (const said of [...prompt.system, ...prompt.messages.map(m => m.content)]) check(shown.includes(said), `the prompt lacks ${said.slice(0, 80)}`)
    await v.api(`sessions/${id}/messages`, { method: 'POST', json: { content: 'one more' } })
    await sections.getByText('only at its end').waitFor()
    await text.getByText('one more', { exact: true }).waitFor()
    // What is unchanged since the last call is known after a reload, too.
    const unchanged = async () => (await v.api(`sessions/${id}/context/prompt`)).unchanged
    await v.page.reload()
    await sections.getByText('only at its end').waitFor()
    const same = await unchanged()
    check(same.parts === same.of_parts && same.tokens > 0, `unchanged is ${JSON.stringify(same)}`)
    await sections.getByText(new RegExp(`^${same.tokens.toLocaleString('en-US')} tokens, \\d+ %$`)).waitFor()
    await v.api(`sessions/${id}`, { method: 'PATCH', json: { instructions: 'Answer in verse.' } })
    await sections.getByText('from “System prompt” on').waitFor()
    // Of two parts of one name, it says which one.
    await v.page.route(/context\/prompt/, async route => {
      const json = await (await route.fetch()).json()
      json.system.push('Answer in prose.')
      json.system_parts.push({ name: 'system', tokens: 4 })
      json.unchanged.parts = json.system.length
      await route.fulfill({ json })
    })
    await v.page.reload()
    await sections.getByText('from “System prompt (3)” on').waitFor()
    const part = text.locator('section').filter({ has: v.page.getByRole('heading', { name: 'System prompt (3)', exact: true }) })
    equal(await part.locator('pre').allTextContents(), ['Answer in prose.'], 'the part')
    await v.state('prompt-changed')
    await text.getByRole('link', { name: 'in its place' }).last().click()
    await v.log.getByText('one more').first().waitFor()
    await v.page.goBack()
    await text.waitFor()
  },
}
