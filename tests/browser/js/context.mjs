// What the page says about the next prompt, held against the API after every turn.
import { check, equal, focused, until } from './visit.mjs'

const numbers = text => (text.match(/\d[\d,]*/g) ?? []).map(n => Number(n.replaceAll(',', '')))
const count = n => n.toLocaleString('en-US')
const same = (a, b) => JSON.stringify(a) === JSON.stringify(b)

/** What the rows of the panel are called that tell when the next summary comes. */
const triggers = { share: 'Tokens', messages: 'Messages', tokens: 'Tokens', unsummarized: 'Messages at most', iterations: 'Tool rounds', loop_tokens: 'Tokens in a tool loop' }

/** How the line beside a message looks, by its place. */
const textures = { verbatim: 'solid', covered: 'wound', masked: 'broken', shortened: 'broken', left_out: 'dots' }

/** The parts of a bar: what each stands for and how large it is. */
const barOf = bar => bar.locator('span').evaluateAll(all => all.map(e => [/\bc-(\w+)/.exec(e.className)[1], Number(e.style.flexGrow)]))

/** The line beside each message: its texture as it is drawn, and what the message's head says of its place. */
function readLine(articles) {
  const textureOf = piece => {
    const { backgroundImage: image } = getComputedStyle(piece.querySelector(':scope > .line'), '::before')
    return image === 'none' ? 'solid' : image.includes('118deg') ? 'wound' : image.includes(' 5px') ? 'broken' : 'dots'
  }
  return articles.flatMap(a => [...a.querySelectorAll('.piece:not(.end)')].map((piece, i) => ({
    seq: Number((i ? piece : a).dataset.seq), texture: textureOf(piece), says: i ? undefined : piece.querySelector('header .place')?.textContent ?? '',
  })))
}

/** What each column is made of: its height as drawn, and what it is by the numbers and the scale beside the chart. */
async function heights(chart, turns) {
  const ticks = await chart.locator('line.grid').evaluateAll(all => all.map(e => [Number(e.getAttribute('y1')), e.nextElementSibling.textContent]))
  const value = text => Number(text.replaceAll(/[,kM]/g, '')) * (text.endsWith('M') ? 1e6 : text.endsWith('k') ? 1000 : 1)
  const scale = (ticks[0][0] - ticks.at(-1)[0]) / value(ticks.at(-1)[1])
  const parts = t => {
    const fixed = ['system', 'tools', 'pinned', 'standing'].reduce((n, s) => n + (t.sections[s] ?? 0), 0)
    const summary = t.sections.summary ?? 0
    return { fixed, summary, messages: t.used - fixed - summary }
  }
  const drawn = {}
  for (const name of ['fixed', 'summary', 'messages']) drawn[name] = await chart.locator(`rect.${name}`).evaluateAll(all => all.map(e => Number(e.getAttribute('height'))))
  return turns.flatMap((t, i) => Object.entries(parts(t)).map(([name, tokens]) => [`${name} of turn ${i + 1}`, drawn[name][i] ?? NaN, scale * tokens]))
}

