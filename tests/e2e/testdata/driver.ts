// Drives docs/examples/chat.ts by lines of JSON on the standard input, and answers each
// with what the chat shows.
import { createInterface } from 'node:readline'
import { Chat } from './chat.mjs'

let changed = () => {}
const chat = new Chat(process.argv[2], process.argv[3], {}, () => changed())
chat.follow()

type Wish = { do: string; text?: string; status?: string; said?: string; whole?: number; shown?: number; asked?: number }

const fits = (w: Wish) =>
  (!w.status || chat.status === w.status) &&
  (!w.said || chat.list().some(m => m.role === 'assistant' && m.content.includes(w.said!))) &&
  (!w.whole || chat.list().filter(m => m.seq).length === w.whole && chat.list().length === w.whole) &&
  (!w.shown || chat.list().length === w.shown) &&
  (!w.asked || chat.approvals.size === w.asked)

for await (const line of createInterface({ input: process.stdin })) {
  const wish: Wish = JSON.parse(line)
  if (wish.do === 'send') await chat.send(wish.text!)
  if (wish.do === 'stop') await chat.stop()
  if (wish.do === 'approve') for (const a of [...chat.approvals.values()]) await chat.decide(a, 'approve')
  while (wish.do === 'await' && !fits(wish)) await new Promise<void>(go => { changed = go })
  console.log(JSON.stringify({ status: chat.status, messages: chat.list() }))
}
chat.close()
