// Drives one Chromium for all cases: takes a JSON line for each, plays it in a context of its own, and
// tells how it went. Ends when its input does.
import { createRequire } from 'node:module'
import { createInterface } from 'node:readline'
import { Visit } from './visit.mjs'

const { chromium } = createRequire(import.meta.url)('playwright-core') // an import reads all of it for its names

// It knows no host but this machine: the page has all that it needs from the binary.
const launched = chromium.launch({
  executablePath: process.env.CHROMIUM,
  // A process of its own for drawing costs a twentieth of the processor's time.
  args: ['--no-sandbox', '--in-process-gpu', '--disable-gpu', '--disable-dev-shm-usage', '--enable-precise-memory-info', '--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1'],
})
const playing = new Set()

async function play({ id, flow, name, args }) {
  const visits = []
  const open = async (more = {}) => {
    const visit = await Visit.open(await launched, { ...args, ...more }, `${flow}-${name}`)
    visits.push(visit)
    return visit
  }
  const answer = { id }
  try {
    const result = await (await import(`./${flow}.mjs`)).cases[name](open, args)
    answer.result = { ...result, states: new Set(visits.flatMap(v => [...v.states])).size }
    const faults = visits.flatMap(v => v.faults)
    if (faults.length) answer.error = `the page did what it must not:\n  ${faults.slice(0, 12).join('\n  ')}`
  } catch (e) {
    answer.error = String(e?.stack ?? e).split('\n').slice(0, 14).join('\n') + '\n' + (await Promise.all(visits.map(v => v.describe()))).join('\n')
  }
  if (process.env.P2) (await import('node:fs')).appendFileSync(process.env.P2, `== ${flow} ${name} ${args.theme} ${args.width}\n${visits.flatMap(v => v.faults).join('\n')}\n${answer.error && !answer.error.startsWith('the page did') ? answer.error : ''}\n`)
  await Promise.all(visits.map(v => v.close()))
  process.stdout.write(JSON.stringify(answer) + '\n')
}

for await (const line of createInterface({ input: process.stdin })) {
  const played = play(JSON.parse(line)).finally(() => playing.delete(played))
  playing.add(played)
}
await Promise.all(playing)
await (await launched).close()