/** What differs between the page and the API at this moment. */
async function differences(v) {
  const id = v.session()
  const [report, turns] = await Promise.all([v.api(`sessions/${id}/context`), v.api(`sessions/${id}/context/turns`)])
  const panel = v.page.getByRole('complementary', { name: 'Context of the next prompt' })
  const bad = []
  const hold = (what, got, want) => { if (!same(got, want)) bad.push(`${what}: the page has ${JSON.stringify(got)}, the API ${JSON.stringify(want)}`) }
  const meter = v.page.getByRole('meter', { name: 'Prompt' })
  hold('meter', [Number(await meter.getAttribute('aria-valuenow')), Number(await meter.getAttribute('aria-valuemax'))], [report.used, report.usable])
  hold('percent', numbers(await meter.locator('+ .num').textContent()), [Math.round((100 * report.used) / report.usable)])
  hold('figure', numbers(await panel.locator('.figure > .num').allTextContents().then(all => all.join(' '))), [report.used, report.usable, Math.round((100 * report.used) / report.usable)])
  const last = s => s.name === 'reserve' // the page has what is kept for the answer at the end
  const sections = [...report.sections.filter(s => !last(s)), ...report.sections.filter(last)].filter(s => s.tokens > 0).map(s => [s.name, s.tokens])
  const bar = panel.getByRole('img', { name: /^System prompt/ })
  hold('window bar', await barOf(bar), sections)
  hold('window bar, read out', numbers(await bar.getAttribute('aria-label')), sections.map(s => s[1]))
  const rows = await panel.locator('.legend li').evaluateAll(all => all.map(e => [/\bc-(\w+)/.exec(e.querySelector('.swatch').className)[1], Number(e.querySelector('.push').textContent.replaceAll(',', ''))]))
  hold('sections', rows.filter(r => r[1] > 0), sections)
  const c = report.coverage
  const places = ['summarized', 'compacted', 'verbatim', 'masked', 'shortened', 'left_out'].filter(p => c[p] > 0 || p === 'summarized' || p === 'verbatim')
  const covered = panel.getByRole('img', { name: /word for word/ })
  hold('coverage', await barOf(covered), places.filter(p => c[p] > 0).map(p => [p, c[p]]))
  hold('coverage, read out', numbers(await covered.getAttribute('aria-label')), places.map(p => c[p]))
  hold('coverage, listed', numbers((await covered.locator('+ ul b').allTextContents()).join(' ')), places.map(p => c[p]))
  hold('lost', await panel.getByText(`${c.lost} lost`).count(), 1)
  const shownTriggers = await panel.locator('.trigger').evaluateAll(all => all.map(e => [e.children[0].textContent, e.children[2].textContent, e.querySelector('.track').classList.contains('warn'), Math.round(parseFloat(e.querySelector('i').style.width))]))
  hold('triggers', shownTriggers, report.triggers.toSorted((a, b) => b.percent - a.percent).map(t => [
    triggers[t.name] + (['messages', 'tokens'].includes(t.name) ? report.summary_version ? ` since v${report.summary_version}` : t.name === 'tokens' ? ' since the start' : '' : ''),
    `${count(t.value)} of ${count(t.threshold)}`, t.fires, Math.round(Math.min(100, t.percent)),
  ]))
  const chart = panel.getByRole('slider', { name: 'Prompt, turn by turn' })
  const newest = turns.turns.at(-1)
  const made = turns.turns.filter(t => t.summarized)
  hold('chart, newest turn', numbers(await chart.getAttribute('aria-valuetext')).slice(0, 3), [turns.turns.length, newest.used, newest.usable])
  hold('chart, columns', await chart.locator('rect.messages').count(), turns.turns.length)
  hold('chart, summaries', await chart.locator('circle.made').count(), made.length)
  hold('chart, versions', await chart.locator('text.version').allTextContents(), made.map(t => `v${t.summary_version}`))
  for (const [name, got, want] of await heights(chart, turns.turns)) if (!(Math.abs(got - want) <= 0.5)) bad.push(`chart, ${name}: ${got} px, want ${want}`)
  const cells = await panel.getByRole('table', { name: 'Prompt, turn by turn' }).locator('tbody tr').evaluateAll(all => all.map(e => [...e.children].map(c => c.textContent)))
  hold('chart, as a table', cells.map(c => [c[0], c[1], c[3], c[5], c[7]]), turns.turns.map((t, i) => [
    String(i + 1), count(t.used), ...[t.sections.summary, t.trigger].map(n => n ? count(n) : '–'), t.summarized ? `v${t.summary_version}` : '–',
  ]))
  const placeOf = seq => turns.ranges.find(r => r.from_seq <= seq && seq <= r.through_seq) ?? { place: 'verbatim' }
  for (const { seq, texture, says } of await v.articles.evaluateAll(readLine)) {
    const { place, summary_version: version } = placeOf(seq)
    hold(`the line beside message ${seq}`, texture, textures[place])
    if (says !== undefined) hold(`the head of message ${seq}`, says, place === 'verbatim' ? '' : `#${seq} · ${place === 'covered' ? `in summary v${version}` : place.replace('_', ' ')}`)
  }
  return bad
}

