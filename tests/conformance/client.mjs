// The npm package openai: makes the calls that the Go test writes, a line each, and writes what
// it got in lines of JSON. Ends when its standard input does.
import { createInterface } from 'node:readline'
import OpenAI from 'openai'

const tell = value => process.stdout.write(JSON.stringify(value) + '\n')

// fault returns what an error says.
const fault = error => ({
  class: error.constructor.name, message: [error.message, error.cause].filter(Boolean).join(': '), status: error.status ?? 0, code: error.code ?? '', param: error.param ?? '', type: error.type ?? '',
})

// follow writes each event, and returns false if it is one that the test waits for.
const follow = async (call, stream) => {
  for await (const event of stream) {
    tell({ id: call.id, event })
    if (call.until && JSON.stringify(event).includes(call.until)) return false // ends the connection
  }
  return true
}

const run = async call => {
  const client = new OpenAI({ baseURL: call.url, apiKey: call.key, defaultHeaders: call.headers })
  const path = call.method.split('.')
  const name = path.pop()
  const resource = path.reduce((at, part) => at[part], client)
  const args = call.params ? [...call.args ?? [], call.params] : call.args ?? []
  const result = resource[name](...args)
  if (name === 'stream') { // the helper, which puts the answer together
    if (!await follow(call, result)) return null
    return await (result.finalChatCompletion ?? result.finalResponse).call(result)
  }
  if (call.params?.stream) {
    await follow(call, await result)
    return null
  }
  if (!call.all) return await result
  const items = []
  for await (const item of result) items.push(item)
  return items
}

createInterface({ input: process.stdin }).on('line', async line => {
  const call = JSON.parse(line)
  try {
    tell({ id: call.id, result: await run(call) ?? null })
  } catch (error) { tell({ id: call.id, error: fault(error) }) }
})
tell({ ready: true })
