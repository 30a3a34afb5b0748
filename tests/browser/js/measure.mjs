// What the page costs: bytes and time until it can be used; long logs and fast answers.
import { check, equal } from './visit.mjs'

/** Bytes of the page's objects and of its document that are in use, after the garbage is gone. */
async function heap(v) {
  await v.cpu() // opens the session of the tools
  for (let i = 0; i < 3; i++) await v.tab.devtools.send('HeapProfiler.collectGarbage')
  const { usedSize, embedderHeapUsedSize = 0 } = await v.tab.devtools.send('Runtime.getHeapUsage')
  return usedSize + embedderHeapUsedSize
}

/** The page's files so far, in the page: bytes over the wire and unpacked, and when they were asked for. */
function loaded() {
  return [performance.getEntriesByType('navigation')[0], ...performance.getEntriesByType('resource')].filter(e => !e.name.includes('/api/')).map(e => ({
    name: e.name.replace(/.*\//, '') || 'index.html', sent: e.transferSize && e.encodedBodySize, bytes: e.decodedBodySize, began: e.startTime, shownAt: window.shownAt,
  }))
}

const sum = files => files.reduce((bytes, f) => bytes + f.sent, 0)

/** Ordinary openings by their names: the address, and what it shows. */
async function openings(v) {
  const said = n => Array.from({ length: n }, (_, i) => ({ role: i % 2 ? 'assistant' : 'user', content: `turn ${i} ${'of **many** words '.repeat(20)}` }))
  const coded = [{ role: 'user', content: 'some code' }, { role: 'assistant', content: '```go\nfunc main() {}\n```\n\n```js\nlet a = 1\n```' }]
  const conversation = await v.imported(said(12), { title: 'a conversation' })
  const code = await v.imported(coded, { title: 'with code' })
  const summary = await v.imported([...said(38), ...coded], { title: 'with a summary' })
  await v.api(`sessions/${summary}/summarize`, { method: 'POST' })
  const { through_seq: at } = await v.api(`sessions/${summary}/summaries/1`)
  const asking = await v.imported([], { agent: 'careful', title: 'asks' })
  await v.api(`sessions/${asking}/messages`, { method: 'POST', json: { content: 'calculate this' } })
  return {
    operation: ['#/operation', '#operation'], conversation: [`#/s/${conversation}`, 'article'], approval: [`#/s/${asking}`, 'section:is([aria-label^="Question"], [aria-label^="Frage"])'],
    summary: [`#/s/${summary}/m/${at}`, 'section:is([aria-label^="Summary"], [aria-label^="Zusammenfassung"])'], code: [`#/s/${code}`, 'figure.code'],
    runs: [`#/s/${asking}/runs`, 'section:is([aria-label^="Run of"], [aria-label^="Lauf von"]) tbody tr'], prompt: [`#/s/${summary}/prompt`, '[data-section] pre'],
  }
}

/** Notes the gaps between frames, in the page. */
function watchFrames() {
  window.seen = { frames: 0, dropped: 0 }
  let last = performance.now()
  const frame = now => {
    window.seen.frames++
    if (now - last > 34) window.seen.dropped += Math.round((now - last) / 16.7) - 1
    last = now
    requestAnimationFrame(frame)
  }
  requestAnimationFrame(frame)
}

/** The longest tasks of the page while something happens, in ms by the clock and by the main thread's processor
 *  time: where other programs have the processor, the clock alone says nothing about the page. */
async function longestTasks(v, happens) {
  const browser = v.context.browser()
  await browser.startTracing(v.page, { categories: ['-*', 'toplevel'] })
  await happens()
  const { traceEvents } = JSON.parse(await browser.stopTracing())
  const main = new Set(traceEvents.filter(e => e.name === 'thread_name' && e.args.name === 'CrRendererMain').map(e => `${e.pid} ${e.tid}`))
  const tasks = traceEvents.filter(e => e.ph === 'X' && /RunTask$/.test(e.name) && main.has(`${e.pid} ${e.tid}`))
  check(tasks.length > 0, 'the trace has no tasks')
  check(tasks.some(e => e.tdur > 0), 'the trace has no times of the processor')
  const most = key => tasks.reduce((ms, e) => Math.max(ms, (e[key] ?? 0) / 1000), 0) // a few have no time of the processor
  return { clock: most('dur'), longest: most('tdur'), long: tasks.filter(e => e.tdur > 50_000).length }
}

export const cases = {
  /** Bytes over the wire of an ordinary opening, and of the colors of code, which come after the text; bytes of each
   *  file, and the time until the field takes letters, cold and warm. */
  async size(open, { long }) {
    const v = await open({ fresh: true })
    await v.field.waitFor()
    const files = await v.page.evaluate(loaded)
    const totals = {}
    let colors
    const each = Object.entries({ empty: ['', 'textarea'], ...await openings(v) }).flatMap(([name, opening]) => [[name, 'en-US', opening], [name, 'de-DE', opening]])
    for (const [name, locale, [hash, shows]] of each) {
      if (!long && name !== 'summary') continue // the largest
      const one = await open({ fresh: true, hash, shows, locale })
      await one.page.waitForFunction(() => window.shownAt)
      if (['summary', 'code'].includes(name)) await one.page.locator('figure.code .hljs-keyword').nth(1).waitFor()
      const all = await one.page.evaluate(loaded)
      const later = all.filter(f => /^highlight-/.test(f.name))
      if (name === 'code') check(later[0].began > later[0].shownAt, 'the colors are loaded before the code is shown')
      totals[`${name}, ${locale}`] = sum(all) - sum(later)
      colors ||= sum(later)
    }
    const usable = page => page.evaluate(() => window.usableAt)
    const cold = [await usable(v.page)]
    for (let i = 1; long && i < 5; i++) {
      const other = await open({ fresh: true })
      await other.field.waitFor()
      cold.push(await usable(other.page))
    }
    const times = []
    for (let i = 0; i < (long ? 5 : 1); i++) {
      await v.page.reload({ waitUntil: 'commit' })
      await v.field.waitFor()
      times.push(await usable(v.page))
    }
    const warm = await v.page.evaluate(loaded)
    equal(await v.page.evaluate(() => [...performance.getEntriesByType('resource')].map(e => new URL(e.name).origin).filter(o => o !== location.origin)), [], 'files from elsewhere')
    equal(v.foreign, [], 'requests elsewhere')
    check(warm.every(f => f.name === 'index.html' || f.sent === 0), `files with hashes are asked for again: ${JSON.stringify(warm)}`)
    const median = all => all.sort((a, b) => a - b)[all.length >> 1]
    return { totals, colors, files, cold: median(cold), warm: median(times) }
  },

  /** A long log opens with one page of it, and a fast answer does not block the page. */
  async stream(open, { messages, hour }) {
    const v = await open({ fresh: true, patience: 120_000 })
    const text = 'a settled message of some words, **bold** and `code`, as they are. '.repeat(4)
    const id = await v.imported(Array.from({ length: messages }, (_, i) => ({ role: i % 2 ? 'assistant' : 'user', content: `${i} ${text}` })), { title: 'a long log' })
    let asked = 0
    v.page.on('request', r => { if (/\/messages\?/.test(r.url())) asked++ })
    await v.open(id)
    await v.log.getByText(`${messages - 1} a settled`).waitFor()
    const opened = { asked, articles: await v.articles.count() }
    check(asked === 1, `opening asked for ${asked} pages`)
    check(opened.articles < 300, `${opened.articles} messages are in the document`)
    const before = await heap(v)
    await v.page.evaluate(watchFrames)
    // A message that is settled is marked; whoever draws it again loses the mark.
    await v.articles.nth(opened.articles - 3).evaluate(e => { for (const x of e.querySelectorAll('p, strong')) x.mark = true; window.settled = e })
    const cpu = await v.cpu()
    let seconds
    const tasks = await longestTasks(v, async () => {
      await v.send(`stream this ${'**word** of an answer '.repeat(200)}`)
      await v.log.locator('article:has-text("stream this") + article:has-text("A paragraph")').waitFor()
      const began = Date.now()
      await v.log.locator('article:has-text("stream this") + article[aria-busy=false]').waitFor()
      await v.idle()
      seconds = (Date.now() - began) / 1000
    })
    const minute = { seconds, cpu: await v.cpu() - cpu }
    const seen = await v.page.evaluate(() => window.seen)
    check(await v.page.evaluate(() => [...window.settled.querySelectorAll('p, strong')].every(x => x.mark)), 'a settled message was drawn again')
    const after = await heap(v)
    // An hour's tokens in as many answers as a busy hour has, as fast as they come: the heap after each tenth.
    const tenths = []
    for (let i = 1; i <= hour; i++) {
      await v.send(`as fast as it goes, ${i}`)
      await v.log.locator(`article:has-text("as fast as it goes, ${i}") + article[aria-busy=false]`).waitFor()
      await v.idle()
      if (i % Math.ceil(hour / 10) === 0) tenths.push(await heap(v))
    }
    check(hour === 0 || await v.button('Jump to latest').count() === 0, 'the page has left the end of the conversation')
    return { ...opened, tenths, ...minute, ...tasks, ...seen, before, after }
  },
}