export const cases = {
  /** So many turns with compactions: differences 0. */
  async turns(open, { turns }) {
    const v = await open()
    await v.open(await v.imported([], { model: 'tiny' }))
    await v.ask('Turn 0. We begin.')
    await v.page.keyboard.press('Control+.')
    const panel = v.page.getByRole('complementary', { name: 'Context of the next prompt' })
    // The page asks a moment after the end of a run; a summary in the background may still be at work, and a part be drawn anew.
    const compare = when => {
      let bad
      return until(() => `${when}:\n${bad.slice(0, 8).join('\n')}`, async () => !(bad = await differences(v).catch(e => [String(e)])).length, 60_000)
    }
    for (let turn = 1; turn <= turns; turn++) {
      await v.send(`Turn ${turn}. ${`Facts of turn ${turn} are many and long, like heron ${turn * 7}. `.repeat(turns < 10 ? 12 : 6)}`)
      await v.settled(`answer to: Turn ${turn}.`)
      await compare(`after turn ${turn}`)
    }
    let versions = 0 // one more may still be prepared, and the page hears when that has ended
    await until('a summary is made', async () => (versions = (await v.api(`sessions/${v.session()}/summaries`)).items.length) > 0, 60_000)
    await compare('after the last summary')
    await v.state('context')
    // What is a picture, or says what is chosen, is there in a reader's own colors, too.
    await v.page.emulateMedia({ forcedColors: 'active' })
    equal(await v.page.locator('.window .bar').evaluate(e => getComputedStyle(e).outlineStyle), 'solid', 'the outline of a bar')
    for (const part of ['.bar > span', '.mark', '.track i', '.swatch', '.knot', '.key .made']) equal(await v.page.locator(part).first().evaluate(e => getComputedStyle(e).forcedColorAdjust), 'none', part)
    equal(await v.page.getByRole('link', { name: 'Chat', exact: true }).evaluate(e => getComputedStyle(e).outlineStyle), 'solid', 'the mark of the chosen view')
    await v.page.emulateMedia({ forcedColors: 'none' })
    const chart = panel.getByRole('slider')
    await chart.press('End')
    const all = await v.api(`sessions/${v.session()}/context/turns`)
    for (const turn of all.turns.toReversed()) { // the arrow keys read each one out
      const [, used, usable] = numbers(await chart.getAttribute('aria-valuetext'))
      equal([used, usable], [turn.used, turn.usable], 'a turn of the chart')
      await chart.press('ArrowLeft')
    }
    return { turns, summaries: versions }
  },

  /** What a draft puts out of the prompt, shortens and brings is said before it is sent, each time, as the plan has it. */
  async drafts(open) {
    const said = n => Array.from({ length: 2 * n }, (_, i) => ({ role: i % 2 ? 'assistant' : 'user', content: `turn ${i} ${'harbor pier ship crane '.repeat(40)}` }))
    const says = async (v, draft, words) => {
      await v.field.or(v.page.getByRole('textbox', { name: 'Nachricht schreiben' })).fill(draft)
      let wanted, hint // a summary in the background changes both
      await until(() => `the page says ${hint}, the plan ${wanted}`, async () => {
        const { coverage, summarize } = await v.api(`sessions/${v.session()}/context/plan`, { method: 'POST', json: { content: draft } })
        wanted = words({ ...coverage, ...summarize })
        hint = (await v.page.locator('.meter.due').count()) + (await v.page.locator('.hint').allTextContents()).join()
        return hint[0] === '1' && wanted.every(text => hint.includes(text))
      })
    }
    const full = await open()
    await full.open(await full.imported(said(8), { agent: 'full', model: 'tiny' }))
    const off = await full.page.url()
    await says(full, 'word '.repeat(3000), p => [`${p.left_out} messages are left out`])
    equal(await full.page.getByText(/Full (in|with)/).count(), 0, 'when a prompt that is full will be full')
    await full.state('draft-left-out', { main: true })
    const german = await open({ locale: 'de-DE' })
    await german.page.goto(off)
    await says(german, 'word '.repeat(3000), p => [`${p.left_out} Nachrichten sind weggelassen`])
    await german.state('draft-left-out', { main: true, rules: ['label-content-name-mismatch'] })
    const v = await open()
    await v.open(await v.imported(said(4), { model: 'tiny' }))
    for (const turn of ['first', 'second']) {
      await says(v, `${turn} ${'word '.repeat(12_000)}`, p => ['1 message is shortened. ', `This message brings a summary of ${p.messages} message`])
      await v.field.press('Enter')
      await v.settled(`answer to: ${turn}`)
    }
  },

  /** More turns than columns can be seen: neighbors are merged, no summary is missing. */
  async chart(open) {
    const v = await open()
    const id = await v.imported([], { title: 'with many turns' })
    for (let turn = 1; turn <= 150; turn++) await v.api(`sessions/${id}/messages`, { method: 'POST', json: { content: `Turn ${turn}. ${`Facts of turn ${turn} are many and long, like heron ${turn * 7}. `.repeat(20)}` } })
    await v.open(id)
    await v.page.keyboard.press('Control+.')
    const chart = v.page.getByRole('slider', { name: 'Prompt, turn by turn' })
    await until('neighbors are merged', async () => { // it may be drawn anew when a summary in the background has ended
      await chart.press('End')
      return /^Largest of turns 149 to 150: /.test(await chart.getAttribute('aria-valuetext'))
    })
    equal(await chart.locator('.messages').count(), 75, 'columns')
    const { turns, ranges } = await v.api(`sessions/${id}/context/turns`)
    await until('no summary is missing', async () => await chart.locator('circle.made').count() === turns.filter(t => t.summarized).length)
    await v.state('context')
    await v.button('As a table').click()
    equal(await v.page.getByRole('region', { name: 'Prompt, turn by turn' }).locator('tbody tr').count(), 75, 'rows of the table')
    await v.state('context-table')
    await v.page.keyboard.press('Control+.')
    await v.open(id, ranges.findLast(r => r.place === 'covered').through_seq)
    const card = v.page.getByRole('region', { name: /^Summary v/ })
    await card.scrollIntoViewIfNeeded()
    await card.getByRole('button', { expanded: false }).click()
    await card.getByRole('img', { name: /^Tools [\d,]+, Messages/ }).or(card.getByRole('img', { name: /^Tools [\d,]+, Summary [\d,]+, Messages/ })).nth(1).waitFor()
    await v.state('sections')
  },

  /** The summary in its place: open, edit, undo, and what is said then. */
  async summary(open) {
    const v = await open()
    const id = await v.imported(Array.from({ length: 40 }, (_, i) => ({ role: i % 2 ? 'assistant' : 'user', content: `turn ${i} ${'beyond words '.repeat(20)}` })), { title: 'with a summary' })
    await v.open(id)
    await v.api(`sessions/${id}/summarize`, { method: 'POST' })
    const card = v.page.getByRole('region', { name: /^Summary v1/ })
    await card.waitFor()
    await card.getByRole('button', { expanded: false }).click()
    await v.state('summary-degraded')
    const editor = v.page.getByRole('textbox', { name: /v1|v2/ })
    await v.button('Edit', card).click()
    await focused(v, 'the editor', editor)
    await v.page.keyboard.press('Escape')
    await focused(v, 'Edit after Esc', v.button('Edit', card))
    await v.page.keyboard.press('Enter')
    await focused(v, 'the editor', editor)
    await v.state('summary-edit')
    await editor.fill('# What we know\n\nThe heron was edited here.')
    await card.getByRole('button', { name: /^Save as v2/ }).click()
    await focused(v, 'Edit after Save', v.button('Edit', v.page.getByRole('region', { name: /^Summary v2/ })))
    const text = async version => (await v.api(`sessions/${id}/summaries/${version}`)).content
    check((await text(2)).includes('edited here'), 'the edited text is not stored')
    await v.page.getByRole('region', { name: /^Summary v2/ }).getByRole('button', { name: /^Undo/ }).click()
    await v.page.getByRole('region', { name: /^Summary v3/ }).waitFor()
    equal(await text(3), await text(1), 'the text after the undo')
    const third = v.page.getByRole('region', { name: /^Summary v3/ })
    await third.getByRole('tab', { name: /^Changes/ }).click()
    await third.getByLabel('Compared with').selectOption('v2')
    await third.getByRole('tab', { name: 'Changes since v2' }).waitFor()
    const { added, removed } = await v.api(`sessions/${id}/summaries/3/diff?against=2`)
    await third.getByText(`+${added} −${removed}`).waitFor()
    await v.state('summary')
    const write = content => v.api(`sessions/${id}/summary`, { method: 'PUT', json: { content } })
    await v.page.route(/\/context$/, async route => { // somebody else writes while the page loads: the card stays open
      await write('The heron flew.')
      await route.continue()
    }, { times: 1 })
    await write('The heron stood.')
    await v.page.getByRole('region', { name: /^Summary v5/ }).getByRole('button', { expanded: true }).waitFor()
    await v.api(`sessions/${id}/summaries/0/restore`, { method: 'POST', json: {} })
    await v.page.getByText('Summary v5 undone').first().waitFor()
    equal(await v.page.getByRole('region', { name: /^Summary v/ }).count(), 0, 'cards of a summary that was taken back')
    await v.state('summary-undone')
    await v.button('Redo').click()
    await v.page.getByRole('region', { name: /^Summary v/ }).waitFor()
    await focused(v, 'the field after Redo', v.field)
    // A copy of one that was restored made nothing smaller.
    await v.open((await v.api(`sessions/${id}/fork`, { method: 'POST', json: {} })).id)
    await v.page.getByRole('region', { name: /^Summary v/ }).getByText(/^Text of \d+ tokens$/).waitFor()
    await v.state('summary-forked')
    await v.open(id)
    // The size of a summary that comes is not that of the version in use.
    const row = v.page.locator('.legend li').filter({ hasText: 'Summary' })
    await v.page.keyboard.press('Control+.')
    await row.getByText(/^v\d+, for \d+$/).waitFor()
    await v.page.route(/\/context$/, async route => { const report = await (await route.fetch()).json(); await route.fulfill({ json: { ...report, coverage: { ...report.coverage, summarized: report.coverage.summarized + 2 } } }) })
    await v.page.reload()
    await v.page.getByRole('region', { name: /^Summary v/ }).waitFor()
    await v.page.keyboard.press('Control+.')
    await row.waitFor()
    equal(await row.getByText(/^v\d+, for/).count(), 0, 'versions beside the size of another summary')
  },
}
