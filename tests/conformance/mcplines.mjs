// What the MCP clients of npm share: makes the calls that the Go test writes, a line each, and
// writes what it got in lines of JSON. Ends when its standard input does.
import { createInterface } from 'node:readline'

const tell = value => process.stdout.write(JSON.stringify(value) + '\n')

// fault returns what an error says.
const fault = error => ({ class: error.constructor.name, message: String(error.message), code: String(error.code ?? '') })

// serve answers calls. connect returns a connected client, callTool calls a tool with it.
export const serve = (connect, callTool) => {
  const clients = new Map()
  const run = async call => {
    const name = [call.url, call.key, call.revision].join(' ')
    if (!clients.has(name)) clients.set(name, connect(call, { requestInit: { headers: { Authorization: `Bearer ${call.key}` } } }))
    const client = await clients.get(name)
    if (call.method === 'connect') return { server: client.getServerVersion(), instructions: client.getInstructions(), revision: client.getNegotiatedProtocolVersion?.() ?? client.transport.protocolVersion }
    if (call.method !== 'callTool') return await client[call.method](call.params)
    const { name: tool, arguments: args, timeout, progress } = call.params
    const options = { timeout: timeout ?? 120_000 }
    if (progress) options.onprogress = event => tell({ id: call.id, event })
    return await callTool(client, { name: tool, arguments: args }, options)
  }
  createInterface({ input: process.stdin }).on('line', async line => {
    const call = JSON.parse(line)
    try {
      tell({ id: call.id, result: await run(call) })
    } catch (error) { tell({ id: call.id, error: fault(error) }) }
  }).on('close', () => process.exit(0))
  tell({ ready: true })
}
